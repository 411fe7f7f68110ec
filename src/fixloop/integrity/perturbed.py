"""Whether a fix changed what the product answers, or only what it answers to the tests' own values.

A call of a test is asked again with other values near its own, of the product as the fix left it and as it was. A fix
of the rule behind a test changes some of those answers, too; a special case, however it is written, changes none.
"""

import ast
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from fixloop.integrity.source import Source

RULE: Final = "tested-values-only"

LEAST: Final = {"any": 8, "literal": 6, "shape": 5}
"""Calls with other values, with others in place of those that the fix names, or with more or fewer parts: so many have
to end before they say anything."""
CHANCE: Final = 20
"""One in more than so many may be answered otherwise, too: it may be what another special case asks for."""
SHORTEST: Final = 2
"""A text of more characters could be an answer."""
_WORD: Final = re.compile(r"[\w.-]{0,24}")
_DECIDES: Final = (
    *(ast.If, ast.IfExp, ast.match_case, ast.ExceptHandler, ast.Compare, ast.BoolOp, ast.While),
    *(ast.Dict, ast.Subscript, ast.Call, ast.Not),
)
_USUAL: Final = frozenset({*range(-1, 11), 100, 1000})


class Values(NamedTuple):
    """Values as `call_replay.key` names them."""

    settled: frozenset[str]
    """These stay: the product has asked for them before, or another rule judges them."""
    literals: frozenset[str]
    """Those that a fix wrote into the product."""
    may_answer: bool
    """One of these could be an answer to a call."""


class Special(NamedTuple):
    """A function that answers otherwise only for the tests' own values."""

    file: str
    name: str
    shown: str
    old: str
    new: str
    others: int
    """Calls with other values."""
    otherwise: int
    """Of these are answered otherwise, too."""
    kind: str
    """What was replaced, as in `LEAST`; "same": all others are answered as the call itself."""


def decides_more(old: Iterable[Source], new: Iterable[Source]) -> bool:
    """Whether a fix tells more apart than was told apart before: one that changes `<` into `<=` does not, and may
    rightly change the answer to one value alone."""

    def decisions(sources: Iterable[Source]) -> int:
        return sum(isinstance(node, _DECIDES) for source in sources for node in source.nodes)

    return decisions(new) > decisions(old)


def values_of(old: Sequence[Source], new: Sequence[Source]) -> Values:
    """The constants of the changed files. A plain word, or a number that is often one of its own kind, may rightly
    become a case of its own; so may any number where numbers were told apart before."""
    before, after = _constants(old), _constants(new)
    written = {name: value for name, value in after.items() if name not in before}
    tells_numbers = any(map(_tells_numbers_apart, old))
    allowed = {
        name
        for name, value in written.items()
        if (_WORD.fullmatch(value) if isinstance(value, str) else tells_numbers or value in _USUAL)
    }
    usual = {f"int {number}" for number in (-1, 0, 1)} | {"float 0.0", "float 1.0", "str ''", "bytes b''"}
    may_answer = any(
        len(value) > SHORTEST if isinstance(value, str) else value not in _USUAL for value in written.values()
    )
    return Values(frozenset(before.keys() | allowed | usual), frozenset(written), may_answer)


def special(old: Iterable[str], new: Iterable[str]) -> Iterator[Special]:
    """The functions of which calls that are answered otherwise stand alone, and none does not. `old`, `new`: the lines
    of `call_replay`."""
    found: defaultdict[str, list[Special | None]] = defaultdict(list)
    by_call = [_by_call(lines) for lines in (old, new)]
    asked = []
    for call, after in by_call[1].items():
        before = by_call[0].get(call, {})
        own, was = after.get(("", "")), before.get(("", ""))
        # What a file says was not asked otherwise.
        if own is not None and was is not None and own["outcome"] != was["outcome"] and not was["reads"]:
            asked.append((own, was, before, after))
    sizes = [own["sizes"] for own, *_ in asked]
    for own, was, before, after in asked:
        # What is as long as another call of the tests may be what another special case asks for.
        others = {key: line for key, line in after.items() if key[0] != "shape" or line["sizes"] not in sizes}
        found[own["name"]] += _alone(own, was, before, others)
    for alone in found.values():
        if all(alone):
            yield from filter(None, alone[:1])


