"""Reads a Fix Completion in JSON; fields are named as here or by the Markdown section titles (A32)."""

import re
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints, ValidationError
from pydantic_core import from_json

from fixloop.protocol.markdown import NOTHING

_MOST_VIOLATIONS: Final = 20
_SHOWN: Final = 80
_WORD: Final = re.compile(r"[\w.-]{1,80}", re.ASCII)
_NOT_A_LETTER: Final = re.compile(r"[^a-z]+")
_TITLES: Final = {
    "messageid": "message_id",
    "completionsummary": "summary",
    "fixesapplied": "fixes",
    "filesmodified": "files",
    "readyforrevalidation": "ready",
}
_Entries = Annotated[
    list[Annotated[str, StringConstraints(pattern=r"\S")]],
    BeforeValidator(lambda value: [] if isinstance(value, str) and value.casefold() in NOTHING else value),
]


class _Answer(BaseModel):
    """Unknown fields are ignored, as unknown sections are."""

    model_config = ConfigDict(extra="ignore")

    message_id: str
    specialist: str | None = None
    summary: str
    fixes: _Entries
    files: _Entries
    ready: bool | str
    reason: str = ""


def read(text: str) -> tuple[dict[str, Any], list[str]]:
    """The facts in `text` that could be read, and the violations of the others."""
    try:
        found = from_json(text)
    except ValueError as error:
        return {}, [f"it is not valid JSON: {shown(str(error))}"]
    if not isinstance(found, dict):
        return {}, [f"it is JSON, but no object with the fields {', '.join(_Answer.model_fields)}"]
    facts: dict[str, Any] = found
    named = {_TITLES.get(_NOT_A_LETTER.sub("", name.lower()), name): value for name, value in facts.items()}
    try:
        return _Answer.model_validate(named).model_dump(), []
    except ValidationError as error:
        details = error.errors()
        wrong = []
        for detail in details:
            field = shown(".".join(map(str, detail["loc"])))
            match detail["type"]:
                case "missing":
                    wrong.append(f"missing field {field}")
                case "string_pattern_mismatch":
                    wrong.append(f"field {field} is blank")
                case _:
                    wrong.append(f"field {field}: {detail['msg']}")
        broken = {str(detail["loc"][0]) for detail in details if detail["loc"]}
    more = len(wrong) - _MOST_VIOLATIONS
    rest = [f"{more} more of the kind"] if more > 0 else []
    fine = {name: one for name, one in named.items() if name not in broken and isinstance(one, str | bool)}
    return fine, [*wrong[:_MOST_VIOLATIONS], *rest]


def shown(text: str) -> str:
    """A piece of the answer, safe to quote on one line."""
    if _WORD.fullmatch(text):
        return text
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
