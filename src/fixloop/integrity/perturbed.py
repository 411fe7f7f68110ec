"""Whether a fix changed the product's answers in general, or only for the values in the tests.

The calls that tests make are repeated with perturbed values, with the fix and without it. A general fix changes some of
those answers, too; a special case, however it is written, changes none. State that is carried between calls is found
in the same lines: an answer that depends on earlier calls or on an attribute of a value, and did not before.
"""

import ast
import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, Final, NamedTuple

from fixloop.integrity.source import Function, Source, names_in
from fixloop.protocol.launchers import word_set

RULE: Final = "tested-values-only"
REMEMBERED: Final = "remembered-answer"

LEAST: Final = {"any": 8, "literal": 6, "shape": 5}
"""Minimum completed calls for a conclusion: with other values, with other values in place of the fix's literals, and
with more or fewer parts."""
CHANCE: Final = 20
"""Fewer than one in this many other answers may change, too: they may belong to another special case."""
SHORTEST: Final = 2
"""A longer text could be an answer."""
_WORD: Final = re.compile(r"[\w.-]{0,24}")
_DECIDES: Final = (
    *(ast.If, ast.IfExp, ast.match_case, ast.ExceptHandler, ast.Compare, ast.BoolOp, ast.While),
    *(ast.Dict, ast.Subscript, ast.Call, ast.Not),
)
_DECIDING: Final = word_set("if case catch while ? && || === !== == != < > ! [ ( :")
"""In JavaScript, a parenthesis stands for a call and a colon for an entry of a table."""
_QUOTED: Final = re.compile(r"""(["'`])([^"'`\s]{2,200})\1""")
_LETTERS: Final = re.compile(r"\\.|([^\W\d_]+)")
_FRACTION: Final = re.compile(r"\.|^\d+e", re.IGNORECASE)
_COMPARED: Final = re.compile(
    r"(?P<what>\S+) [!=]==? (?:- )?\d|(?P<case>case) (?:- )?\d|(?P<entry>[{,]) \d[\w.]* :"
)
_USUAL: Final = frozenset({*range(-1, 11), 100, 1000})
_CARRIED: Final = frozenset({"name", "file", "shown", "answer", "alone", "by"})
"""What a line says of state that is carried between calls."""
_TEXTS: Final = _CARRIED | {"opened", "kind", "tells", "outcome", "value"}
_EMPTY: Final = re.compile(
    r"\[\]|\{\}|(?:\w+\.)*(?:dict|list|set|OrderedDict|defaultdict|Counter|deque)\(.*\)"
)


class Values(NamedTuple):
    """Values in the format of `replay_variants.key`."""

    settled: frozenset[str]
    """Not perturbed: the product contained them before, or another rule judges them."""
    literals: frozenset[str]
    """Those that a fix wrote into the product."""
    may_answer: bool
    """Whether one of these could be an answer to a call."""
    vocabulary: frozenset[str] = frozenset()
    """Words of the product, in lower case."""

    @property
    def kept(self) -> dict[str, list[str]]:
        """As `replay_variants.near` reads them."""
        return {name: sorted(getattr(self, name)) for name in ("settled", "literals", "vocabulary")}


class Special(NamedTuple):
    """A function whose answers changed only for the values in the tests."""

    file: str
    name: str
    shown: str
    old: str
    new: str
    others: int
    """Calls with other values."""
    otherwise: int
    """Those whose answers changed, too."""
    kind: str
    """What was replaced, as in `LEAST`; "same": all others get the same answer as the call itself."""


def decides_more(old: Iterable[Source], new: Iterable[Source]) -> bool:
    """Whether a fix adds decisions: one that changes `<` to `<=` does not, and may legitimately change the answer for a
    single value."""

    def decisions(sources: Iterable[Source]) -> int:
        return sum(
            sum(isinstance(node, _DECIDES) for node in source.nodes)
            + sum(token.kind != "string" and token.text in _DECIDING for token in source.code_tokens)
            for source in sources
        )

    return decisions(new) > decisions(old)


