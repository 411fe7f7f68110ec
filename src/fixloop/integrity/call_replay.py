"""Replays recorded calls of the product, and variants with perturbed values, with the fix and without it.

The project's interpreter runs it as a script, so it imports nothing from fixloop. Each side is a separate process; both
generate the same perturbed values. An audit hook blocks file writes, new processes and connections. The script writes
one line per call, in the format that `fixloop.integrity.perturbed` reads.
"""

import contextlib
import copy
import enum
import hashlib
import importlib
import io
import itertools
import json
import os
import pickle
import random
import re
import shutil
import signal
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from traceback import walk_stack
from types import SimpleNamespace
from typing import Any

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
KINDS = (*DIGITS, "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
CALL_SECONDS = 0.3
ORDER_SECONDS = 0.5
"""For all calls in one order."""
DEEPEST = 12
SHOWN_CHARACTERS = 300
_REFUSED = ("socket.", "subprocess.", "shutil.", "ctypes.", "ftplib.", "smtplib.", "sqlite3.", "tempfile.")
_REFUSED_OF_OS = re.compile(
    r"os\.(system|exec|posix_spawn|spawn|fork|forkpty|kill|killpg|remove|rename|rmdir|mkdir|link|symlink|truncate"
    r"|chmod|chown|utime|setxattr)"
)
_LOADERS = ("_bootstrap_external>", "linecache.py", "tokenize.py")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_WORD = re.compile(r"(str|bytes) b?'[\w.-]{0,24}'")
_LETTERS = re.compile(r"([^\W\d_]+)")
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
_NUMBER = re.compile(r"\d+")
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_SUBSTRING = re.compile(r"(?=([^\W_]{3}))")
NUMBERS = (int, float, Decimal, Fraction)
USUAL = frozenset({*range(-1, 11), 100, 1000})
Given = tuple[list[Any], dict[str, Any]]
Call = tuple[bytes, bytes]
"""The pickled call, and the pickled `sys.path` at the time."""


class TooLong(BaseException):
    """A call exceeded its time limit."""


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_bytes())
    recorded = list(_calls(job["calls"]))
    calls, files = [each for each in recorded if each[1]], _files(recorded)
    absent = [place for place in files if not os.path.exists(place)]
    job["settled"] += map(key, files)
    for side in ("new", "old"):
        for path, text in job["before" if side == "old" else "after"].items():
            if os.path.lexists(path):
                os.unlink(path)
            if text is not None:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                shutil.copyfile(text, path)
                # Bytecode caches compare size and mtime in seconds: no other file has this mtime.
                os.utime(path, (978307200, 978307200))
        out = os.open(job[side], os.O_WRONLY | os.O_CREAT, 0o600)
        child = os.fork()
        if child == 0:
            try:
                _replay(calls, files, job, out)
            finally:
                os._exit(0)
        os.close(out)
        until = time.monotonic() + job["seconds"] + 5
        while os.waitpid(child, os.WNOHANG)[0] == 0:
            if time.monotonic() > until:
                os.kill(child, signal.SIGKILL)
            time.sleep(0.005)
    for place in absent:
        with contextlib.suppress(OSError):
            os.unlink(place)
            os.removedirs(os.path.dirname(place))


def _calls(folder: str) -> Iterator[Call]:
    for name in sorted(os.listdir(folder)):
        data, at = Path(folder, name).read_bytes(), 0
        while at + 8 <= len(data):
            size, path = struct.unpack_from("<II", data, at)
            yield data[at + 8 : at + 8 + size], data[at + 8 + size : at + 8 + size + path]
            at += 8 + size + path


def _replay(calls: list[Call], files: dict[str, str], job: dict[str, Any], to: int) -> None:
    seconds: float = job["seconds"]
    watch = SimpleNamespace(refuses=False, refused=[], read=set())
    until = time.monotonic() + 2 * seconds

    def is_left(_each: Any) -> bool:
        # A busy machine must not shorten the list; calls that sleep must not prolong it.
        return time.process_time() < seconds and time.monotonic() < until

    def audit(event: str, arguments: Any) -> None:
        is_write = event == "open" and (
            any(each in str(arguments[1] or "") for each in "wax+") or bool((arguments[2] or 0) & _WRITES)
        )
        if watch.refuses and (is_write or event.startswith(_REFUSED) or _REFUSED_OF_OS.fullmatch(event)):
            rows = ((os.path.realpath(frame.f_code.co_filename), row) for frame, row in walk_stack(None))
            # The innermost one in a changed file.
            watch.refused += [f"{file}:{row}" for file, row in rows if file in job["before"]][:1]
            raise PermissionError(event)
        place = arguments[0] if event == "open" and not is_write else 0
        if not isinstance(place, int) and not sys._getframe(1).f_code.co_filename.endswith(_LOADERS):
            watch.read.add(os.path.abspath(os.fsdecode(place)))

    def late(_number: int, _frame: Any) -> None:
        raise TooLong

    sys.dont_write_bytecode = True
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    signal.signal(signal.SIGALRM, late)
    sys.addaudithook(audit)

    def write(lines: Iterator[dict[str, Any]]) -> None:
        for line in itertools.takewhile(is_left, lines):
            os.write(to, f"{json.dumps(line)}\n".encode())

    replay_call = partial(_replayed_call, files=files, job=job, watch=watch)
    with contextlib.suppress(BaseException):
        write(_order_dependent([] if job["varied"] else calls, replay_call))
    for number, call in itertools.takewhile(is_left, enumerate(calls)):
        try:
            if number in job["varied"] or not job["varied"]:
                write(replay_call(number, call))
        except BaseException:
            continue  # A call that cannot be replayed proves nothing.
        finally:
            watch.refuses = False
            watch.read.clear()


