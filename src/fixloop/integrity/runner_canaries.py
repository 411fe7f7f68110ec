"""Canaries for test runners: a test that must fail and one that must pass, run alone.

They are placed next to tests that passed, so the same settings apply. Changed Python modules are imported first, so
that code that patches the runner takes effect; slow imports are interrupted.
"""

import posixpath
import re
from pathlib import PurePosixPath
from typing import Final

from fixloop.integrity.tool_call import Canary, Project, ToolCall, text_of
from fixloop.protocol.launchers import word_set

_MOST: Final = 20
"""Changed modules to import: a fix rarely has more."""
PYTHON_TEST: Final = re.compile(r"(^|/)(test_[^/]*|[^/]*_test|tests?)\.py$")
_GO_TEST: Final = re.compile(r"_test\.go$")
_NO_MODULES: Final = word_set(
    "setup conftest noxfile tasks manage conf __main__ tests test testing docs doc examples scripts bench"
)
"""Names of files and folders that are not imported, or whose import has side effects."""

_PYTEST_DROPPED: Final = (
    "--junitxml= --junit-xml= --cov= --cov-report= --cov-config= --cov-fail-under= --cov-branch --cov-append "
    "--cov-context= --no-cov-on-fail --deselect= --lf --last-failed --sw --stepwise -k= -m="
)
PYTEST_VALUED: Final = "-c -p -o --rootdir --confcutdir --basetemp --ignore --ignore-glob --config-file"
_UNITTEST_VALUED: Final = "-s --start-directory -p --pattern -t --top-level-directory -k"
_DJANGO_DROPPED: Final = "--parallel= -v= --verbosity= -k= --tag= --exclude-tag= --pdb --timing --failfast"
_DJANGO_VALUED: Final = "--settings --pythonpath --testrunner -p --pattern -t --top-level-directory"
_GO_DROPPED: Final = (
    "-json -run= -skip= -bench= -count= -cover -coverprofile= -covermode= -coverpkg= -shuffle= -o="
)
_GO_VALUED: Final = "-tags -timeout -mod -p -parallel -cpu -ldflags -gcflags -exec -vet -C"
_CARGO_DROPPED: Final = "--lib --bins --bin= --tests --test= --doc --examples --example= --all-targets"
_CARGO_VALUED: Final = (
    "-p --package --exclude -F --features --profile --target --manifest-path -j --jobs --color -Z"
)


def pytest_canary(call: ToolCall, project: Project, token: str) -> Canary | None:
    """One file next to a passed test, and one next to each of the first three changed conftest files."""
    targets = call.targets(f"{_PYTEST_DROPPED} {PYTEST_VALUED}", project.holds)
    first = project.sibling(PYTHON_TEST, targets) or project.sibling(re.compile(r"\.py$"), targets)
    if not first:
        return None
    hooks = [path for path in project.changed if PurePosixPath(path).name == "conftest.py"]
    files = {
        posixpath.join(folder, f"test_{token}{at}.py"): _python(project, f"{token}{at}")
        for at, folder in enumerate(dict.fromkeys(posixpath.dirname(path) for path in (first, *hooks[:3])))
    }
    options = call.kept(_PYTEST_DROPPED, PYTEST_VALUED, project.holds)
    given = " ".join((*call.rest, project.addopts))
    one_process = ("-n0",) if re.search(r"(?<!\S)(-n ?\w|--numprocesses)", given) else ()
    without_coverage = ("--no-cov",) if re.search(r"(?<!\S)--cov\b", given) else ()
    # The last occurrence wins over the command's own options and the settings.
    selected = ("-k", "", "-m", "", "--maxfail=0")
    return Canary(
        (*call.head, *options, *one_process, *without_coverage, *selected, "--junitxml={junit}", *files),
        files,
        fails=tuple(f"{token}{at}b" for at in range(len(files))),
        passes=tuple(f"{token}{at}a" for at in range(len(files))),
    )


