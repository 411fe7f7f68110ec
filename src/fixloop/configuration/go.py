"""Proposes checks for a Go module or workspace. Reads files only."""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from fixloop.configuration.declarations import text_of
from fixloop.configuration.layout import files_below
from fixloop.configuration.model import Need, Proposal, proposal
from fixloop.configuration.project_commands import makefile_and_ci_commands

# Options that select tests or limit their time; -race is left out, because it needs a C compiler.
_KEPT: Final = re.compile(
    r"(?:(?<=\0)|^)--?(short(?:=[^\0]*)?|(?:tags|timeout|mod|skip|run)[=\0][^\0]*)(?=\0)"
)
_USED: Final = re.compile(r"^\s*use\s*(?:\(([^)]*)\)|([^\s(].*))", re.MULTILINE)
_IGNORED: Final = re.compile("testdata$|vendor$|_")
_GO: Final = Need("program", "go", "install Go: https://go.dev/doc/install")
_LINTER: Final = Need("program", "golangci-lint", "install golangci-lint")


def proposals(directory: Path) -> tuple[Proposal, ...]:
    """The checks for go.mod or go.work in `directory`; none without either."""
    file = next((name for name in ("go.work", "go.mod") if (directory / name).is_file()), "")
    if not file:
        return ()
    packages: tuple[str, ...] = ("./...",)
    if file == "go.work":
        # The packages of each module it uses: `./...` at its root may belong to none.
        used = " ".join(map(" ".join, _USED.findall(re.sub("//.*", "", text_of(directory / file)))))
        paths = (PurePosixPath(path.strip('"`')) for path in used.split())
        packages = tuple(posixpath.join(".", *path.parts, "...") for path in paths) or packages
    own = next((one for one in makefile_and_ci_commands(directory) if one.words[:2] == ("go", "test")), None)
    words = "\0".join((*(own.words[2:] if own is not None else ()), ""))
    kept = ["-" + option.replace("\0", "=") for option in _KEPT.findall(words)]
    found = []
    if any(directory.rglob("*_test.go")):
        # -count=1: a cached result does not belong to this run.
        command = ("go", "test", "-json", "-count=1", *kept, *packages)
        why = own.why if own is not None and kept else file
        found.append(proposal("test-runner", "go test", command, why, _GO, runs_tests=True, output="go-test"))
    vet = ("go", "vet", *(option for option in kept if option.startswith("-tags=")), *packages)
    found.append(proposal("code-quality", "go vet", vet, file, _GO))
    for configured in sorted(path.name for path in directory.glob(".golangci.*"))[:1]:
        found.append(proposal("code-quality", _LINTER.name, (_LINTER.name, "run"), configured, _GO, _LINTER))
    return tuple(found)


def modules_inside(directory: Path) -> list[str]:
    """The folders below `directory` with a module, at any depth, without those that go ignores."""
    modules = (path.parent.relative_to(directory) for path in files_below(directory) if path.name == "go.mod")
    return [str(each) for each in modules if each.parts and not any(map(_IGNORED.match, each.parts))]


def tests_inside(directory: Path, folder: str) -> Iterator[Proposal]:
    """The tests of the module in `folder`, called there: go enters no module from outside."""
    for each in (one for one in proposals(directory / folder) if one.runs_tests):
        command, why = ("env", f"--chdir={folder}", *each.check.command), f"{folder}/{each.check.why}"
        told = {"name": f"go test {folder}"[:80], "command": command, "why": why}
        yield each._replace(check=each.check.model_copy(update=told))