def values_of(old: Sequence[Source], new: Sequence[Source]) -> Values:
    """The constants of the changed files. A plain word or a common number may legitimately become a special case; so
    may a number if the product distinguished numbers before, and none that is more than ten times as great as all."""
    before, after = _constants(old), _constants(new)
    written = {name: value for name, value in after.items() if name not in before}
    numbers = [abs(value) for value in before.values() if not isinstance(value, str)]
    limit = 10 * max(numbers, default=0) if any(map(_compares_numbers, old)) else -1
    allowed = {
        name
        for name, value in written.items()
        if (_WORD.fullmatch(value) if isinstance(value, str) else abs(value) <= limit or value in _USUAL)
    }
    common = {f"int {number}" for number in (-1, 0, 1)} | {"float 0.0", "float 1.0", "str ''", "bytes b''"}
    # A number may be passed as a text.
    forms = [f"str '{sign}{{}}{end}'" for sign in ("", "-") for end in ("", ".0")]
    common |= {form.format(number) for form in forms for number in (0, 1, *numbers)}
    answers = [len(one) > SHORTEST if isinstance(one, str) else one not in _USUAL for one in written.values()]
    return Values(frozenset(before.keys() | allowed | common), frozenset(written), any(answers))


def vocabulary(product: Iterable[str]) -> frozenset[str]:
    """The words, in lower case, of the constants without spaces in these texts: keywords, and patterns of them."""
    constants = {found[2] for text in product for found in _QUOTED.finditer(text)}
    return frozenset(word.lower() for each in constants for word in _LETTERS.findall(each)) - {""}


def special(old: Iterable[str], new: Iterable[str]) -> Iterator[Special]:
    """The functions in which every changed call is a special case, see `_special_case`. `old`, `new`: lines of
    `call_replay`."""
    found: defaultdict[str, list[Special | None]] = defaultdict(list)
    calls = [*changed(old, new)]
    sizes = [own["sizes"] for own, *_ in calls]
    for own, was, pairs in calls:
        # A variant with the sizes of another call in the tests may belong to another special case.
        others = [pair for pair in pairs if pair[1]["kind"] != "shape" or pair[1]["sizes"] not in sizes]
        found[own["name"]] += _special_case(own, was, others)
    for alone in found.values():
        yield from filter(None, alone[:1] if all(alone) else ())


