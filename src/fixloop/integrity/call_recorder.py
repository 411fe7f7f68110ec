"""Records calls of product functions from outside the product, with their arguments.

It is installed as `sitecustomize.py` in a separate folder that comes first on the import path of the project's
interpreter, so it imports nothing from fixloop. It gets the list of product files and writes one file per process, call
by call, because code under test may end its process. It skips calls whose arguments cannot be pickled, and also keeps
small files in `tmp_path` that are read.
"""

import contextlib
import importlib
import json
import os
import pickle
import struct
import sys
import threading
from collections.abc import Iterator, Mapping
from types import CodeType, FrameType
from typing import Any

TOLD = "FIXLOOP_CALLS"
MOST_CALLS = 300
MOST_OF_ONE = 30
MOST_BYTES = 65536
MOST_FILES = 50
MOST_FILE_BYTES = 8192
_WRITES = os.O_WRONLY | os.O_RDWR
_TEST_FILES = os.path.join(os.environ.get("TMPDIR", "/tmp"), "pytest-of-")
_ASYNC_GENERATOR = 0x200
_VARARGS, _VARKEYWORDS = 0x04, 0x08


class _Recorder:
    def __init__(self, files: set[str], changed: set[str], out: int) -> None:
        self.files = files
        self.changed = changed
        self.out = out
        self.known: dict[str, bool] = {}
        self.seen: set[bytes] = set()
        self.counts: dict[CodeType, int] = {}
        self.own = threading.local()
        self.places: dict[CodeType, list[tuple[str, Any]]] = {}
        self.names: dict[CodeType, str] = {}
        self.repeatable: dict[CodeType, bool] = {}
        self.read: set[tuple[str, bytes]] = set()

    def is_product(self, file: str) -> bool:
        if file not in self.known:
            self.known[file] = os.path.realpath(file) in self.files
        return self.known[file]

    def record(self, code: CodeType, frame: FrameType) -> None:
        # Pickling an argument can call the product, too.
        if len(self.seen) >= MOST_CALLS or getattr(self.own, "busy", False):
            return
        is_left_out = code.co_flags & _ASYNC_GENERATOR or code.co_name in ("<module>", "<genexpr>")
        if is_left_out or self.counts.get(code, 0) >= MOST_OF_ONE:
            return
        self.own.busy = True
        try:
            above = frame.f_back
            while above is not None and self.is_product(above.f_code.co_filename):
                if self.is_repeatable(above):
                    return
                above = above.f_back
            name = self.name_of(code, frame)
            payload = _pickled(code, frame, self.called(code, frame, name), name)
        except Exception:
            return
        finally:
            self.own.busy = False
        if len(payload) <= MOST_BYTES and payload not in self.seen:
            self.seen.add(payload)
            self.counts[code] = self.counts.get(code, 0) + 1
            path = pickle.dumps([os.path.abspath(each) for each in sys.path])
            os.write(self.out, struct.pack("<II", len(payload), len(path)) + payload + path)

    def called(self, code: CodeType, frame: FrameType, name: str) -> list[str]:
        """The names by which a caller can find the callee, as `module:name`: first its definition, then other places
        in the product that hold it. Nested functions and callable objects have only the latter."""
        module, spec = (frame.f_globals.get(each) for each in ("__name__", "__spec__"))
        if module == "__main__":
            module = spec.name if spec else os.path.splitext(os.path.basename(code.co_filename))[0]
        own = f"{module}:{name}"
        # Searching all modules is slow.
        if "<" not in name and os.path.realpath(code.co_filename) not in self.changed:
            return [own]
        if code not in self.places:
            self.places[code] = [each for each in self.there(sys.modules) if _has_code(each[1], code, frame)]
        known = ((place, value) for place, value in self.places[code] if place != own)
        found = [place for place, value in known if _has_code(value, code, frame)]
        is_made = "<" in name or (found and code.co_name == "__call__")
        return found if is_made else [own, *found]

    def is_repeatable(self, frame: FrameType) -> bool:
        """Whether this call can be repeated with other values: it has some, and is neither in a script nor to what a
        decorator has made something else, such as a command. If it cannot, the calls that it makes are recorded."""
        code, module = frame.f_code, frame.f_globals.get("__name__", "")
        if code not in self.repeatable:
            name = self.name_of(code, frame)
            found = _named(frame, name)
            values = code.co_argcount + code.co_kwonlyargcount + (code.co_flags & (_VARARGS | _VARKEYWORDS))
            is_own = "<" in name or (values > 0 and _has_code(found, code, frame))
            self.repeatable[code] = is_own and module != "__main__"
        return self.repeatable[code]

    def name_of(self, code: CodeType, frame: FrameType) -> str:
        """What its module calls it: the code itself tells only from Python 3.11 on."""
        if code not in self.names:
            module = frame.f_globals.get("__name__", "")
            there = self.there({module: sys.modules.get(module)})
            found = (place.partition(":")[2] for place, value in there if _has_code(value, code, frame))
            self.names[code] = getattr(code, "co_qualname", "") or next(found, "<locals>")
        return self.names[code]

    def there(self, modules: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """The attributes of product modules and of the classes they define."""
        for module, value in list(modules.items()):
            has = getattr(value, "__dict__", {})
            if not isinstance(has.get("__file__"), str) or not self.is_product(has["__file__"]):
                continue
            for name, each in list(has.items()):
                yield f"{module}:{name}", each
                inner = vars(each) if isinstance(each, type) and each.__module__ == module else {}
                yield from [(f"{module}:{name}.{method}", what) for method, what in inner.items()]

    def opened(self, event: str, arguments: Any) -> None:
        """Keep the content of a small file in pytest's temporary folder that is opened for reading."""
        if event != "open" or getattr(self.own, "busy", False) or len(self.read) >= MOST_FILES:
            return
        place, mode, flags = arguments
        is_read = not (isinstance(place, int) or set("wax+") & set(mode or "") or (flags or 0) & _WRITES)
        file = os.path.abspath(os.fsdecode(place)) if is_read else ""
        if not file.startswith(_TEST_FILES):
            return
        self.own.busy = True
        try:
            if os.path.isfile(file) and os.path.getsize(file) <= MOST_FILE_BYTES:
                with open(file, "rb") as stream:
                    found = (file, stream.read())
                if found not in self.read:
                    self.read.add(found)
                    payload = pickle.dumps(found)
                    os.write(self.out, struct.pack("<II", len(payload), 0) + payload)
        except OSError:
            pass
        finally:
            self.own.busy = False

    def watch(self) -> None:
        sys.addaudithook(self.opened)
        if sys.version_info < (3, 12):
            threading.setprofile(self._on_profile)
            sys.setprofile(self._on_profile)
            return
        monitoring = sys.monitoring
        tool = next((each for each in (3, 4) if monitoring.get_tool(each) is None), None)
        if tool is not None:
            monitoring.use_tool_id(tool, "fixloop")
            monitoring.register_callback(tool, monitoring.events.PY_START, self._on_start)
            monitoring.set_events(tool, monitoring.events.PY_START)

    def _on_profile(self, frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and self.is_product(frame.f_code.co_filename):
            self.record(frame.f_code, frame)

    def _on_start(self, code: CodeType, _offset: int) -> Any:
        if not self.is_product(code.co_filename):
            return sys.monitoring.DISABLE  # type: ignore[attr-defined, unused-ignore]
        self.record(code, sys._getframe(1))
        return None


def _has_code(value: Any, code: CodeType, frame: FrameType) -> bool:
    """Whether calling the value enters this frame."""
    # A proxy of the product may refuse to be looked at.
    with contextlib.suppress(Exception):
        function = getattr(value, "__func__", getattr(value, "fget", value))
        while not hasattr(function, "__code__") and hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        if getattr(function, "__code__", None) is code:
            held = dict(zip(code.co_freevars, function.__closure__ or ()))
            return all(frame.f_locals.get(name) is cell.cell_contents for name, cell in held.items())
    return code.co_name == "__call__" and frame.f_locals.get(code.co_varnames[0]) is value


def _pickled(code: CodeType, frame: FrameType, places: list[str], name: str) -> bytes:
    """The file, names and arguments of a starting call; raises LookupError where it has no name."""
    if not places:
        raise LookupError
    names, given = list(code.co_varnames), dict(frame.f_locals)
    positional, keyword = code.co_argcount, code.co_kwonlyargcount
    values = [given[name] for name in names[:positional]]
    named = {name: given[name] for name in names[positional : positional + keyword]}
    further = positional + keyword
    # Drop defaults: the test did not pass them.
    defaults, named_defaults = _defaults(code, frame, name)
    while defaults and values and not code.co_flags & _VARARGS and values[-1] is defaults.pop():
        values.pop()
    named = {name: value for name, value in named.items() if value is not named_defaults.get(name, named)}
    if code.co_flags & _VARARGS:
        values += given[names[further]]
        further += 1
    if code.co_flags & _VARKEYWORDS:
        named.update(given[names[further]])
    if code.co_name == "__call__" and not places[0].endswith(name):
        # `self` is found by its name.
        values = values[1:]
    return pickle.dumps((os.path.realpath(code.co_filename), places, values, named), protocol=4)


def _named(frame: FrameType, name: str) -> Any:
    """What the module of a frame calls so; None if nothing."""
    found: Any = frame.f_globals
    for part in name.split("."):
        found = (found if isinstance(found, dict) else getattr(found, "__dict__", {})).get(part)
    return found


def _defaults(code: CodeType, frame: FrameType, name: str) -> tuple[list[Any], dict[str, Any]]:
    found = _named(frame, name)
    found = getattr(found, "__func__", found)
    if getattr(found, "__code__", None) is not code:
        return [], {}
    return list(found.__defaults__ or ()), found.__kwdefaults__ or {}


if __name__ == "sitecustomize":
    # Run the sitecustomize that this one shadows first.
    _FOLDER, _OWN = os.path.dirname(os.path.abspath(__file__)), sys.modules.pop(__name__)
    sys.path[:] = [each for each in sys.path if os.path.abspath(each) != _FOLDER]
    try:
        importlib.import_module(__name__)
    except ImportError:
        # Python expects the module in sys.modules after the import.
        sys.modules[__name__] = _OWN
    if TOLD in os.environ and sys.version_info >= (3, 9):
        with open(os.environ[TOLD]) as _file:
            _wanted = json.load(_file)
        _out = os.open(f"{_wanted['calls']}/{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        _Recorder(set(_wanted["files"]), set(_wanted["changed"]), _out).watch()
