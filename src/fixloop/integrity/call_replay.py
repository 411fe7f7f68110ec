"""Replays recorded calls of the product, and variants with perturbed values, with the fix and without it.

The project's interpreter runs it with `replay_variants` next to it, so it imports nothing else of fixloop.
Each side is a separate process; both generate the same perturbed values. An audit hook blocks file writes, new
processes and connections. The script writes one line per call, in the format that `fixloop.integrity.perturbed` reads.
"""

import contextlib
import copy
import enum
import importlib
import io
import itertools
import json
import operator
import os
import pickle
import re
import shutil
import signal
import struct
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from traceback import walk_stack
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fixloop.integrity import replay_variants as variants
else:
    # The environment may leave the script's folder out.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import replay_variants as variants

CALL_SECONDS = 0.3
ORDER_SECONDS = 0.5
"""For all calls in one order."""
SHOWN_CHARACTERS = 300
_REFUSED = ("socket.", "subprocess.", "shutil.", "ctypes.", "ftplib.", "smtplib.", "sqlite3.", "tempfile.")
_REFUSED_OF_OS = re.compile(
    r"os\.(system|exec|posix_spawn|spawn|fork|forkpty|kill|killpg|remove|rename|rmdir|mkdir|link|symlink|truncate"
    r"|chmod|chown|utime|setxattr)"
)
_LOADERS = ("_bootstrap_external>", "linecache.py", "tokenize.py", "rewrite.py")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
Call = tuple[bytes, bytes]
"""The pickled call, and the pickled `sys.path` at the time."""


class TooLong(BaseException):
    """A call exceeded its time limit."""


def main() -> None:
    job = json.loads(Path(__file__).with_name("replay").read_bytes())
    recorded = list(dict.fromkeys(_calls(job["calls"])))
    calls, files = [each for each in recorded if each[1]], _files(recorded)
    absent = [place for place in files if not os.path.exists(place)]
    job["settled"] += map(variants.key, files)
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

    def asked(kind: str, given: variants.Given, texts: dict[str, str], of: list[str]) -> dict[str, Any]:
        watch.refuses = False
        for place, text in (files | texts).items():
            with contextlib.suppress(OSError):
                os.makedirs(os.path.dirname(place), exist_ok=True)
                Path(place).write_text(text, encoding="utf-8")
        watch.refuses = True
        watch.read.clear()
        watch.refused.clear()
        line = {**about, "kind": kind, "of": of, **_result(function, given, own)}
        line |= {"asked": variants.digest((given, texts)), "sizes": sorted(variants.sizes(given))}
        return {**line, "reads": not watch.read <= files.keys()}

    # Also what the module read when it was imported.
    opened, given = {*watch.read}, variants.plain((values, named))
    own_line = asked("", (values, named), {}, [])
    opened |= watch.read
    own_line["opened"] = "\0".join(each for each in opened if os.path.basename(each) not in given)
    yield own_line
    yield from [{**own_line, "alone": place, "by": "line"} for place in watch.refused]
    bare = [*map(_builtin_value, values)]
    if any(map(operator.is_not, values, bare)):
        plainly = asked("", (bare, named), {}, [])
        # The function may legitimately need an attribute.
        if plainly["value"] not in (own_line["value"], "AttributeError", "TypeError"):
            yield {**own_line, "alone": plainly["answer"], "by": "value"}
    if number not in job["varied"]:
        return
    used = sorted(watch.read & files.keys())
    asked_of = [*values, [files[place] for place in used]] if used else values
    for kind, (others, words), of in variants.near(asked_of, named, number, job):
        texts = dict(zip(used, others[-1])) if used else {}
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


def _result(function: Callable[..., Any], given: variants.Given, own: Collection[str]) -> dict[str, Any]:
    values, named = copy.deepcopy(given)
    signal.setitimer(signal.ITIMER_REAL, CALL_SECONDS)
    try:
        with contextlib.redirect_stdout(io.StringIO()) as output:
            answer = _awaited(function(*values, **named))
        value, text = variants.plain(answer) + output.getvalue(), variants.plain((values, named))
        result = {"raised": False, "outcome": variants.short_hash(value + text)}
        result |= {"value": variants.short_hash(value), "answer": repr(answer)[:SHOWN_CHARACTERS]}
        result["tells"] = variants.tells(given, answer, output.getvalue(), own)
    except BaseException as error:
        name = type(error).__name__
        result = {"raised": True, "outcome": name, "value": name, "answer": f"raises {name}", "tells": ""}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return result


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


if __name__ == "__main__":
    main()