def unittest_canary(call: ToolCall, project: Project, token: str) -> Canary | None:
    named = call.targets(_UNITTEST_VALUED, lambda word: True)
    if not named or named[0] == "discover":
        start = call.value_of("-s", "--start-directory") or "".join(named[1:2]) or "."
        top = call.value_of("-t", "--top-level-directory")
        if not project.holds(start):
            return None
        reached = (path for path in sorted(project.files) if PYTHON_TEST.search(path))
        folders = (posixpath.dirname(path) for path in reached if _is_discovered(path, start, project))
        folder = next(folders, start)
        run = ("discover", "-v", "-s", start, *(("-t", top) if top else ()), "-p", f"test_{token}.py")
    else:
        parts = named[0].removesuffix(".py").replace("/", ".").split(".")
        ends = range(len(parts), 0, -1)
        end = next((end for end in ends if "/".join(parts[:end]) + ".py" in project.files), 0)
        if not end:
            return None
        folder = "/".join(parts[: end - 1])
        run = ("-v", ".".join((*parts[: end - 1], f"test_{token}")))
    file = posixpath.normpath(posixpath.join(folder, f"test_{token}.py"))
    text = _python(project, token)
    return Canary((*call.head, *run), {file: text}, (f"{token}b",), (f"{token}a",), is_printed=True)


def _is_discovered(path: str, start: str, project: Project) -> bool:
    """Whether `unittest discover`, which enters only packages, reaches a file from `start`."""
    start = posixpath.normpath(start)
    below = path if start == "." else path.removeprefix(f"{start}/")
    folders = PurePosixPath(below).parents
    inner = (posixpath.normpath(posixpath.join(start, folder)) for folder in folders if str(folder) != ".")
    return (below != path or start == ".") and all(f"{each}/__init__.py" in project.files for each in inner)


def django_canary(call: ToolCall, project: Project, token: str) -> Canary | None:
    """For `manage.py test`, whose runner the project's settings may name."""
    neighbour = project.sibling(PYTHON_TEST)
    if call.rest[:1] != ("test",) or not neighbour:
        return None
    folder = PurePosixPath(neighbour).parent
    options = call._replace(rest=call.rest[1:]).kept(_DJANGO_DROPPED, _DJANGO_VALUED, lambda word: True)
    label = ".".join((*folder.parts, f"test_{token}"))
    files = {str(folder / f"test_{token}.py"): _python(project, token)}
    command = (*call.head, "test", *options, "--verbosity=2", label)
    return Canary(command, files, (f"{token}b",), (f"{token}a",), is_printed=True)


def go_canary(call: ToolCall, project: Project, token: str) -> Canary | None:
    if call.rest[:1] != ("test",):
        return None
    folders = [posixpath.dirname(path) for path in project.changed if path.endswith(".go")]
    neighbour = project.sibling(_GO_TEST, folders) or project.sibling(_GO_TEST)
    package = re.search(r"^package (\w+)", project.read(neighbour), re.MULTILINE) if neighbour else None
    if package is None:
        return None
    folder = posixpath.dirname(neighbour)
    options = call._replace(rest=call.rest[1:]).kept(_GO_DROPPED, _GO_VALUED, lambda word: True)
    run = ("-json", "-count=1", "-run", f"^Test_{token}[ab]$", f"./{folder}")
    text = text_of("go.txt").replace("PACKAGE", package[1]).replace("TOKEN", token)
    file = posixpath.join(folder, f"{token}_test.go")
    command = (*call.head, "test", *options, *run)
    return Canary(command, {file: text}, (f"{token}b",), (f"{token}a",), output="go-test")


def cargo_canary(call: ToolCall, project: Project, token: str) -> Canary | None:
    if call.rest[:1] != ("test",) or not re.search(r"^\[package\]", project.read("Cargo.toml"), re.MULTILINE):
        return None
    options = call._replace(rest=call.rest[1:]).kept(_CARGO_DROPPED, _CARGO_VALUED, lambda word: True)
    command = (*call.head, "test", *options, "--test", token)
    file, text = f"tests/{token}.rs", text_of("rust.txt").replace("TOKEN", token)
    return Canary(command, {file: text}, (f"{token}b",), (f"{token}a",), output="cargo-test")


def _python(project: Project, token: str) -> str:
    names = []
    for path in project.changed:
        root = next((root for root in project.roots if path.startswith(f"{root}/")), "")
        parts = PurePosixPath(path).relative_to(root).with_suffix("").parts
        is_code = path.endswith(".py") and not PYTHON_TEST.search(path)
        if is_code and all(part.isidentifier() for part in parts) and _NO_MODULES.isdisjoint(parts):
            names.append(".".join(parts).removesuffix(".__init__"))
    return text_of("python.txt").replace("NAMES", repr(names[:_MOST])).replace("TOKEN", token)
