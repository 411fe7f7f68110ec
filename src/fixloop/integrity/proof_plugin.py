"""A pytest plugin: reruns given tests under other conditions and records each result, instead of pytest's own run or
after it, as if pytest was started again.

The project's interpreter loads it from a folder that holds nothing else, so it imports nothing from fixloop and
supports any Python that pytest supports. It reads two files; the second, with the tests, may appear later, and nothing
of the project is loaded before that. It writes its results to a third file.
"""

import builtins
import contextlib
import faulthandler
import json
import os
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set  # noqa: UP035

import pytest

SHOWN = ("PYTEST_CURRENT_TEST", "PYTEST_VERSION")
"""Variables that pytest sets, by which code can detect it."""
_settings: Dict[str, Any] = {}  # noqa: UP006
_names: Dict[str, str] = {}  # noqa: UP006
_outcomes: Dict[str, str] = {}  # noqa: UP006


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_load_initial_conftests() -> Iterator[None]:
    if not _settings:
        with open(os.environ["FIXLOOP_PROOF"]) as file:
            _settings.update(json.load(file))
        while not os.path.exists(_settings["tests"]):
            time.sleep(0.005)
        with open(_settings["tests"]) as file:
            _settings.update(json.load(file))
        if not _settings["runs"]:
            os._exit(0)
    yield


@pytest.hookimpl(hookwrapper=True)
def pytest_cmdline_main(config: Any) -> Iterator[None]:
    # Processes that a test starts are recorded, too.
    for name in {each for each in os.environ if each.startswith("FIXLOOP_")} - {"FIXLOOP_CALLS"}:
        del os.environ[name]
    os.environ["PYTEST_ADDOPTS"] = _settings["addopts"]
    if "behind" in _settings:
        # After its own plugins have finished.
        config.add_cleanup(_run_afterwards)
        yield
        return
    # Run all in this process, also if some files cannot be collected.
    wanted = {"numprocesses": 0, "dist": "no", "tx": [], "maxfail": 0, "keepduplicates": True}
    for name, value in {**wanted, "continue_on_collection_errors": True}.items():
        if hasattr(config.option, name):
            setattr(config.option, name, value)
    # Collect all at once: fixtures of a conftest belong to the nodes of the first collection.
    config.args = list(dict.fromkeys(each for run in _settings["runs"] for each in run["args"]))
    yield


def _run_afterwards() -> None:
    """Run in a separate session; the exit code of the first session stays."""
    with contextlib.suppress(Exception, SystemExit):
        pytest.main(["-p", __name__, *_settings.pop("behind")])


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: Any) -> Optional[bool]:  # noqa: UP045
    if "behind" in _settings:
        return None
    until = time.monotonic() + _settings["seconds"]
    # Ends the process if a test hangs, without a Python thread that tests could count.
    faulthandler.dump_traceback_later(_settings["seconds"] * 2 + 10, exit=True, file=2)
    found, collected = {}, list(session.items)
    used: Set[int] = set()  # noqa: UP006
    with contextlib.suppress(pytest.UsageError):
        for run in _settings["runs"]:
            starts = tuple(f"{each}::" for each in run["args"])
            items = [item for item in collected if f"{_base(item)}::".startswith(starts)]
            again = [item for item in items if id(item) in used]
            if not all(hasattr(item, "_initrequest") for item in again):
                items, again = list(session.perform_collect(run["args"])), []
            for item in again:
                item._initrequest()
            used.update(map(id, items))
            found[run["name"]] = _run_items(items, run, until)
            with open(_settings["results"], "w") as file:
                json.dump(found, file)
    faulthandler.cancel_dump_traceback_later()
    return True


def _base(item: Any) -> str:
    return "::".join([str(item.fspath), *item.nodeid.split("::")[1:]]).partition("[")[0]


def _run_items(items: List[Any], run: Dict[str, Any], until: float) -> Dict[str, str]:  # noqa: UP006
    _names.clear()
    _outcomes.clear()
    chosen = []
    for item in items:
        path = os.path.relpath(str(item.fspath), _settings["root"]).replace(os.sep, "/")
        name = " ".join("::".join([path, *item.nodeid.split("::")[1:]]).split())
        if not run["only"] or name in run["only"]:
            _names[item.nodeid] = name
            chosen.append(item)
    if run["varied"]:
        chosen.reverse()
    unseen = run.get("unseen", SHOWN if run["varied"] else ())
    for item in chosen if unseen else ():
        item.setup, item.runtest = _hiding(item.setup, unseen), _hiding(item.runtest, unseen)
    if run.get("emptied"):
        for item in chosen:
            item.runtest = _emptied(item.runtest, run["emptied"])
    _settings["by_assertion"] = run.get("by_assertion", False)
    for place, item in enumerate(chosen):
        following = chosen[place + 1] if place + 1 < len(chosen) and time.monotonic() < until else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if following is None:
            break
    for item in chosen:
        vars(item).pop("setup", None)
        vars(item).pop("runtest", None)
    return dict(_outcomes)


def _hiding(call: Callable[[], None], names: Sequence[str]) -> Callable[[], None]:
    """The call without these environment variables, such as those that pytest sets in its hooks."""

    def called() -> None:
        shown = {name: os.environ.pop(name) for name in names if name in os.environ}
        try:
            call()
        finally:
            os.environ.update(shown)

    return called


def _emptied(call: Callable[[], None], returned: str) -> Callable[[], None]:
    """The call while emptied functions return None, or a new object that equals nothing else."""

    def called() -> None:
        builtins.__dict__["fixloop_emptied"] = type(None) if returned == "nothing" else object
        try:
            call()
        finally:
            del builtins.__dict__["fixloop_emptied"]

    return called


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Iterator[None]:
    answer: Any = yield
    errors = (AssertionError, pytest.fail.Exception)
    is_said = call.when == "call" and call.excinfo is not None and isinstance(call.excinfo.value, errors)
    answer.get_result().is_said = is_said


def pytest_runtest_logreport(report: Any) -> None:
    name = _names.get(report.nodeid)
    if name is None or hasattr(report, "wasxfail"):
        return
    if report.failed:
        is_said = getattr(report, "is_said", False) or not _settings["by_assertion"]
        _outcomes[name] = "failed" if is_said else "raised"
    elif report.skipped or report.when == "call":
        _outcomes.setdefault(name, report.outcome)
