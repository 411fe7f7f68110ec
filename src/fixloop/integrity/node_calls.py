"""Recorded calls of JavaScript and Go, their variants, and what two trees answered, in the format of `perturbed`.

Pure. Everything it reads was written by code of a project and may be anything: what does not fit is left out.
"""

import json
import posixpath
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from math import isfinite
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

from fixloop.integrity.replay_variants import digest, near, sizes, tells

MOST_CALLS: Final = 2000
MOST_VARIANTS: Final = 6000
SHOWN_CHARACTERS: Final = 300
_STRANGE: Final = (ValueError, TypeError, AttributeError, KeyError, IndexError, RecursionError)
_DATE: Final = "new Date"
"""The key of an object that stands for a date."""
_DEEPEST: Final = 16


class Call(NamedTuple):
    """A call of an exported function, or several calls of an object since it was made."""

    places: Sequence[tuple[str, str, bool]]
    """Where the function is exported: file, name and whether that is an ES module; first its own module."""
    steps: Sequence[tuple[str, int]]
    """Each call's kind (`()`, `make`, `new`, `.method`, `=property`) and number of arguments."""
    given: list[Any]
    """The arguments of all steps. Dates are UTC; objects are namespaces: their keys are names, which are not varied."""
    answer: str

    def asked(self, given: Sequence[Any]) -> list[Any]:
        """The steps with these arguments, as a replay reads them."""
        values = iter(given)
        return [[how, list(islice(values, count))] for how, count in self.steps]

    @property
    def _stem(self) -> str:
        return self.places[0][0].rpartition("/")[2].partition(".")[0]

    @property
    def name(self) -> str:
        how = self.steps[-1][0]
        return ".".join(filter(None, (self._stem, self.places[0][1], how[1:] if how[0] in ".=" else "")))

    @property
    def shown(self) -> str:
        own = self.places[0][1].removeprefix("default").lstrip(".") or self._stem
        texts: list[str] = []
        for how, values in self.asked(self.given):
            listed = ", ".join(json.dumps(value, default=_fields, ensure_ascii=False) for value in values)
            before = f"new {own}" if how == "new" else how if how[0] == "." else "" if texts else own
            texts.append(f".{how[1:]}" if how[0] == "=" else f"{before}({listed})")
        return "".join(texts)[:SHOWN_CHARACTERS]


class Answer(NamedTuple):
    raised: bool
    reads: bool
    """Whether the call read files, whose texts are not varied."""
    opened: str
    """Their paths, separated by NUL; with the first call also what was read when its module was loaded."""
    refused: str
    """The line of a changed file, as `file.js:12`, which did what is refused while calls are repeated."""
    text: str
    said: str
    """What it printed."""
    after: str
    """The arguments, and the object, after the call."""
    leaves: list[Any]
    """The numbers and texts in the answer."""

    @property
    def outcome(self) -> str:
        return self.text if self.raised else digest((self.text, self.said, self.after))


Answers = Mapping[tuple[int, int], Answer]
"""By the number of the call and of its variant; 0 is the call itself."""


class Variant(NamedTuple):
    """Arguments of a call, as `replay_variants.near` makes them."""

    kind: str
    given: list[Any]
    of: list[str]


def itself(call: Call) -> Variant:
    return Variant("", call.given, [])


def calls_of(lines: Iterable[str], files: Collection[str]) -> list[Call]:
    """The calls that a recorder wrote, each once, of functions in these files."""
    found: dict[str, Call] = {}
    for line in dict.fromkeys(lines):
        with suppress(*_STRANGE):
            places, steps, answer = json.loads(line, object_hook=_value)
            steps = [(str(how), list(values)) for how, values in steps]
            places = [(str(file), str(name), bool(is_module)) for file, name, is_module in places]
            given = [value for _, values in steps for value in values]
            call = Call(places, [(how, len(values)) for how, values in steps], given, str(answer))
            is_whole = places and steps and all(how for how, _ in steps) and _is_usual(given)
            if is_whole and all(place[0] in files for place in places):
                found.setdefault(digest((places, call.steps, given)), call)
    return list(found.values())[:MOST_CALLS]


