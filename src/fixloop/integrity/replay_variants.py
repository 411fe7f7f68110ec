"""Variants of a recorded call's arguments, and texts that identify values.

Copied next to `call_replay`, which the project's interpreter runs, so it imports nothing from fixloop.
"""

import copy
import hashlib
import itertools
import random
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

SHIFTS = (1, -1, 2, -2, 3, 5, -7, 10, 12, 60, 100, 200, -300, 1000)
WIDE = ((0, 0), (-3, 0), (1, 0), (30, 3))
"""Thirds of a number, and an offset: not all of the results can exceed a limit."""
YEARS = (4, 8, -4, 12, -16, 20)
ARGUMENT = 2
"""The depth of an argument within `Given`."""
LEAVES = 8
MANY = 3
"""An answer with more values, and its output, is rarely the right one for different arguments."""
TURNS = 8
LIMIT = 100
DIGITS = ("0123456789",)
LOW_DIGITS = ("012",)
"""With these, most dates and times of day stay one; with any others, few do."""
KINDS = (*DIGITS, "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
DEEPEST = 12
_WORD = re.compile(r"(str|bytes) b?'(?!\d{4}-\d\d-\d\d)[\w.-]{0,24}'")
_LETTERS = re.compile(r"([^\W\d_]+)")
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
_NUMBER = re.compile(r"\d+")
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_SUBSTRING = re.compile(r"(?=([^\W_]{3}))")
NUMBERS = (int, float, Decimal, Fraction)
USUAL = frozenset({*range(-1, 11), 100, 1000})
Given = tuple[list[Any], dict[str, Any]]


class _Free(NamedTuple):
    """The values that may be replaced, by `key`."""

    texts: dict[str, Any]
    numbers: dict[str, Any]
    limits: Collection[str]
    """Small integers. A count or a limit depends on the length of other values."""
    known: list[str]
    """Words of the texts that the product knows: keywords, or names that are the same by chance."""


def near(
    values: list[Any], named: dict[str, Any], seed: int, job: dict[str, Any]
) -> Iterator[tuple[str, Given, list[str]]]:
    """The perturbed arguments, and the replaced values that are rarely a special case. Equal values stay equal; texts
    keep their length and punctuation. `job["settled"]` are values that stay, `job["literals"]` those that a fix
    wrote into the product, and `job["vocabulary"]` words that stay within longer texts in some variants."""
    given, chance = (values, named), random.Random(seed)
    found = {key(leaf): leaf for leaf in leaves(given)}
    settled, literals, vocabulary = (set(job[name]) for name in ("settled", "literals", "vocabulary"))
    every = {name: leaf for name, leaf in found.items() if name not in settled}
    texts = {name: leaf for name, leaf in every.items() if isinstance(leaf, (str, bytes))}
    numbers = {name: leaf for name, leaf in every.items() if name not in texts}
    limits = [name for name, leaf in numbers.items() if isinstance(leaf, int) and abs(leaf) <= LIMIT][:LEAVES]
    inner = {word for leaf in texts.values() for word in _LETTERS.split(str(leaf).lower())}
    free = _Free(texts, numbers, limits, sorted(inner & vocabulary))
    changes = [*shifts(numbers)]
    for _ in range(TURNS):
        changes += replacements(free, chance)
    # No other letters make a text that `float` reads.
    endless = {name: leaf for name, leaf in texts.items() if _NOT_FINITE.fullmatch(str(leaf))}
    changes.append({name: leaf.upper() for name, leaf in endless.items()})
    changes.append({name: leaf.title() for name, leaf in endless.items()})
    for limit in limits:
        changes.append({name: varied(leaf, chance) for name, leaf in every.items() if name != limit})
    # The product would not know them with another length.
    words = {leaf for name, leaf in found.items() if name in settled}
    for made in resizings(given, free, words, chance):
        if plain(made) != plain(given):
            yield "shape", made, []
    counts = {name: leaf for name, leaf in numbers.items() if isinstance(leaf, (int, float))}
    wide = [{name: leaf * thirds // 3 + added for name, leaf in counts.items()} for thirds, added in WIDE]
    written = [name for name in found if name in literals][:LEAVES]
    turns = LEAVES if len(written) > 1 else 0
    of_literals = [{name: varied(found[name], chance) for name in written} for _ in range(turns)]
    rare = {name for name, leaf in every.items() if not isinstance(leaf, int) and not _WORD.fullmatch(name)}
    timed = [name for name in texts if name in rare][:LEAVES]
    changes += [{name: varied(texts[name], chance, LOW_DIGITS)} for name in timed for _ in range(TURNS)]
    for kind, made_so in (("any", changes), ("wide", wide), ("literal", of_literals)):
        for change in made_so:
            others = [name for name, value in change.items() if key(value) != name]
            if others:
                yield kind, replaced(given, change), [name for name in others if name in rare]


def shifts(numbers: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """All numbers, dates or time spans, changed in the same way."""
    for by in SHIFTS:
        yield {name: shifted(leaf, by) for name, leaf in numbers.items()}
    for by in YEARS:
        # The same day and month, also where that is 29 February.
        days = {name: leaf for name, leaf in numbers.items() if isinstance(leaf, date)}
        yield {name: shifted(day, by * 1461 // 4) for name, day in days.items()}
    for times in (2, 3):
        yield {name: leaf * times for name, leaf in numbers.items() if isinstance(leaf, (int, float))}
        # With another day, a time span of seconds is another kind of span.
        yield {name: leaf // times for name, leaf in numbers.items() if isinstance(leaf, timedelta)}


def replacements(free: _Free, chance: random.Random) -> Iterator[dict[str, Any]]:
    """Other values at random: some characters of each text, or all of them consistently."""
    every = free.texts | free.numbers
    for among in (free.texts, free.numbers, every):
        yield {name: varied(leaf, chance) for name, leaf in among.items()}
    yield {name: varied(leaf, chance, DIGITS) for name, leaf in every.items()}
    letters = _other_letters(chance)
    # Map the digits in their order: what was less than something else stays so.
    used = sorted({letter for leaf in free.texts.values() for letter in str(leaf)} & {*DIGITS[0]})
    digits = dict(zip(used, sorted(chance.sample(*DIGITS, len(used)))))
    for other in (letters, digits):
        yield {name: translated(leaf, other) for name, leaf in free.texts.items()}
    kept = chance.sample(free.known, (3 * len(free.known) + 3) // 4)
    if kept:
        yield {name: translated(leaf, letters, kept) for name, leaf in free.texts.items()}


def _other_letters(chance: random.Random) -> dict[str, str]:
    """Another one for each letter, whatever its case, and digit: a palindrome stays one."""
    letters: dict[str, str] = {}
    for kind in KINDS:
        letters |= zip(kind, chance.sample(kind, len(kind)))
    return letters | {each.upper(): other.upper() for each, other in letters.items() if each.islower()}


def resizings(given: Given, free: _Free, words: Collection[Any], chance: random.Random) -> Iterator[Given]:
    """The arguments with more or fewer parts and other values; `words` keep their length."""
    every, letters = free.texts | free.numbers, _other_letters(chance)
    steps = () if is_sought(given) else (-1, -2, -3, 1, 2, 3)
    for grow, place in itertools.product(steps, ("end", "front", "middle")):
        if place == "middle":
            # Palindromes stay palindromes.
            change = {name: translated(leaf, letters, free.known) for name, leaf in free.texts.items()}
        else:
            change = {name: varied(leaf, chance) for name, leaf in every.items() if name not in free.limits}
        if place == "front":
            change |= {name: free.numbers[name] + grow for name in free.limits}
        yield reshaped(replaced(given, change), grow, place, kept=words)
    for grow in (1, 2, 3):
        # A unit beside a number is lost in all other shapes, and so is what precedes two different ones.
        longer = rf"\g<0>{chance.randrange(10 ** (grow - 1), 10**grow)}"
        texts = {name: leaf for name, leaf in free.texts.items() if isinstance(leaf, str)}
        yield replaced(given, {name: _NUMBER.sub(longer, leaf) for name, leaf in texts.items()})


def tells(given: Given, answer: Any, said: str, own: Collection[str]) -> str:
    """What in an answer depends on the arguments: "text" for a part of an argument, for many values, or for a number
    where no argument is one; "number" for others. Common numbers and the product's `own` do not count."""
    asked, found = leaves(given), [*leaves(answer), said]
    runs = {run for leaf in asked if isinstance(leaf, str) for run in _SUBSTRING.findall(leaf.casefold())}
    is_part = any(run in leaf.casefold() for leaf in found if isinstance(leaf, str) for run in runs)
    if is_part or len(found) > MANY:
        return "text"
    if any(isinstance(leaf, NUMBERS) and leaf not in USUAL and key(leaf) not in own for leaf in found):
        return "number" if any(isinstance(leaf, NUMBERS) for leaf in asked) else "text"
    return ""


def leaves(value: Any) -> list[Any]:
    """The numbers and texts in a value."""
    found: list[Any] = []
    rebuilt(value, lambda leaf: found.append(leaf) or leaf)  # type: ignore[func-returns-value]
    return found


def is_sought(given: Given) -> bool:
    """Whether a text's letters occur in one that `reshaped` leaves alone, such as a key: it is not found if longer."""
    sides = ((leaf for leaf in leaves(each) if type(leaf) is str) for each in (given, reshaped(given, 1)))
    before, after = map(Counter, sides)
    kinds = (before - after, before & after)
    texts, others = ({"".join(filter(str.isalnum, one)).lower() for one in kind} for kind in kinds)
    return any(text in other for text in texts - {""} for other in others)


def replaced(given: Given, change: dict[str, Any]) -> Given:
    return rebuilt(given, lambda leaf: change.get(key(leaf), leaf))  # type: ignore[no-any-return]


def sizes(value: Any) -> Iterator[int]:
    """The length of each text and collection in a value."""
    if isinstance(value, (str, bytes, list, tuple, dict)):
        yield len(value)
    for each in value if isinstance(value, (list, tuple)) else value.values() if type(value) is dict else ():
        yield from sizes(each)


def key(leaf: Any) -> str:
    return f"{type(leaf).__name__} {leaf!r}"


def varied(leaf: Any, chance: random.Random, kinds: tuple[str, ...] = KINDS) -> Any:
    """Another value of the same type; in each line of a text, up to three characters are replaced within `kinds`."""
    if isinstance(leaf, bytes):
        return varied(leaf.decode("latin-1"), chance, kinds).encode("latin-1")
    if not isinstance(leaf, str):
        return shifted(leaf, chance.choice((1, 2, 3, 4, 6, 9)) * chance.choice((-1, 1)))
    if "\n" in leaf:
        return "\n".join(varied(line, chance, kinds) for line in leaf.split("\n"))
    of = {place: kind for place, letter in enumerate(leaf) for kind in kinds if letter in kind}
    wanted = set(chance.sample(sorted(of), min(len(of), chance.randint(1, 3))))
    return "".join(
        chance.choice(of[place].replace(letter, "")) if place in wanted else letter
        for place, letter in enumerate(leaf)
    )


def shifted(leaf: Any, by: int) -> Any:
    """Another number, date or time span; the same value on overflow."""
    try:
        return leaf + (timedelta(days=by) if isinstance(leaf, (date, timedelta)) else by)
    except ArithmeticError:
        return leaf


def reshaped(value: Any, grow: int, place: str = "end", depth: int = 0, kept: Collection[Any] = ()) -> Any:
    """A copy whose lists and texts with several parts, but for those to be kept, have more or fewer at `place`."""

    def again(each: Any) -> Any:
        return reshaped(each, grow, place, depth + 1, kept)

    if depth > DEEPEST:
        return value
    if type(value) is str and len(value) > abs(grow) + 1 and value not in kept:
        words = value.split(" ")
        if len(words) > abs(grow) + 1:
            return " ".join(_resized(words, grow, place))
        return _resized(value, grow, place)
    if type(value) in (list, tuple):
        parts = [again(each) for each in value]
        # A nested tuple usually has a fixed size.
        if len(parts) > 1 and depth > 1 and (type(value) is list or depth == ARGUMENT):
            parts = _resized(parts, grow, place) or parts[:1]
        return type(value)(parts)
    if type(value) is dict:
        return {k: again(each) for k, each in value.items()}
    if type(value).__module__ != "builtins" and isinstance(getattr(value, "__dict__", None), dict):
        made = copy.copy(value)
        made.__dict__.update({name: again(each) for name, each in vars(value).items()})
        return made
    return value


def _resized(parts: Any, grow: int, place: str) -> Any:
    if place == "middle":
        half = (len(parts) + grow + 1) // 2
        return parts[:half] + parts[half - grow :] if grow < 0 else parts * 2
    if place == "front":
        return parts[-grow:] if grow < 0 else parts[-grow:] + parts
    return parts[:grow] if grow < 0 else parts + parts[:grow]


def translated(text: Any, letters: dict[str, str], kept: Collection[str] = ()) -> Any:
    """A text with its letters and digits replaced according to `letters`, except words to be kept."""
    if isinstance(text, bytes):
        return translated(text.decode("latin-1"), letters, kept).encode("latin-1")
    parts = _LETTERS.split(text)
    return "".join(
        part if part.lower() in kept else "".join(letters.get(one, one) for one in part) for part in parts
    )


def rebuilt(value: Any, change: Callable[[Any], Any], depth: int = 0) -> Any:
    """A copy with `change` applied to each number and text."""
    if depth > DEEPEST or value is None or isinstance(value, (bool, type)):
        return value
    if type(value) in (int, float, str, bytes, Decimal, Fraction, date, datetime, timedelta):
        return change(value)
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(rebuilt(each, change, depth + 1) for each in value)
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(rebuilt(each, change, depth + 1) for each in value)
    if isinstance(value, dict):
        made = copy.copy(value)
        made.clear()
        made.update({rebuilt(k, change, depth + 1): rebuilt(v, change, depth + 1) for k, v in value.items()})
        return made
    if type(value).__module__ != "builtins" and isinstance(getattr(value, "__dict__", None), dict):
        made = copy.copy(value)
        made.__dict__.update({name: rebuilt(each, change, depth + 1) for name, each in vars(value).items()})
        return made
    return value


def plain(value: Any, depth: int = 0) -> str:
    """A canonical text of a value, the same for equal values in two processes."""
    if depth > DEEPEST:
        return "…"
    name = type(value).__name__
    if isinstance(value, (list, tuple)):
        return f"{name}[{','.join(plain(each, depth + 1) for each in value)}]"
    if isinstance(value, (set, frozenset)):
        return f"{name}[{','.join(sorted(plain(each, depth + 1) for each in value))}]"
    if isinstance(value, dict):
        pairs = (f"{plain(k, depth + 1)}:{plain(each, depth + 1)}" for k, each in value.items())
        return f"{name}[{','.join(pairs)}]"
    if hasattr(value, "__next__"):
        return f"{name}[{','.join(plain(each, depth + 1) for each in itertools.islice(value, 100))}]"
    if type(value).__module__ != "builtins" and isinstance(getattr(value, "__dict__", None), dict):
        own = "" if "__repr__" not in vars(type(value)) else repr(value)
        return f"{name}({own}{plain(vars(value), depth + 1)})"
    return f"{name} {_ADDRESS.sub('', repr(value))}"


def digest(value: Any) -> str:
    try:
        return short_hash(plain(value))
    except Exception:
        return "?"


def short_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