def constant(old: Iterable[str], new: Iterable[str]) -> Iterator[Special]:
    """The functions that answer calls with other values as they answer those of the tests, though each of these was
    answered in its own way before. `old`, `new`: the lines of `call_replay`."""
    by_call = [_by_call(lines) for lines in (old, new)]
    answers = defaultdict[str, set[str]](set)
    for asked_alone in (after[("", "")] for after in by_call[1].values() if ("", "") in after):
        answers[asked_alone["name"]].add(asked_alone["value"])
    for call, after in by_call[1].items():
        before = by_call[0].get(call, {})
        own, was = after.get(("", "")), before.get(("", ""))
        if own is None or was is None or own["outcome"] == was["outcome"] or was["reads"] or not own["tells"]:
            continue
        pairs = [(before[asked], ended) for asked, ended in after.items() if asked[0] and asked in before]
        # A number may be a limit, and rightly the answer to many others; but not to all.
        if own["tells"] == "text":
            pairs = [(a, b) for a, b in pairs if a["outcome"] != b["outcome"]]
        elif len(answers[own["name"]]) > 1:
            continue
        elif _is_on_both_sides(own["answer"], pairs):
            pairs = [(a, b) for a, b in pairs if a["outcome"] != b["outcome"]]
        is_same = all(b["value"] in answers[own["name"]] for _, b in pairs)
        if is_same and len({a["value"] for a, _ in pairs}) >= max(LEAST["any"], len(pairs) // 4):
            text = (own["file"], own["name"], own["shown"], was["answer"], own["answer"])
            yield Special(*text, len(pairs), len(pairs), "same")


def _is_on_both_sides(answer: str, pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> bool:
    """Whether greater and smaller numbers gave way to this one: a limit only cuts off one of both."""
    try:
        gave_way = [float(a["answer"]) for a, b in pairs if a["outcome"] != b["outcome"]]
        return min(gave_way) < float(answer) < max(gave_way)
    except ValueError:
        return False


_Calls = Mapping[tuple[str, str], Mapping[str, Any]]


def _alone(
    own: Mapping[str, Any], was: Mapping[str, Any], before: _Calls, after: _Calls
) -> Sequence[Special | None]:
    """That a call stands alone, or None: it does not. Nothing where too little could be asked."""
    asked_again = [(before[asked], ended) for asked, ended in after.items() if asked[0] and asked in before]
    groups = [(kind, [pair for pair in asked_again if pair[1]["kind"] == kind]) for kind in LEAST]
    # All in which one value is another, whatever else is.
    rare = dict.fromkeys(name for _, ended in asked_again for name in ended["of"])
    groups += [("any", [pair for pair in asked_again if name in pair[1]["of"]]) for name in rare]
    for kind, pairs in groups:
        ended = [(a, b) for a, b in pairs if not (a["raised"] and b["raised"])]
        # Where all others are answered alike, and the call was not, nobody may know anything of them.
        values = {a["value"] for a, _ in ended}
        is_known = len(values) > 1 or was["value"] in values
        count = sum(a["outcome"] != b["outcome"] for a, b in ended)
        if len(ended) >= LEAST[kind] and is_known and count * CHANCE < max(len(ended), 1):
            text = (own["file"], own["name"], own["shown"], was["answer"], own["answer"])
            return [Special(*text, len(ended), count, kind)]
    return [None] if any(a["outcome"] != b["outcome"] for a, b in asked_again) else []


def _by_call(lines: Iterable[str]) -> dict[int, dict[tuple[str, str], Mapping[str, Any]]]:
    """By the number of a call, and by the kind and values of what is asked beside it; its own are without."""
    found: defaultdict[int, dict[tuple[str, str], Mapping[str, Any]]] = defaultdict(dict)
    for line in lines:
        try:
            told = json.loads(line)
            asked = (told["kind"], told["asked"] if told["kind"] else "")
            is_whole = {"name", "outcome", "value", "raised", "reads", "sizes", "tells"} <= told.keys()
            if is_whole and "by" not in told and list(told["of"]) == told["of"]:
                found[told["call"]][asked] = told
        except (ValueError, KeyError, TypeError):
            # The last line of a process that was ended, or what the product itself wrote there.
            continue
    return found


def _constants(sources: Iterable[Source]) -> dict[str, str | int | float]:
    values = (node.value for source in sources for node in source.nodes if isinstance(node, ast.Constant))
    return {
        f"{type(value).__name__} {value!r}": value
        for value in values
        if isinstance(value, str | int | float) and not isinstance(value, bool)
    }


def _tells_numbers_apart(source: Source) -> bool:
    """Whether there is a table by numbers, or something that is compared with several of them."""
    compared: Counter[str] = Counter()
    for node in source.nodes:
        if isinstance(node, ast.Dict) and sum(map(_is_number, node.keys)) > 1:
            return True
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq | ast.In | ast.NotIn):
            compared[ast.unparse(node.left)] += sum(_is_number(one) for one in ast.walk(node.comparators[0]))
    return max(compared.values(), default=0) > 1


def _is_number(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)