def _value(fields: dict[str, Any]) -> Any:
    return datetime.fromisoformat(fields[_DATE]) if [*fields] == [_DATE] else SimpleNamespace(**fields)


def _fields(value: Any) -> dict[str, Any]:
    return {_DATE: value.isoformat()} if isinstance(value, datetime) else vars(value)


def _is_usual(value: Any, depth: int = 0) -> bool:
    """Whether a value is neither nested too deeply to be varied nor impossible in JSON."""
    if isinstance(value, float):
        return isfinite(value)
    inner = list(vars(value).values()) if isinstance(value, SimpleNamespace) else value
    parts = inner if isinstance(inner, list) else ()
    return depth < _DEEPEST and all(_is_usual(each, depth + 1) for each in parts)


def variants(calls: Mapping[int, Call], kept: dict[str, list[str]]) -> dict[int, list[Variant]]:
    """The variants of each call, by its number; the call itself comes first. `kept`: see `replay_variants.near`."""
    found, count = dict[int, list[Variant]](), 0
    turns, seen = dict[int, int](), Counter[str]()
    for number, call in calls.items():
        turns[number] = seen[call.name]
        seen[call.name] += 1
    # First one call of each function, then the second ones.
    for number in sorted(calls, key=turns.__getitem__):
        made = [itself(calls[number])]
        with suppress(*_STRANGE, OverflowError):
            varied = near(calls[number].given, {}, number, kept)
            made += [Variant(kind, given[0], of) for kind, given, of in varied if _is_usual(given[0])]
        count += len(made)
        if count <= MOST_VARIANTS:
            found[number] = made
    return found


def job_of(calls: Sequence[Call], asked: Mapping[int, Sequence[Variant]]) -> str:
    """The calls and variants for a replay, in their order."""
    each = [
        {"places": calls[number].places, "asked": [calls[number].asked(one.given) for one in made]}
        for number, made in asked.items()
    ]
    return json.dumps(each, default=_fields)


def answers_of(lines: Iterable[str], numbers: Sequence[int], files: Collection[str]) -> Answers:
    """What a replay wrote; `numbers`: the calls' numbers, in the order of the job; `files`: the changed ones."""
    found = {}
    for line in lines:
        with suppress(*_STRANGE):
            place, _, text = line.partition(" ")
            number, variant = map(int, json.loads(place))
            told = json.loads(text)
            opened, text, said, after = (str(told[name]) for name in ("opened", "text", "said", "after"))
            refused = next((one for one in told.get("refused", ()) if one.rpartition(":")[0] in files), "")
            leaves = [leaf for leaf in told["leaves"] if isinstance(leaf, int | float | str)]
            answer = Answer(
                bool(told["raised"]), bool(told["reads"]), opened, refused, text, said, after, leaves
            )
            if min(number, variant) >= 0:
                found[numbers[number], variant] = answer
    return found


def lines_of(
    calls: Sequence[Call], asked: Mapping[int, Sequence[Variant]], answers: Answers, own: Collection[str]
) -> Iterator[str]:
    """The answers as lines of `call_replay`; `own`: the product's own values, see `tells`."""
    for (number, variant), answer in answers.items():
        call, made = calls[number], asked.get(number, ())
        what = made[variant] if variant < len(made) else itself(call)
        given = (what.given, dict[str, Any]())
        about = {"call": number, "file": call.places[0][0], "name": call.name, "shown": call.shown}
        about |= {"kind": what.kind, "asked": digest(given), "of": what.of, "sizes": sorted(sizes(given))}
        about |= {"raised": answer.raised, "reads": answer.reads, "answer": answer.text[:SHOWN_CHARACTERS]}
        about |= {"outcome": answer.outcome, "value": digest((answer.text, answer.said))}
        # An iterator that a test received was not read.
        about |= {"is_tested": call.answer in (answer.text, "iterator")}
        if not variant:
            words, paths = json.dumps(call.given, default=_fields), answer.opened.split("\0")
            about["opened"] = "\0".join(each for each in paths if posixpath.basename(each) not in words)
            if answer.refused:
                yield json.dumps(about | {"alone": answer.refused, "by": "line"})
        told = "" if answer.raised else tells(given, answer.leaves, answer.said, own)
        yield json.dumps(about | {"tells": told})
