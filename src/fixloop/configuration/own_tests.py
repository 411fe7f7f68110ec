"""Proposes the tests of a project without pytest: those of its own test entry, else all that unittest discovers.

A runner unknown to fixloop runs as the project calls it. A test file that no check runs is reported.
"""

import os
import re
from argparse import ArgumentError, ArgumentParser
from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path, PurePath
from typing import Final, NamedTuple

from fixloop.configuration import layout
from fixloop.configuration.declarations import SIGNS, text_of
from fixloop.configuration.installed import Installed
from fixloop.configuration.model import Need, Proposal, proposal
from fixloop.configuration.project_commands import ProjectCommand
from fixloop.configuration.python_project import PythonProject, Tests
from fixloop.configuration.scopes import Scope
from fixloop.protocol.launchers import PYTHON, PYTHON_LAUNCHERS, started, word_set

USUAL: Final = "test*.py"
"""unittest's default pattern."""
_ENTRY: Final = re.compile(r"(unit[-_]?)?tests?|check|unit|py.*|testenv|env_run_base")
_RUNNER: Final = re.compile(r"(?<!la)test|^(trial|nose2?|green|behave|ward)$")
_KNOWN: Final = word_set("test py.test setup.py stestr testr ostestr stubtest mypy.stubtest")
"""Not runners, or they run tests that fixloop finds by itself; stestr writes a record into the project."""
_DATA: Final = word_set("data fixtures testdata test_data samples resources support scenario")
_CASES: Final = re.compile(r"unittest|TestCase|load_tests|test_suite")
_FUNCTIONS: Final = re.compile(r"^(?:async )?def test", re.MULTILINE)
_METHODS: Final = re.compile(r"TestCase\b[^\0]*^[ \t]+(?:async )?def test", re.MULTILINE)
_MOVED: Final = re.compile(r"cd (?!.*\.\.)([\w-][\w./-]*) && ([^|&;<>`$(){}*?~#'\"\\]+)")
_VARIABLE: Final = re.compile(r"[A-Za-z_]\w*=")
_PYTEST: Final = re.compile(r"\bpy\.?test\b")
_FLAG: Final = re.compile(r"-[vqfcb]+$|--(verbose|quiet|failfast|catch|buffer|locals)$")
_PYTHON: Final = Need("program", "python", "install Python, or make a .venv in the project")
_ARGUMENTS: Final = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
for _names in ("-s --start-directory", "-p --pattern", "-t --top-level-directory", "-k"):
    _ARGUMENTS.add_argument(*_names.split())
_ARGUMENTS.add_argument("named", nargs="*")


class Run(NamedTuple):
    """One call of a test runner, without launchers and coverage."""

    tool: str
    command: tuple[str, ...] = ()
    """Empty if unknown; `tool` is then the project's own text."""
    rest: tuple[str, ...] = ()
    need: Need = _PYTHON
    folder: str = ""
    """Where it is called, if not in the project's own folder."""


def proposals(project: PythonProject, tests: Tests | None) -> Iterator[Proposal]:
    """One check for each call of the project's own test entry, else for each folder where discovery has to start; none
    if pytest is used, or it is not yet known what is installed."""
    runs, place, files = _without_pytest(project, tests)
    place = place or (tests.why if tests is not None else "")
    cases = {path for path, text in files.items() if _CASES.search(text)}
    untold, why = "", ""
    reached = {path for run in runs for path in _reached(run, cases, project.directory)}
    if not runs and tests is not None and tests.runner == "pytest":
        reached = cases
    elif not runs and not place:
        untold, why, reached = _few(cases), "nothing says how such test files are run", cases
    elif not runs:
        named = {path for path in cases if path.stem.isidentifier()}
        reached = {path for path in named if _DATA.isdisjoint(path.parts)}
        found = _discoveries(reached, project.directory)
        runs = [Run("unittest", ("python", "-m", "unittest", *words), words) for words in found]
        functions = {path for path, text in files.items() if _FUNCTIONS.search(text)}
        lost = (functions | cases) - named
        untold, why, cases = _few(lost), "unittest does not run such a test file", named
    if untold:
        yield proposal("test-runner", untold, (), place, runs_tests=True)._replace(reason=why)
    yield from _checks(runs, place)
    if left := _few(cases - reached):
        unreached = proposal("test-runner", left, (), place)
        yield unreached._replace(reason="no check here reaches such a test file")


def next_to_pytest(project: PythonProject, own: Scope) -> Iterator[Proposal]:
    """What the test entry that calls pytest only for some paths also calls: other test cases are run by that."""
    below = layout.unittest_files(project.directory)
    places = [project.directory / path for path in own.paths]
    others = (path for path in below if not any(map(path.is_relative_to, places)))
    if places and any(_CASES.search(text_of(path)) for path in others):
        called = (_run(project, command) for command in project.commands if command.why == own.why)
        yield from _checks(dict.fromkeys(filter(None, called)), own.why)