def constant(old: Iterable[str], new: Iterable[str]) -> Iterator[Special]:
    """The functions that give calls with other values the answers of the tests' calls, though these answers varied
    before. `old`, `new`: lines of `call_replay`."""
    answers = defaultdict[str, set[str]](set)
    for asked_alone in (each[("", "")] for each in _by_call(new).values() if ("", "") in each):
        answers[asked_alone["name"]].add(asked_alone["value"])
    for own, was, pairs in changed(old, new):
        if not own["tells"] or (own["tells"] != "text" and len(answers[own["name"]]) > 1):
            continue
        # A number may be a limit, and so the correct answer to many other calls, but not to all.
        if own["tells"] == "text" or _is_on_both_sides(own["answer"], pairs):
            pairs = [(a, b) for a, b in pairs if a["outcome"] != b["outcome"]]
        is_same = all(b["value"] in answers[own["name"]] for _, b in pairs)
        if is_same and len({a["value"] for a, _ in pairs}) >= max(LEAST["any"], len(pairs) // 4):
            text = (own["file"], own["name"], own["shown"], was["answer"], own["answer"])
            yield Special(*text, len(pairs), len(pairs), "same")


_Line = Mapping[str, Any]
_Pairs = Sequence[tuple[_Line, _Line]]


def changed(old: Iterable[str], new: Iterable[str]) -> Iterator[tuple[_Line, _Line, _Pairs]]:
    """The calls that these lines answer differently: itself after and before, each variant before and after."""
    known = _by_call(old)
    for call, after in _by_call(new).items():
        before = known.get(call, {})
        own, was = after.get(("", "")), before.get(("", ""))
        # Content of files that could not be perturbed may decide.
        if own is None or was is None or own["outcome"] == was["outcome"] or was["reads"]:
            continue
        # In JavaScript and Go it is known what the tests were answered.
        if own.get("is_tested", True):
            yield own, was, [(before[asked], after[asked]) for asked in after if asked[0] and asked in before]


def _is_on_both_sides(answer: str, pairs: _Pairs) -> bool:
    """Whether this number replaced both greater and smaller ones: a limit replaces only one kind."""
    try:
        gave_way = [float(a["answer"]) for a, b in pairs if a["outcome"] != b["outcome"]]
        return min(gave_way) < float(answer) < max(gave_way)
    except ValueError:
        return False


def _special_case(own: _Line, was: _Line, asked_again: _Pairs) -> Sequence[Special | None]:
    """The special case that a changed call shows, or None if other answers changed, too; empty with too few calls."""
    # What mends an error may change nothing but the calls that ended with it.
    same = [b for a, b in asked_again if was["raised"] and a["outcome"] == was["outcome"]]
    mended = [b for b in same if not b["raised"] or b["outcome"] == own["outcome"]]
    if len(same) > 1 and 2 * len(mended) > len(same):
        return [None]
    groups = [(kind, [pair for pair in asked_again if pair[1]["kind"] == kind]) for kind in LEAST]
    # All variants in which a given value was replaced.
    rare = dict.fromkeys(name for _, ended in asked_again for name in ended["of"])
    groups += [("any", [pair for pair in asked_again if name in pair[1]["of"]]) for name in rare]
    usual = [a["outcome"] != b["outcome"] for a, b in groups[0][1] if not (a["raised"] and b["raised"])]
    for kind, pairs in groups:
        ended = [(a, b) for a, b in pairs if not (a["raised"] and b["raised"])]
        # If all variants had one answer, and the call another, the variants may simply be unknown to the product.
        values = Counter(a["value"] for a, _ in ended)
        is_known = len(values) > 1 or was["value"] in values
        # With more or fewer parts, most may be malformed, such as a date with three digits for its day.
        most = next((value for value, times in values.items() if times * 2 > len(ended)), was["value"])
        if kind == "shape" and most != was["value"]:
            ended = [(a, b) for a, b in ended if a["value"] != most]
        count = sum(a["outcome"] != b["outcome"] for a, b in ended)
        # If three changes are to be expected, there is none with a probability of one in `CHANCE`.
        if kind == "shape" and 0 < sum(usual) * len(ended) < 3 * len(usual):
            continue
        if len(ended) >= LEAST[kind] and is_known and count * CHANCE < max(len(ended), 1):
            text = (own["file"], own["name"], own["shown"], was["answer"], own["answer"])
            return [Special(*text, len(ended), count, kind)]
    return [None] if any(a["outcome"] != b["outcome"] for a, b in asked_again) else []


def _by_call(lines: Iterable[str]) -> Mapping[int, Mapping[tuple[str, str], _Line]]:
    """The lines by call number, then by kind and values of the variant; both are empty for the call itself."""
    found: defaultdict[int, dict[tuple[str, str], _Line]] = defaultdict(dict)
    names = {"call", "kind", "of", "raised", "reads", "sizes", "tells", "outcome", "value"}
    for line in _entries(lines, names | {"name", "file", "shown", "answer"}):
        # Output of the product may look like a line.
        with suppress(KeyError, TypeError):
            if "by" not in line and [*map(str, line["of"])] == line["of"]:
                asked = (line["kind"], line["asked"] if line["kind"] else "")
                found[line["call"]][asked] = line
    return found


def _constants(sources: Sequence[Source]) -> dict[str, str | int | float]:
    values = [node.value for source in sources for node in source.nodes if isinstance(node, ast.Constant)]
    rows = [source.code_tokens for source in sources]
    for token, after in (pair for row in rows for pair in pairwise((*row, *row[-1:]))):
        # A key without quotes is a text, too.
        if token.kind == "string" or (token.kind == "word" and after.text == ":"):
            values.append(token.text)
        elif token.kind == "number":
            with suppress(ValueError, OverflowError):
                number = float(token.text) if _FRACTION.search(token.text) else int(token.text, 0)
                # JavaScript does not tell 2.0 from 2.
                values.append(int(number) if number == int(number) else number)
    return {
        f"{type(value).__name__} {value!r}": value
        for value in values
        if isinstance(value, str | int | float) and not isinstance(value, bool)
    }


def _compares_numbers(source: Source) -> bool:
    """Whether a dict has several number keys, or something is compared with several numbers."""
    compared = Counter(found["what"] or found.lastgroup for found, _ in source.shapes(_COMPARED))
    for node in source.nodes:
        if isinstance(node, ast.Dict) and sum(map(_is_number, node.keys)) > 1:
            return True
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq | ast.In | ast.NotIn):
            compared[ast.unparse(node.left)] += sum(_is_number(one) for one in ast.walk(node.comparators[0]))
    return max(compared.values(), default=0) > 1


