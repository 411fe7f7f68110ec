"""A canary: a defect that a check's command must report, which reveals a runner that cannot fail.

Owns which tools have a canary and whether it was reported. Unknown commands have no canary.
"""

import json
import posixpath
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import product
from typing import Final

from fixloop.integrity import runner_canaries
from fixloop.integrity.tool_call import Canary, Project, ToolCall, call_of, text_of, tools

_PYTHON: Final = re.compile(r"\.py$")
_SETTINGS: Final = re.compile(r"\.(toml|cfg|ini|json|ya?ml)$|\.config\.\w+$|(^|/)\.[^/]+$")
_MOST_FOLDERS: Final = 8
_SCRIPT: Final = re.compile(r"(?<!\.d)\.[cm]?[jt]sx?$")
_TEST: Final = re.compile(
    r"([._-](test|spec)|(^|/)(test|tests|__tests__|spec)/.*|(^|/)test[-_.][^/]*)\.[cm]?[jt]sx?$"
)
_CONFIGURES: Final = re.compile(r"\.config\.|(^|/)(setup|jest|vitest|mocha)[^/]*\.[cm]?[jt]s$|(^|/)\.")
_LINTERS: Final = tools("linter")
_RUNNERS: Final = tools("runner")


def _javascript_canary(call: ToolCall, project: Project, token: str) -> Canary | None:
    """One file with a test that must fail and one that must pass. The failing test loads the changed modules first, so
    that code that patches the runner or its assertions takes effect. The test's time limit ends a hanging import, a
    timer ends the process after a minute, and modules cannot end the process themselves."""
    runner = _RUNNERS[call.tool]
    if call.tool == "node" and "--test" not in call.rest:
        return None
    targets = call.targets(f"{runner.dropped} {runner.valued}", project.holds)
    if not (neighbour := project.sibling(_TEST, targets) or project.sibling(_TEST)):
        return None
    folder, name = posixpath.split(neighbour)
    # A pattern that matches the neighbour must match it: keep the extensions and the test prefix or suffix.
    stem, dot, endings = name.partition(".")
    kept = ["".join(re.findall(word, stem)) for word in (r"^test[-_]", r"[-_](?:test|spec)$")]
    file = posixpath.join(folder, f"{kept[0]}{token}{kept[1]}{dot}{endings}")
    others = (_TEST, _CONFIGURES)
    changed = [
        f"./{posixpath.relpath(path, folder or '.')}"
        for path in project.changed
        if _SCRIPT.search(path) and not any(pattern.search(path) for pattern in others)
    ]
    text = text_of("javascript.txt").replace("BEGIN", runner.begin).replace("END", runner.end)
    text = text.replace("LOADS", json.dumps(changed)).replace("LOAD", runner.load)
    text = text.replace("EXPECT", runner.expect)
    options = call.kept(runner.dropped, runner.valued, project.holds)
    only = tuple(word.replace("TOKEN", token) for word in runner.run)
    command = (*call.head, *options, *runner.report, *only, file)
    return Canary(command, {file: text.replace("TOKEN", token)}, (f"{token}b",), (f"{token}a",))


def _linter_canary(call: ToolCall, project: Project, token: str) -> Canary | None:
    """Files with known violations, near the changes. A fast or caching tool runs its full command, so that its
    exclusions apply; others check only the canary. Each text has another violation: a project may not enable all
    rules."""
    linter = _LINTERS[call.tool]
    if call.tool == "ruff" and call.rest[:1] != ("check",):
        return None
    targets = call.targets(f"{linter.dropped} {linter.valued}", project.holds)
    folders, files_of = dict[str, str](), _SCRIPT if linter.is_script else _PYTHON
    for path in project.siblings(files_of, targets):
        folders.setdefault(posixpath.dirname(path), path)
    if not folders:
        return None
    # Changed settings may exclude any folder.
    most = _MOST_FOLDERS if any(map(_SETTINGS.search, project.changed)) else 1
    chosen = list(folders.values())[:most]
    files = {
        posixpath.join(posixpath.dirname(path), f"{token}{at}{posixpath.splitext(path)[1]}"): text
        for at, (path, text) in enumerate(product(chosen, linter.texts))
    }
    if linter.runs_whole:
        # A command that names only files checks no others.
        is_found = not targets or any(not files_of.search(target) for target in targets)
        command = (*call.head, *call.rest, *(() if is_found else files))
    else:
        options = call.kept(linter.dropped, linter.valued, project.holds)
        command = (*call.head, *options, *linter.report, *files)
    return Canary(command, files, tuple(f"{token}{at}." for at in range(len(files))))


def _typescript_canary(call: ToolCall, project: Project, token: str) -> Canary | None:
    """With settings that extend the project's, because the compiler accepts no files together with `-p`."""
    settings = call.value_of("-p", "--project") or "tsconfig.json"
    if settings not in project.files:
        settings = posixpath.normpath(posixpath.join(settings, "tsconfig.json"))
    neighbour = project.sibling(re.compile(r"(?<!\.d)\.tsx?$"))
    if settings not in project.files or not neighbour or {"-b", "--build"} & set(call.rest):
        return None
    file, folder = posixpath.join(posixpath.dirname(neighbour), f"{token}0.ts"), posixpath.dirname(settings)
    own = posixpath.join(folder, f"{token}.json")
    text = {
        "extends": f"./{posixpath.basename(settings)}",
        "compilerOptions": {"noEmit": True, "composite": False, "incremental": False},
        "files": [posixpath.relpath(file, folder or ".")],
        "include": [],
        "references": [],
    }
    options = call.kept("-p= --project=", "", lambda word: False)
    files = {file: 'export const text: number = "";\n', own: json.dumps(text)}
    return Canary((*call.head, *options, "-p", own), files, (f"{token}0.",))


_CANARIES: Final[Mapping[str, Callable[[ToolCall, Project, str], Canary | None]]] = {
    "pytest": runner_canaries.pytest_canary,
    "py.test": runner_canaries.pytest_canary,
    "unittest": runner_canaries.unittest_canary,
    "manage.py": runner_canaries.django_canary,
    "go": runner_canaries.go_canary,
    "cargo": runner_canaries.cargo_canary,
    **dict.fromkeys(_RUNNERS, _javascript_canary),
    **dict.fromkeys(_LINTERS, _linter_canary),
    "tsc": _typescript_canary,
}


def canary_of(command: Sequence[str], project: Project, token: str) -> Canary | None:
    """The canary for the tool that `command` calls, named after the unique `token`; None if it has none."""
    if (call := call_of(command, _CANARIES)) is None:
        return None
    folder = "".join(f"{word.removeprefix('--chdir=')}/" for word in call.head if word.startswith("--chdir="))
    canary = _CANARIES[call.tool](call, project.below(folder), token)
    return canary and canary._replace(files={folder + path: text for path, text in canary.files.items()})


def unseen(
    canary: Canary, *, exit_code: int | None, failed: Collection[str], passed: Collection[str], output: str
) -> frozenset[str]:
    """The names in a canary without the expected result. `failed`: the text of each failure, `passed`: test names."""
    reported, succeeded = "\n".join(failed), "\n".join(passed)
    if canary.is_printed:
        lines = re.findall(r"^(.*) \.\.\. (ok|FAIL)$", output, re.MULTILINE)
        reported = "\n".join(line for line, end in lines if end == "FAIL")
        succeeded = "\n".join(line for line, end in lines if end == "ok")
    missing = {name for name in canary.fails if name not in reported or name in succeeded or not exit_code}
    return frozenset(missing | {name for name in canary.passes if name not in succeeded or name in reported})
