"""What a SARIF run says about its rules: default levels, message texts, help.

Owns finding the rule of a result, by index or id, in the tool or one of its extensions.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from fixloop.reports.sarif_model import Finding, Message, Rule

__all__ = ["Rules", "filled"]

_PLACEHOLDER: Final = re.compile(r"\{(\d{1,3})\}")


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

        Raises:
            pydantic.ValidationError: the rule is not shaped as SARIF says.
        """
        found = self._by_index(result) or self._by_name(result)
        if found is None:
            return None
        known = self._read.get(id(found))
        if known is None:
            known = self._read[id(found)] = Rule.of(found)
        return known

    def _by_index(self, result: Finding) -> Mapping[str, Any] | None:
        reference = result.rule
        index = result.rule_index if result.rule_index is not None else (reference and reference.index)
        component = reference and reference.tool_component and reference.tool_component.index
        rules = self._driver
        if component is not None and component >= 0:
            rules = self._extensions[component] if component < len(self._extensions) else []
        return rules[index] if index is not None and 0 <= index < len(rules) else None

    def _by_name(self, result: Finding) -> Mapping[str, Any] | None:
        """By id; `CA1000/1` is a finer `CA1000`."""
        name = result.rule_id or (result.rule and result.rule.id) or ""
        return self._by_id.get(name) or self._by_id.get(name.rpartition("/")[0])


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


def _listed(component: object) -> list[Mapping[str, Any]]:
    rules = component.get("rules") if isinstance(component, Mapping) else None
    return [rule if isinstance(rule, Mapping) else {} for rule in rules] if isinstance(rules, list) else []
