"""The tables of docs/settings.md and docs/fixloop.schema.json, made from the settings' models.

`python -m tests.unit.settings_page` rewrites them.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from fixloop.configuration.settings import FileSettings, Section, Unset, keys_of, sections_in

DOCS: Final = Path(__file__).parents[2] / "docs"
PAGE: Final = DOCS / "settings.md"
SCHEMA: Final = DOCS / "fixloop.schema.json"
REGENERATE: Final = "python -m tests.unit.settings_page"

SECTIONS: Final[Mapping[str, type[Section]]] = dict(sections_in())
TABLES: Final = (
    ("",),
    ("[limits]",),
    ("[fixer]", "[agent.NAME]", "[workspace]"),
    ("[integrity]",),
    ("[sandbox]",),
    ("[specialist.NAME]", "[[specialist.NAME.check]]"),
    ("[cycle]", "[handoff]"),
    ("[cycle.agent.NAME]", "[handoff.agent.NAME]"),
)
"""The sections that each table of the page covers."""
LINK: Final = re.compile(r" ?\(\[[^]]*\]\([^)]*\)\)")


def page(text: str) -> str:
    """The settings page `text` with its tables up to date."""
    tables = iter(TABLES)
    return re.sub(r"(?m)^\|(.*\n\|)*.*\n", lambda _: _table(next(tables)), text)


def _table(headings: tuple[str, ...]) -> str:
    rows: dict[tuple[str, str, str], list[str]] = {}
    for heading in headings:
        for key in keys_of(SECTIONS[heading]).values():
            if key.section is None:
                row = key.name, default_of(key.field), key.field.description or ""
                rows.setdefault(row, []).append(heading)
    lines = ["| key | default | what it does |", "|---|---|---|"]
    for (name, default, text), owners in rows.items():
        prefixes = [""] if len(owners) == len(headings) else [f"{owner} " for owner in owners]
        label = ", ".join(f"`{prefix}{name}`" for prefix in prefixes)
        lines.append(f"| {label} | {default} | {text} |")
    return "".join(f"{line}\n" for line in lines)


def default_of(field: FieldInfo) -> str:
    """The default as the page shows it."""
    for mark in field.metadata:
        if isinstance(mark, Unset):
            return mark.text
    value = list(field.default) if isinstance(field.default, tuple) else field.default
    return f"`{value:g}`" if type(value) is float else f"`{json.dumps(value)}`"


class _ForEditors(GenerateJsonSchema):
    """TOML has no null, and an empty text only says that a key is not written."""

    def nullable_schema(self, schema: Any) -> Any:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> Any:
        made = super().default_schema(schema)
        if made.get("default") in (None, "", [], {}):
            made.pop("default", None)
        return made

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def schema() -> str:
    """The JSON Schema of fixloop.toml."""
    made = FileSettings.model_json_schema(schema_generator=_ForEditors)
    head = {"$schema": GenerateJsonSchema.schema_dialect, "title": "fixloop.toml"}
    return json.dumps(_plain({**made, **head}), indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: LINK.sub("", each) if name == "description" and isinstance(each, str) else _plain(each)
            for name, each in value.items()
        }
    return [_plain(each) for each in value] if isinstance(value, list) else value


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    SCHEMA.write_text(schema(), encoding="utf-8")