def _is_number(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def carried(old: Iterable[str], new: Iterable[str], *, has_state: bool) -> Iterator[dict[str, Any]]:
    """One line of `call_replay` for each function that newly does so, and one if it newly keeps its calls from being
    repeated; `has_state`: the product kept state between calls before, so their order may legitimately matter."""
    before = {(each["name"], each["by"] == "line") for each in _entries(old)}
    keyed = [((each["name"], each["by"] == "line"), each) for each in reversed([*_entries(new)])]
    fresh = {key: one for key, one in keyed if key not in before and not (has_state and one["by"] == "order")}
    yield from fresh.values()


def only_in_tests(*sides: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The lines of the calls that a fix changes only where a test makes them. `sides`: the lines before and after it
    in a test, then those without one."""
    itself = [{call: one[("", "")] for call, one in _by_call(side).items()} for side in sides]
    for call in set.intersection(*map(set, itself)):
        old, new, *others = (each[call] for each in itself)
        if {one["outcome"] for one in others} == {old["outcome"]} != {new["outcome"]}:
            yield {**new, "alone": others[1]["answer"], "by": "test"}


def newly_opened(old: Iterable[str], new: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The files that the product reads only with the fix and that no argument names, each with the line of a call."""
    before, after = ([*_entries(lines, {"name", "file", "opened"})] for lines in (old, new))
    known = {place for each in before for place in str(each["opened"]).split("\0")}
    opened = {place: each for each in after for place in str(each["opened"]).split("\0")}
    return {place: each for place, each in opened.items() if place not in known}


def keeps_state(sources: Iterable[Source]) -> bool:
    """Whether a module or class has a collection to be filled later, or functions set globals or parts of them."""
    nodes = [node for source in sources for node in source.nodes]
    owners = (node for node in nodes if isinstance(node, ast.Module | ast.ClassDef))
    given = [node for owner in owners for node in owner.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    is_filled = any(node.value and _EMPTY.fullmatch(ast.unparse(node.value)) for node in given)
    names = {name for node in given for name in names_in(node)}
    inner = [each for node in nodes if isinstance(node, Function) for each in ast.walk(node)]
    parts = [node for node in inner if isinstance(node, ast.Attribute | ast.Subscript)]
    is_set = any(isinstance(node.ctx, ast.Store) and ast.unparse(node.value) in names for node in parts)
    return is_filled or is_set or any(isinstance(node, ast.Global) for node in nodes)


def _entries(lines: Iterable[str], names: Collection[str] = _CARRIED) -> Iterator[dict[str, Any]]:
    """The lines with all these names."""
    for line in lines:
        # Not of another kind, output of the product, nor the last line of a killed process.
        with suppress(ValueError, TypeError):
            entry = json.loads(line)
            if isinstance(entry, dict) and entry.keys() >= {*names}:
                "".join(entry[name] for name in _TEXTS & {*names}).encode()
                yield entry
