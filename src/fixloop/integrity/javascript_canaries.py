"""Canaries for JavaScript test runners: one file with a test that must fail and one that must pass.

The failing test loads the changed modules first, so that code that patches the runner or its assertions takes effect.
The test's time limit ends a hanging import, a timer ends the process after a minute, and modules cannot end the process
themselves.
"""

import json
import posixpath
import re
from typing import Final

from fixloop.integrity.tool_call import Canary, Project, ToolCall, text_of, tools

_TEST: Final = re.compile(
    r"([._-](test|spec)|(^|/)(test|tests|__tests__|spec)/.*|(^|/)test[-_.][^/]*)\.[cm]?[jt]sx?$"
)
_MODULE: Final = re.compile(r"(?<!\.d)\.[cm]?[jt]sx?$")
_CONFIGURES: Final = re.compile(r"\.config\.|(^|/)(setup|jest|vitest|mocha)[^/]*\.[cm]?[jt]s$|(^|/)\.")
RUNNERS: Final = tools("runner")


def javascript_canary(call: ToolCall, project: Project, token: str) -> Canary | None:
    runner = RUNNERS[call.tool]
    if call.tool == "node" and "--test" not in call.rest:
        return None
    targets = call.targets(f"{runner.dropped} {runner.valued}", project.holds)
    neighbour = project.sibling(_TEST, targets) or project.sibling(_TEST)
    if not neighbour:
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
        if _MODULE.search(path) and not any(pattern.search(path) for pattern in others)
    ]
    text = text_of("javascript.txt").replace("BEGIN", runner.begin).replace("END", runner.end)
    text = text.replace("LOADS", json.dumps(changed)).replace("LOAD", runner.load)
    text = text.replace("EXPECT", runner.expect)
    options = call.kept(runner.dropped, runner.valued, project.holds)
    only = tuple(word.replace("TOKEN", token) for word in runner.run)
    command = (*call.head, *options, *runner.report, *only, file)
    return Canary(command, {file: text.replace("TOKEN", token)}, (f"{token}b",), (f"{token}a",))