def _checks(runs: Iterable[Run], place: str) -> Iterator[Proposal]:
    """One check for each call, without a command if only a shell could tell it."""
    names = set[str]()
    for run in runs:
        name = run.tool if run.tool not in names else " ".join((run.tool, *run.rest))[:80]
        names.add(name)
        check = proposal("test-runner", name, run.command, place, run.need, tool=run.tool, runs_tests=True)
        reason = "" if run.command else f"the project runs it ({place}), and fixloop cannot"
        yield check._replace(reason=reason)


def _without_pytest(project: PythonProject, tests: Tests | None) -> tuple[list[Run], str, dict[Path, str]]:
    """How the tests are called, by what, and the test files with their texts; empty if pytest is used."""
    installed, is_configured = project.installed, bool(project.declared.place(SIGNS["pytest"]))
    has_pytest = installed is not None and installed.has_module("pytest")
    if installed is None or "pytest" in project.declared.dependencies or (is_configured and has_pytest):
        return [], "", {}
    runs, place = _entry(project)
    directory, is_found = project.directory, tests is not None and tests.runner == "pytest"
    by_pytest = is_configured or (is_found and has_pytest)
    files = {path.relative_to(directory): text_of(path) for path in layout.unittest_files(directory)}
    are_for_pytest = any(map(_FUNCTIONS.search, files.values()))
    is_django = not is_configured and "execute_from_command_line" in text_of(directory / "manage.py")
    if is_django and not are_for_pytest:
        django = Run("manage.py", ("python", "manage.py", "test"), ("test",), project.module("django"))
        runs, place = (runs, place) if runs else ([django], "manage.py")
    elif (is_configured and are_for_pytest) or (
        by_pytest and not _are_called_instead(runs, project, installed)
    ):
        return [], "", {}
    if tests is None and not (files or runs):
        runs, place, files = _unusual(directory)
    if tests is None and not files and not any(run.command and run.need is _PYTHON for run in runs):
        return [], "", {}  # its Makefile may be about another language
    programs = (run.command[0] for run in runs if "/" in "".join(run.command[:1]))
    is_built = any("\0" in (text_of(directory / each) or "\0") for each in programs)
    if place.startswith("Makefile: ") and is_built:  # by what the target needs
        runs = [Run("make", ("make", place.split()[-1]), (), Need("program", "make", "install make"))]
    return runs, place, files


def _are_called_instead(runs: Collection[Run], project: PythonProject, installed: Installed) -> bool:
    """Whether these are the project's calls of its tests, can start here, and neither they nor others call pytest. If
    it is installed, it runs the tests of unittest as well."""
    words = {word for run in runs for word in run.command}
    modules = (word.replace(".", "/") for word in words)
    files = (*words, *(f"{each}{end}" for each in modules for end in (".py", "/__main__.py")))
    texts = (*(text_of(project.directory / each) for each in files), *map(str, project.commands))
    are_pythons = all("python" in run.command or run.need is not _PYTHON for run in runs)
    can_start = bool(runs) and are_pythons and all(installed.has(run.need) for run in runs)
    by_unittest = all(run.tool == "unittest" for run in runs) or "unittest.main(" in "\0".join(texts)
    is_needed = not (by_unittest and installed.has_module("pytest"))
    return can_start and is_needed and not any(map(_PYTEST.search, texts))


def _unusual(directory: Path) -> tuple[list[Run], str, dict[Path, str]]:
    """The calls of packages of tests that can be run, their place, and the test cases in files with any name."""
    below = (each.relative_to(directory) for each in layout.files_below(directory) if each.suffix == ".py")
    inside = (path for path in below if not layout.TEST_FOLDERS.isdisjoint(path.parts[:-1]))
    paths = (path for path in inside if _DATA.isdisjoint(path.parts))
    cases = {path: text for path in paths if _METHODS.search(text := text_of(directory / path))}
    parents = {path.parent for path in cases}
    mains = {each for each in parents if "unittest" in text_of(directory / each / "__main__.py")}
    if not mains or any(mains.isdisjoint(path.parents) for path in cases):
        return [], "", cases
    modules = [".".join(each.parts[each.parts[0] == "src" :]) for each in sorted(mains)]
    return [Run(name, ("python", "-m", name)) for name in modules], str(min(mains) / "__main__.py"), cases


def _few(paths: Collection[Path]) -> str:
    return ", ".join(sorted(map(str, paths))[:5]) + (f" and {len(paths) - 5} more" if len(paths) > 5 else "")


def _entry(project: PythonProject) -> tuple[list[Run], str]:
    """The calls of the project's own test entry, and its place: the first that is fully known, the Makefile's before
    others. Outside an entry for tests, as in CI, only calls of unittest count."""
    entries = dict[tuple[int, str], dict[Run, None]]()
    for command in sorted(project.commands, key=lambda one: "akefile: " not in one.why):
        why, run = command.why, _run(project, command)
        name = re.split(r"[\[.: ]", why.rstrip("]"))[-1]
        # A condition of [testenv], such as `sqlite:`, has no section.
        is_factor = why.startswith("tox.ini") and not project.declared.section("tox.ini", f"testenv:{name}")
        rank = 0 if _ENTRY.fullmatch(name) and not why.startswith(".github") else 2 - is_factor
        if run and (rank < 2 or run.tool == "unittest"):
            entries.setdefault((rank, why), {})[run] = None
    found = ((not all(run.command for run in runs), *key, [*runs]) for key, runs in entries.items())
    _, _, place, calls = min(found, key=lambda one: one[:2], default=(False, 0, "", []))
    return calls, place


