"""What the results of one SARIF run refer to: its rules, and where its files lie.

Owns finding the rule of a result, by index or id, in the tool or one of its extensions, and the way from URIs, their
bases and artifact tables to a path in the workspace. Follows no base in circles and no URI out of the workspace.
"""

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

from fixloop.reports.sarif_model import ArtifactLocation, Finding, Message, Rule
from fixloop.reports.tree import SourceTree

_PLACEHOLDER: Final = re.compile(r"\{(\d{1,3})\}")
# Two letters at least: `C:` is a drive.
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_MOST_BASES: Final = 10


class Rules:
    """The rules of one run."""

    def __init__(self, run: Mapping[str, Any]) -> None:
        tool = run["tool"]
        extensions = tool.get("extensions") or []
        self._driver = _listed(tool["driver"])
        self._extensions = [_listed(component) for component in extensions]
        self._by_id: dict[str, Mapping[str, Any]] = {}
        for rule in [*self._driver, *(rule for rules in self._extensions for rule in rules)]:
            self._by_id.setdefault(str(rule.get("id")), rule)
        self._read: dict[int, Rule] = {}

    def rule(self, result: Finding) -> Rule | None:
        """
        The rule of `result`; the index counts, where there is one, as it names exactly one.

        Raises pydantic.ValidationError: the rule is not shaped as SARIF says.
        """
        reference = result.rule
        index = reference.index if result.rule_index is None and reference else result.rule_index
        component = reference.tool_component.index if reference and reference.tool_component else None
        rules = self._driver
        if component is not None and component >= 0:
            rules = self._extensions[component] if component < len(self._extensions) else []
        found = rules[index] if index is not None and 0 <= index < len(rules) else None
        if not found:
            # `CA1000/1` is a finer `CA1000`.
            name = result.rule_id or (reference and reference.id) or ""
            found = self._by_id.get(name) or self._by_id.get(name.rpartition("/")[0])
        if found is None:
            return None
        known = self._read.get(id(found))
        if known is None:
            known = self._read[id(found)] = Rule.model_validate(found)
        return known


def _listed(component: object) -> list[Mapping[str, Any]]:
    rules = component.get("rules") if isinstance(component, Mapping) else None
    return [rule if isinstance(rule, Mapping) else {} for rule in rules] if isinstance(rules, list) else []


def filled(message: Message, rule: Rule | None) -> str:
    """The text of `message`, from the rule's own texts where it only names one, with its arguments put in."""
    strings = (rule and rule.message_strings) or {}
    source = message if message.text or message.markdown else strings.get(message.id or "", message)
    text = source.text or source.markdown or ""
    arguments = message.arguments or []

    def argument(match: re.Match[str]) -> str:
        place = int(match[1])
        return arguments[place] if place < len(arguments) else match[0]

    return _PLACEHOLDER.sub(argument, text) if arguments else text


class Locations:
    """The tables of one run that locations refer to."""

    def __init__(self, run: dict[str, Any], tree: SourceTree) -> None:
        bases, artifacts = run.get("originalUriBaseIds"), run.get("artifacts")
        self._bases: dict[str, Any] = bases if isinstance(bases, dict) else {}
        self._artifacts: list[Any] = artifacts if isinstance(artifacts, list) else []
        self._tree = tree

    def path(self, location: ArtifactLocation | None) -> str:
        """
        The file of `location` relative to the workspace.

        A bare name when it lies outside, nothing when it names no file.
        """
        if location is None:
            return ""
        if location.uri is None and (index := location.index) is not None:
            found = self._artifacts[index] if 0 <= index < len(self._artifacts) else None
            listed = found.get("location") if isinstance(found, dict) else None
            location = ArtifactLocation.model_validate(listed or {})
        uri, base_id = location.uri or "", location.uri_base_id
        # A base nobody knows is the workspace itself.
        for _ in range(_MOST_BASES):
            if base_id not in self._bases or _SCHEME.match(uri) or uri.startswith("/"):
                break
            base = ArtifactLocation.model_validate(self._bases[base_id])
            uri = f"{base.uri.rstrip('/')}/{uri}" if base.uri else uri
            base_id = base.uri_base_id
        scheme = _SCHEME.match(uri)
        path = unquote(uri[scheme.end() :] if scheme is not None else uri)
        if scheme is not None and scheme[1].lower() != "file":
            path = path.rstrip("/").rsplit("/", 1)[-1]
        elif scheme is not None and path.startswith("//"):
            host, slash, path = path[2:].partition("/")
            # Of a file of another machine only the name is kept.
            path = slash + path if host in {"", "localhost"} else path.rsplit("/", 1)[-1]
        return self._tree.relative(path)