def _order_dependent(
    calls: list[Call], replay_call: Callable[..., Iterator[dict[str, Any]]]
) -> Iterator[dict[str, Any]]:
    """A line for each call whose answer changes when the calls after it run first. Calls that return None are left
    out: their purpose is to change later answers."""
    for call, path in calls:
        # Import once for all orders.
        sys.path[:] = pickle.loads(path)
        with contextlib.suppress(Exception):
            _function(*pickle.loads(call)[1::-1])
    in_order = _in_order(range(len(calls)), calls, replay_call)
    telling = [number for number, line in in_order.items() if line["answer"] != "None"]
    reversed_order = _in_order(telling[::-1], calls, replay_call)
    differs = any(line["outcome"] != in_order[number]["outcome"] for number, line in reversed_order.items())
    again = _in_order(telling, calls, replay_call) if differs else {}
    for number in sorted(again.keys() & reversed_order.keys()):
        if in_order[number]["outcome"] == again[number]["outcome"] != reversed_order[number]["outcome"]:
            yield {**in_order[number], "alone": reversed_order[number]["answer"], "by": "order"}


def _in_order(
    order: Sequence[int], calls: list[Call], replay_call: Callable[..., Iterator[dict[str, Any]]]
) -> dict[int, dict[str, Any]]:
    """The results of these calls, made one after the other in a separate process."""
    until = time.monotonic() + ORDER_SECONDS
    from_child, to_parent = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException), open(to_parent, "w") as pipe:
            for number in order:
                with contextlib.suppress(Exception):
                    pipe.write(f"{json.dumps([number, next(replay_call(number, calls[number]))])}\n")
                if time.monotonic() > until:
                    break
        os._exit(0)
    os.close(to_parent)
    with open(from_child) as pipe:
        found = dict(map(json.loads, pipe))
    os.waitpid(child, 0)
    return found


def _replayed_call(
    number: int, call: Call, files: dict[str, str], job: dict[str, Any], watch: Any
) -> Iterator[dict[str, Any]]:
    """A line for the call and for each variant that is wanted; texts of files that it reads vary like arguments."""
    sys.path[:] = pickle.loads(call[1])
    file, places, values, named = pickle.loads(call[0])
    function, name = _function(places, file), places[0].replace(":", ".")
    # Copying, changing or printing a value can call the product, too.
    watch.refuses = True
    parts = [*map(repr, values), *(f"{word}={value!r}" for word, value in named.items())]
    shown = f"{name.rpartition('.')[2]}({', '.join(parts)})"[:SHOWN_CHARACTERS]
    about = {"call": number, "file": file, "name": name, "shown": shown}
    own = frozenset(job["settled"]).difference(job["literals"])

    def asked(kind: str, given: Given, texts: dict[str, str], of: list[str]) -> dict[str, Any]:
        watch.refuses = False
        for place, text in (files | texts).items():
            with contextlib.suppress(OSError):
                os.makedirs(os.path.dirname(place), exist_ok=True)
                Path(place).write_text(text, encoding="utf-8")
        watch.refuses = True
        watch.read.clear()
        watch.refused.clear()
        line = {**about, "kind": kind, "of": of, **_result(function, given, own)}
        line |= {"asked": digest((given, texts)), "sizes": sorted(sizes(given))}
        return {**line, "reads": not watch.read <= files.keys()}

    opened, given = {*watch.read}, plain((values, named))  # also what the module read when it was imported
    own_line = asked("", (values, named), {}, [])
    opened |= watch.read
    own_line["opened"] = "\0".join(each for each in opened if os.path.basename(each) not in given)
    yield own_line
    yield from [{**own_line, "alone": place, "by": "line"} for place in watch.refused]
    bare = [*map(_builtin_value, values)]
    if any(a is not b for a, b in zip(values, bare, strict=True)):
        plainly = asked("", (bare, named), {}, [])
        # The function may legitimately need an attribute.
        if plainly["value"] not in (own_line["value"], "AttributeError", "TypeError"):
            yield {**own_line, "alone": plainly["answer"], "by": "value"}
    if number not in job["varied"]:
        return
    used = sorted(watch.read & files.keys())
    asked_of = [*values, [files[place] for place in used]] if used else values
    for kind, (others, words), of in near(asked_of, named, number, job):
        texts = dict(zip(used, others[-1], strict=True)) if used else {}
        yield asked(kind, (others[: len(values)], words), texts, of)


