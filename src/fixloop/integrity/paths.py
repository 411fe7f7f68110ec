"""Which files judge a fix rather than being judged: tests, gates and runner files, by path (`config/trust/`).

Content matters only for files that are both, see `parts`.
"""

import functools
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from fixloop.files.app_folder import app_folder

_SOURCE_FOLDERS: Final = frozenset({"src", "lib"})
_MODULE: Final = re.compile(r"(\w+)(\.pyc?|(\.[\w-]+)?\.so|/__init__\.pyc?)")
_TOKEN: Final = re.compile(r"\*\*/|/\*\*$|\*|\?|[^*?/]+|/")
_MEANING: Final = {"**/": "(?:[^/]+/)*", "/**": "/.+", "*": "[^/]*", "?": "[^/]"}


class Kind(StrEnum):
    """What a file is to a fix."""

    PRODUCT = "product"
    TEST = "test"
    """A test, or data that a test run reads."""
    GATE = "gate"
    """Tool settings, a threshold, an ignore list, a lock file, a file of continuous integration."""
    RUNNER = "runner"
    """A file that is loaded or started before, around or instead of the code."""


@dataclass(frozen=True)
class Trust:
    """A project's declarations about its own files; if there are none, only the shipped lists apply."""

    directory: str = ""
    """The folder of `fixloop.toml`, relative to the repository root; patterns are relative to it."""
    declared: Mapping[Kind, Sequence[str]] = field(default_factory=dict)
    started: frozenset[str] = frozenset()
    """Scripts that its checks start."""

    def said_of(self, path: str) -> Kind | None:
        """The kind that the project declares for this file; if there are several, a judging one wins."""
        inside = self.inside(path)
        for kind in (Kind.TEST, Kind.GATE, Kind.RUNNER, Kind.PRODUCT):
            if matches(inside, tuple(self.declared.get(kind, ()))):
                return kind
        return Kind.RUNNER if path in self.started else None

    def shadows_beside(self, path: str) -> bool:
        """Whether a script that a check starts imports this instead of a tool or a standard library module."""
        folder, _, name = path.rpartition("/")
        return _shadows(name) and any(
            script.endswith(".py") and script.rpartition("/")[0] == folder for script in self.started
        )

    def inside(self, path: str) -> str:
        """The path relative to the project's directory."""
        return path.removeprefix(f"{self.directory}/") if self.directory else path


UNTOLD: Final = Trust()


def kind_of(path: str, trust: Trust = UNTOLD, *, is_new: bool = False) -> Kind:
    """The kind of the file at `path`, relative to the repository root; `is_new`: the fix added it."""
    declared = trust.said_of(path)
    if declared is None and is_new and trust.shadows_beside(path):
        return Kind.RUNNER
    return declared or _shipped_kind(trust.inside(path), is_new)


@functools.lru_cache(maxsize=4096)
def _shipped_kind(path: str, is_new: bool) -> Kind:
    lists = shipped()
    if matches(path, lists["runner"]) or (is_new and (matches(path, lists["new_runner"]) or _shadows(path))):
        return Kind.RUNNER
    if matches(path, lists["gate"]) or matches(path, tuple(lists["locks"])):
        return Kind.GATE
    is_data = matches(path, lists["test_data"]) and not matches(path, lists["code"])
    return Kind.TEST if is_data or matches(path, lists["test"]) else Kind.PRODUCT


def _shadows(path: str) -> bool:
    """Whether Python, started in the project, imports this instead of a tool or a standard library module."""
    first, _, rest = path.partition("/")
    found = _MODULE.fullmatch(rest if first in _SOURCE_FOLDERS else path)
    return found is not None and (found[1] in sys.stdlib_module_names or found[1] in shipped()["shadows"])


def matches(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether the path matches one of the patterns (syntax: `config/trust/general.toml`)."""
    return bool(patterns) and _compiled(patterns).fullmatch(path) is not None


@functools.lru_cache(maxsize=256)
def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    regexes = []
    for pattern in patterns:
        is_for_names = "/" not in pattern.rstrip("/")
        whole = f"{'**/' if is_for_names else ''}{pattern.removeprefix('/')}{'**' if pattern.endswith('/') else ''}"
        regexes.append("".join(_MEANING.get(token, re.escape(token)) for token in _TOKEN.findall(whole)))
    return re.compile("|".join(regexes))


@functools.cache
def shipped() -> Mapping[str, Any]:
    """The lists of all languages, each as one tuple, and the tables, such as `locks` and `watched`."""
    found: dict[str, Any] = {name: {} for name in ("families", "locks", "opens", "parts", "watched")}
    for file in sorted((app_folder() / "config" / "trust").glob("*.toml")):
        for key, value in tomllib.loads(file.read_text(encoding="utf-8")).items():
            found[key] = {**found[key], **value} if isinstance(value, dict) else (*found.get(key, ()), *value)
    return found