def _run(project: PythonProject, command: ProjectCommand) -> Run | None:
    """The test runner that a command calls; its command is empty if only a shell could tell it."""
    moved = _MOVED.fullmatch(command.text)
    inside = moved[1].rstrip("/") if moved and (project.directory / moved[1]).is_dir() else ""
    directory = project.directory / inside
    words = command.words or tuple(command.text.rpartition("&& ")[2].split())
    calls = tuple(started(words, PYTHON_LAUNCHERS))
    if not calls or calls[-1].is_launcher:
        return None
    *launchers, (at, _, _) = calls
    word, rest = words[at].removeprefix("-m"), words[at + 1 :]
    between = words[launchers[-1].at + 1 : at] if launchers else words[:at]
    module = "-m" in (*between[-1:], words[at][:2])
    tool = word if module else PurePath(word).name
    is_script = not module and word.endswith(".py")
    is_told = is_script or tool in ("django", "django-admin")
    if (
        tool in _KNOWN
        or tool.startswith("pytest")
        or not {"--version", "--help"}.isdisjoint(rest)
        or not (tool == "unittest" or _RUNNER.search(word) or (is_told and rest[:1] == ("test",)))
    ):
        return None
    # Only a shell could tell the command, or the tests need what tox has built.
    if not (command.words or inside) or any("TOX_" in text_of(directory / each) for each in rest):
        return Run(command.text or " ".join(command.words))
    is_folder = bool(text_of(directory / (word.replace(".", "/") if module else word) / "__main__.py"))
    start, need, module = [word], _PYTHON, module or is_folder
    if module or is_script:
        is_python = launchers and PYTHON.fullmatch(launchers[-1].name)
        options = [each for each in between if is_python and each != "-m"]
        start = ["python", *options, *(("-m",) if module else ()), word]
    if module and tool != "unittest" and not is_folder:
        need = project.module(word.partition(".")[0])
    elif not module and not is_script and "/" not in word:
        need = Need("program", word, f"install what brings {word}, or name another in fixloop.toml")
    given = filter(_VARIABLE.match, (words[each.at] for each in launchers))
    variables = [*([f"--chdir={inside}"] if inside else []), *given]
    env = ["env", *variables] if variables else []
    return Run(tool, (*env, *start, *rest), rest, need, inside)


def _discoveries(files: Collection[Path], directory: Path) -> Iterator[tuple[str, ...]]:
    """The arguments that make `unittest` reach all of `files`: it only enters packages."""
    starts = dict[tuple[Path, str], list[Path]]()
    for path in sorted(files):
        root = path.parent
        while root != Path() and (directory / root / "__init__.py").is_file():
            root = root.parent
        starts.setdefault((root, USUAL if fnmatch(path.name, USUAL) else "*_test.py"), []).append(path)
    for (root, pattern), found in sorted(starts.items()):
        folders = {root / path.relative_to(root).parts[0] for path in found}
        inner = folders.pop() if len(folders) == 1 else root
        top = ("-s", str(inner), "-t", str(root)) if inner.name in {"test", "tests"} else ("-s", str(root))
        yield ("discover", *top, *(() if pattern == USUAL else ("-p", pattern)))


def _reached(run: Run, files: Collection[Path], directory: Path) -> Collection[Path]:
    """Those of `files` that a call runs; all in its folder if unknown."""
    if run.folder:
        own = [path.relative_to(run.folder) for path in files if path.is_relative_to(run.folder)]
        return [run.folder / path for path in _reached(run._replace(folder=""), own, directory / run.folder)]
    if run.tool != "unittest":
        return files
    try:
        given, _ = _ARGUMENTS.parse_known_intermixed_args([one for one in run.rest if not _FLAG.match(one)])
    except ArgumentError:
        return files
    named: list[str] = given.named
    if named and named[0] != "discover":
        paths = {Path(word if word.endswith(".py") else f"{word.replace('.', '/')}.py") for word in named}
        return paths if all(text_of(directory / path) for path in paths) else files
    first, second, *_ = (*named[1:], "", "")
    start, pattern = given.start_directory or first or ".", given.pattern or second or USUAL
    if not os.path.isdir(directory / start):
        return files
    below = [path for path in files if path.is_relative_to(start) and fnmatch(path.name, pattern)]
    inside = {path: [*path.relative_to(start).parents][:-1] for path in below}
    top = directory / start
    return [path for path in below if all((top / each / "__init__.py").is_file() for each in inside[path])]
