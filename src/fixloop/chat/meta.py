"""A chat's contract, meta.yaml: its schema (U5), reading it with all its errors, and changing a value in it.

A change replaces only the characters of the value: comments, order and line ends stay the author's.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from fixloop.chat import string_yaml
from fixloop.chat.vocabulary import AREAS, ChatState, Finding, Role, shown

META: Final = "meta.yaml"

# `\d` would accept the digits of every script.
Words: TypeAlias = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
WordList: TypeAlias = Annotated[tuple[Words, ...], Field(min_length=1)]
Date: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T.*$")]

_EXPECTED: Final = {
    "id": "four digits, such as '0005'",
    "slug": "lower-case letters, digits and hyphens",
    "area": f"one of {', '.join(AREAS)}",
    "title": "a text of at least three characters",
    "owner": f"one of {', '.join(Role)}",
    "state": f"one of {', '.join(ChatState)}",
    "branch": "feat, fix or chore and {area}-{slug}-{id}, such as 'feat/dx-gh-sync-0005'",
    "created": "a date and time, such as '2025-09-06T00:00:00Z'",
    "closed": "a date and time, such as '2025-09-06T00:00:00Z'",
    "sync_mode": "one of none, issue-dryrun, issue-live",
    "issue_body_source": "SUMMARY.md or META",
    "notes": "a text",
    "title_pattern": "a text",
    "gh": "a mapping with sync_mode, title_pattern, labels and issue_body_source",
}
_LIST: Final = "a list of texts, none of them empty"


class _Strict(BaseModel):
    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")


class GitHub(_Strict):
    """What happens with a chat on a hosting site; recorded, never acted upon."""

    sync_mode: Literal["none", "issue-dryrun", "issue-live"] = "none"
    title_pattern: str | None = None
    labels: tuple[Words, ...] = ()
    issue_body_source: Literal["SUMMARY.md", "META"] | None = None


class Meta(_Strict):
    """The twin's contract for one chat (E4, U5)."""

    id: Annotated[str, StringConstraints(pattern=r"^[0-9]{4}$")]
    slug: Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+$")]
    area: Literal["rt", "ld", "st", "ui", "dx", "ad", "dc"]
    title: Annotated[str, StringConstraints(min_length=3)]
    owner: Role
    """Whose turn it is: the recipient of the last message."""
    state: ChatState
    branch: Annotated[str, StringConstraints(pattern=r"^(feat|fix|chore)/[a-z]{2}-[a-z0-9-]+-[0-9]{4}$")]
    created: Date
    scope: WordList
    acceptance: WordList
    """The acceptance criteria; the engineer runs each and reports the result."""
    outputs: WordList
    closed: Date | None = None
    non_goals: tuple[Words, ...] = ()
    gh: GitHub | None = None
    ci_gates: tuple[Words, ...] = ()
    notes: str | None = None

    @property
    def directory(self) -> str:
        """The name of the chat's directory (E2)."""
        return f"{self.id}-{self.area}-{self.slug}"


class Contract(NamedTuple):
    """A meta.yaml as it was read."""

    text: str
    meta: Meta | None
    """None if it is invalid."""
    entries: string_yaml.Mapping
    findings: tuple[Finding, ...]

    def value(self, field: str) -> str:
        """The text of a field, even if another one is wrong; empty if there is none."""
        entry = self.entries.get(field)
        return entry.value if entry is not None and isinstance(entry.value, str) else ""

    def line(self, field: str) -> int:
        """The line of a field; 1 if it is missing."""
        entry = self.entries.get(field)
        return entry.line if entry is not None else 1


def read_meta(text: str, file: str = META) -> Contract:
    """The contract in `text`, with every finding; `file` is its name in findings."""
    try:
        entries = string_yaml.load(text)
    except string_yaml.YamlError as error:
        return Contract(text, None, {}, (Finding("contract", file, f"{META}: {error}", error.line),))
    try:
        return Contract(text, Meta.model_validate(string_yaml.plain(entries)), entries, ())
    except ValidationError as error:
        wrongs = error.errors()
    found, inner = [], {wrong["loc"][:-1] for wrong in wrongs}
    for wrong in wrongs:
        if wrong["loc"] in inner:
            continue  # a list is too short only because its items are wrong
        path = [str(part) for part in wrong["loc"]]
        name, value = ".".join(path), ""
        # The line of the innermost existing part of the path.
        line, inside = 1, cast(Any, entries)
        for part in path:
            try:
                entry = inside[int(part)] if isinstance(inside, list) else inside[part]
            except (KeyError, IndexError, TypeError, ValueError):
                break
            line, inside = entry.line, entry.value
        if wrong["type"] == "missing":
            told = f"{name} is missing"
        elif wrong["type"] == "extra_forbidden":
            told = f"{name} is no field of {META}; remove it"
        else:
            value = str(wrong["input"])
            told = f"{name} is {shown(value)}; it has to be {_EXPECTED.get(path[-1], _LIST)}"
        found.append(Finding("contract", file, told, line, field=name, value=value))
    return Contract(text, None, entries, tuple(found))


def with_values(contract: Contract, values: Mapping[str, str]) -> str:
    """The contract's text with other values; a missing field is added below `state`."""
    text = contract.text
    known = {name: contract.entries[name] for name in values if name in contract.entries}
    between = "\r\n" if "\r\n" in text else "\n"
    if text.lstrip("\ufeff").lstrip().startswith("{"):
        between = ", "
    missing = (name for name in values if name not in known)
    added = "".join(f"{between}{name}: {_scalar(name, values[name])}" for name in missing)
    edits = [(entry.start, entry.end, _scalar(name, values[name])) for name, entry in known.items()]
    edits.append((contract.entries["state"].end, contract.entries["state"].end, added))
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def new_text(values: Mapping[str, str | Iterable[str]]) -> str:
    """A new meta.yaml; texts unchanged, lists with one item per line."""
    text = ""
    for name, value in values.items():
        if isinstance(value, str):
            text += f"{name}: {_scalar(name, value)}\n"
        else:
            text += f"{name}:\n" + "".join(f"  - {string_yaml.quoted(item)}\n" for item in value)
    return text


def _scalar(name: str, value: str) -> str:
    return value if name in {"owner", "state", "area", "slug", "branch"} else string_yaml.quoted(value)