def _builtin_value(value: Any) -> Any:
    """An instance of a subclass of a number or text type as a plain built-in value; other values as is."""
    is_more = getattr(value, "__dict__", None) and not isinstance(value, enum.Enum)
    kind: Any = next((each for each in (str, bytes, int, float) if is_more and isinstance(value, each)), None)
    return kind.__getnewargs__(value)[0] if kind else value


def _files(calls: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """The texts of the files that were read, except files that had several texts."""
    found: dict[str, set[bytes]] = {}
    for place, data in (pickle.loads(payload) for payload, path in calls if not path):
        found.setdefault(place, set()).add(data)
    return {place: each.pop().decode("utf-8", "replace") for place, each in found.items() if len(each) == 1}


def _result(function: Callable[..., Any], given: Given, own: Collection[str]) -> dict[str, Any]:
    values, named = copy.deepcopy(given)
    signal.setitimer(signal.ITIMER_REAL, CALL_SECONDS)
    try:
        with contextlib.redirect_stdout(io.StringIO()) as output:
            answer = _awaited(function(*values, **named))
        value, text = plain(answer) + output.getvalue(), plain((values, named))
        result = {"raised": False, "outcome": _short_hash(value + text), "value": _short_hash(value)}
        result["answer"] = repr(answer)[:SHOWN_CHARACTERS]
        result["tells"] = tells(given, answer, output.getvalue(), own)
    except BaseException as error:
        name = type(error).__name__
        result = {"raised": True, "outcome": name, "value": name, "answer": f"raises {name}", "tells": ""}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return result


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


def _awaited(answer: Any) -> Any:
    """The result of a coroutine that waits for nothing external (raises TooLong if it does); other answers as is."""
    if type(answer).__name__ != "coroutine":
        return answer
    try:
        while answer.send(None) is None:
            pass
    except StopIteration as ended:
        return ended.value
    answer.close()
    raise TooLong


def _function(places: list[str], file: str) -> Callable[..., Any]:
    """The callable under the first of these names that exists, unwrapped to the function from `file`; raises
    LookupError if there is none."""
    for place in places:
        module, _, name = place.partition(":")
        with contextlib.suppress(ImportError, KeyError):
            found: Any = importlib.import_module(module)
            for part in name.split("."):
                found = vars(found)[part]
                found = getattr(found, "__func__", None) or getattr(found, "fget", None) or found
            while hasattr(found, "__wrapped__"):
                code = getattr(found, "__code__", None)
                if code is not None and os.path.realpath(code.co_filename) == file:
                    break
                found = found.__wrapped__
            if callable(found):
                return found  # type: ignore[no-any-return]
    raise LookupError(places[0])


def near(
    values: list[Any], named: dict[str, Any], seed: int, job: dict[str, Any]
) -> Iterator[tuple[str, Given, list[str]]]:
    """The perturbed arguments, and the replaced values that are rarely a special case. Equal values stay equal; texts
    keep their length and punctuation. `job["settled"]` are values that stay, `job["literals"]` those that a fix
    wrote into the product, and `job["vocabulary"]` words that stay within longer texts in some variants."""
    leaves: dict[str, Any] = {}
    rebuilt((values, named), lambda leaf: leaves.setdefault(key(leaf), leaf))
    settled, literals, vocabulary = (set(job[name]) for name in ("settled", "literals", "vocabulary"))
    chance = random.Random(seed)
    free = {name: leaf for name, leaf in leaves.items() if name not in settled}
    texts = {name: leaf for name, leaf in free.items() if isinstance(leaf, (str, bytes))}
    numbers = {name: leaf for name, leaf in free.items() if name not in texts}
    # A count or a limit depends on the length of other values; a word may be a special case.
    limits = [name for name, leaf in numbers.items() if isinstance(leaf, int) and abs(leaf) <= LIMIT][:LEAVES]
    written = [leaves[name] for name in leaves if name in literals][:LEAVES]
    words = {leaf for name, leaf in leaves.items() if name in settled}
    # Some of them may be keywords, and some by chance the names in a text.
    inner = {word for leaf in texts.values() for word in _LETTERS.split(str(leaf).lower())}
    known = sorted(inner & vocabulary)
    used = sorted({letter for leaf in texts.values() for letter in str(leaf)} & {*DIGITS[0]})
    changes: list[tuple[str, dict[str, Any]]] = []
    changes += [("any", {name: shifted(leaf, by) for name, leaf in numbers.items()}) for by in SHIFTS]
    # The same day and month, also where that is 29 February.
    days = {name: leaf for name, leaf in numbers.items() if isinstance(leaf, date)}
    changes += [("any", {name: shifted(day, by * 1461 // 4) for name, day in days.items()}) for by in YEARS]
    counts = {name: leaf for name, leaf in numbers.items() if isinstance(leaf, (int, float))}
    changes += [("any", {name: leaf * times for name, leaf in counts.items()}) for times in (2, 3)]
    # With another day, a time span of seconds is another kind of span.
    spans = {name: leaf for name, leaf in numbers.items() if isinstance(leaf, timedelta)}
    changes += [("any", {name: leaf // parts for name, leaf in spans.items()}) for parts in (2, 3)]
    for _ in range(TURNS):
        for among in (texts, numbers, free):
            changes.append(("any", {name: varied(leaf, chance) for name, leaf in among.items()}))
        changes.append(("any", {name: varied(leaf, chance, DIGITS) for name, leaf in free.items()}))
        # Map each letter consistently, whatever its case: a palindrome stays one.
        letters: dict[str, str] = {}
        for kind in KINDS:
            letters |= zip(kind, chance.sample(kind, len(kind)), strict=True)
        letters |= {each.upper(): other.upper() for each, other in letters.items() if each.islower()}
        # Map the digits in their order: what was less than something else stays so.
        digits = dict(zip(used, sorted(chance.sample(*DIGITS, len(used))), strict=True))
        for other in (letters, digits):
            changes.append(("any", {name: translated(leaf, other) for name, leaf in texts.items()}))
        kept = chance.sample(known, (3 * len(known) + 3) // 4)
        keeping = {name: translated(leaf, letters, kept) for name, leaf in texts.items()}
        changes += [("any", keeping)] if known else []
    # No other letters make a text that `float` reads.
    endless = {name: leaf for name, leaf in texts.items() if _NOT_FINITE.fullmatch(str(leaf))}
    changes += [("any", {name: leaf.upper() for name, leaf in endless.items()})]
    changes += [("any", {name: leaf.title() for name, leaf in endless.items()})]
    for limit in limits:
        rest = {name: leaf for name, leaf in free.items() if name != limit}
        changes.append(("any", {name: varied(leaf, chance) for name, leaf in rest.items()}))
    steps = () if is_sought((values, named)) else (-1, -2, -3, 1, 2, 3)
    for grow, place in itertools.product(steps, ("end", "front", "middle")):
        if place == "middle":
            # Palindromes stay palindromes.
            change = {name: translated(leaf, letters, known) for name, leaf in texts.items()}
        else:
            change = {name: varied(leaf, chance) for name, leaf in free.items() if name not in limits}
        if place == "front":
            change |= {name: leaf + grow for name, leaf in numbers.items() if name in limits}
        given = replaced((values, named), change)
        made = reshaped(given, grow, place, kept=words)
        if plain(made) != plain(given):
            yield "shape", made, []
    for grow in (1, 2, 3):
        # A unit beside a number is lost in all other shapes, and so is what precedes two different ones.
        longer = rf"\g<0>{chance.randrange(10 ** (grow - 1), 10**grow)}"
        change = {name: _NUMBER.sub(longer, leaf) for name, leaf in texts.items() if isinstance(leaf, str)}
        made = replaced((values, named), change)
        if plain(made) != plain((values, named)):
            yield "shape", made, []
    for thirds, added in WIDE:
        changes.append(("wide", {name: leaf * thirds // 3 + added for name, leaf in counts.items()}))
    for _ in range(LEAVES if len(written) > 1 else 0):
        changes.append(("literal", {key(leaf): varied(leaf, chance) for leaf in written}))
    rare = {name for name, leaf in free.items() if not isinstance(leaf, int) and not _WORD.fullmatch(name)}
    for kind, change in changes:
        others = [name for name, value in change.items() if key(value) != name]
        if others:
            yield kind, replaced((values, named), change), [name for name in others if name in rare]


def is_sought(given: Given) -> bool:
    """Whether a text occurs in one that `reshaped` leaves alone, such as a key: with another length it is not found."""
    sides = ((leaf for leaf in leaves(each) if type(leaf) is str) for each in (given, reshaped(given, 1)))
    before, after = map(Counter, sides)
    return any(text in other for text in before - after for other in before & after)


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
        return _short_hash(plain(value))
    except Exception:
        return "?"


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


if __name__ == "__main__":
    main()
