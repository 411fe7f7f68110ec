"""The canaries of JavaScript's test runners: one file with a test that has to fail and one that has to pass.

The failing one loads the changed modules first, so that code which changes its runner or its assertions is at work;
what hangs there ends with the test's own time limit, what keeps the process alive after a minute, and a module that
would end the process is kept from it.
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
    beside = project.sibling(_TEST, targets) or project.sibling(_TEST)
    if not beside:
        return None
    folder, name = posixpath.split(beside)
    # What finds its neighbour finds it: with the same ending, and the same word before that.
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
