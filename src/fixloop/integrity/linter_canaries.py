"""Canaries for linters, type checkers and scanners: files with known violations, placed near the changes.

A fast or caching tool runs its full command, so that its exclusions apply; other tools check only the canary. Each
canary text has a different violation, because a project may not enable all rules.
"""

import json
import posixpath
import re
from itertools import product
from typing import Final

from fixloop.integrity.tool_call import Canary, Project, ToolCall, tools

_PYTHON: Final = re.compile(r"\.py$")
_SETTINGS: Final = re.compile(r"\.(toml|cfg|ini|json|ya?ml)$|\.config\.\w+$|(^|/)\.[^/]+$")
_MOST_FOLDERS: Final = 8
_SCRIPT: Final = re.compile(r"(?<!\.d)\.[cm]?[jt]sx?$")
LINTERS: Final = tools("linter")


def linter_canary(call: ToolCall, project: Project, token: str) -> Canary | None:
    linter = LINTERS[call.tool]
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


def typescript_canary(call: ToolCall, project: Project, token: str) -> Canary | None:
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
