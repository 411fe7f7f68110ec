"""Recorded calls of JavaScript functions, their variants, and what two trees answered, in the format of `perturbed`.

Pure. Everything it reads was written by code of a project and may be anything: what does not fit is left out.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

from fixloop.integrity.call_replay import digest, near, sizes, tells

MOST_CALLS: Final = 500
MOST_VARIANTS: Final = 6000
SHOWN_CHARACTERS: Final = 300
_STRANGE: Final = (ValueError, TypeError, AttributeError, KeyError, IndexError, RecursionError)

Answers = Mapping[tuple[int, int], SimpleNamespace]
"""By the number of the call and of its variant; 0 is the call itself."""


class Call(NamedTuple):
    """A call of an exported function, or several calls of an object since it was made."""

    places: Sequence[tuple[str, str, bool]]
    """Where the function is exported: file, name and whether that is an ES module; first its own module."""
    steps: Sequence[tuple[str, int]]
    """Each call's kind (`()`, `make`, `new`, `.method`) and number of arguments."""
    given: list[Any]
    """The arguments of all steps. Objects are namespaces: their keys are names, which are not varied."""
    answer: str

    def asked(self, given: Sequence[Any]) -> list[Any]:
        """The steps with these arguments, as `replay.cjs` reads them."""
        values = iter(given)
        return [[how, list(islice(values, count))] for how, count in self.steps]

    @property
    def name(self) -> str:
        stem = self.places[0][0].rpartition("/")[2].partition(".")[0]
        return ".".join(filter(None, (stem, self.places[0][1], self.steps[-1][0].strip("()"))))

    @property
    def shown(self) -> str:
        own = self.places[0][1] or self.places[0][0].rpartition("/")[2].partition(".")[0]
        texts: list[str] = []
        for how, values in self.asked(self.given):
            listed = ", ".join(json.dumps(value, default=vars, ensure_ascii=False) for value in values)
            before = f"new {own}" if how == "new" else how if how[0] == "." else "" if texts else own
            texts.append(f"{before}({listed})")
        return "".join(texts)[:SHOWN_CHARACTERS]


class Variant(NamedTuple):
    """Arguments of a call, as `call_replay.near` makes them."""

    kind: str
    given: list[Any]
    of: list[str]


def itself(call: Call) -> Variant:
    return Variant("", call.given, [])


def calls_of(lines: Iterable[str], files: Collection[str]) -> list[Call]:
    """The calls that `recorder.cjs` wrote, each once, of functions in these files."""
    found: dict[str, Call] = {}
    for line in dict.fromkeys(lines):
        with suppress(*_STRANGE):
            places, steps, answer = json.loads(line, object_hook=lambda named: SimpleNamespace(**named))
            steps = [(str(how), list(values)) for how, values in steps]
            places = [(str(file), str(name), bool(is_module)) for file, name, is_module in places]
            given = [value for _, values in steps for value in values]
            call = Call(places, [(how, len(values)) for how, values in steps], given, str(answer))
            if all(place[0] in files for place in places) and all(how for how, _ in steps) and places:
                found.setdefault(digest((places, call.steps, given)), call)
    return list(found.values())[:MOST_CALLS]


def variants(
    calls: Mapping[int, Call], settled: Collection[str], literals: Collection[str]
) -> dict[int, list[Variant]]:
    """The variants of each call, by its number; the call itself comes first."""
    job, found, count = {"settled": settled, "literals": literals}, dict[int, list[Variant]](), 0
    rank = Counter[str]()
    # First one call of each function, then the second ones.
    for number in sorted(
        calls, key=lambda number: rank.update([calls[number].name]) or rank[calls[number].name]
    ):
        call = calls[number]
        made = [itself(call)]
        with suppress(*_STRANGE, OverflowError):
            made += [Variant(kind, given[0], of) for kind, given, of in near(call.given, {}, number, job)]
        count += len(made)
        if count <= MOST_VARIANTS:
            found[number] = made
    return found


def job_of(calls: Mapping[int, Call], asked: Mapping[int, Sequence[Variant]]) -> str:
    """The calls and variants for `replay.cjs`, in their order."""
    each = [
        {"places": calls[number].places, "asked": [calls[number].asked(one.given) for one in made]}
        for number, made in asked.items()
    ]
    return json.dumps(each, default=vars)


def answers_of(lines: Iterable[str], numbers: Sequence[int]) -> dict[tuple[int, int], SimpleNamespace]:
    """What `replay.cjs` wrote; `numbers`: the calls' numbers, in the order of the job."""
    found = {}
    for line in lines:
        with suppress(*_STRANGE):
            place, _, text = line.partition(" ")
            number, variant = json.loads(place)
            answer = SimpleNamespace(**json.loads(text))
            value = digest(answer.text + answer.said)
            answer.value, answer.outcome = value, digest(answer.text + answer.said + answer.after)
            answer.leaves = [leaf for leaf in answer.leaves if isinstance(leaf, int | float | str)]
            found[numbers[number], int(variant)] = answer
    return found


def changed(calls: Sequence[Call], old: Answers, new: Answers) -> dict[int, Call]:
    """The calls that both trees answer, the new one as in the tests, and not alike."""
    return {
        number: call
        for number, call in enumerate(calls)
        if (number, 0) in old
        and (number, 0) in new
        # An iterator that a test received was not read.
        and call.answer in (new[number, 0].text, "iterator")
        and old[number, 0].outcome != new[number, 0].outcome
    }


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
        told = "" if answer.raised else tells(given, answer.leaves, answer.said, own)
        value = answer.text if answer.raised else answer.value
        yield json.dumps(
            about | {"value": value, "outcome": value if answer.raised else answer.outcome, "tells": told}
        )
