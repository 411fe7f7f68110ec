"""A canary: a defect that a check's command must report, which reveals a runner that cannot fail.

Owns which tools have a canary and whether it was reported. Unknown commands have no canary.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from fixloop.integrity.javascript_canaries import RUNNERS, javascript_canary
from fixloop.integrity.linter_canaries import LINTERS, linter_canary, typescript_canary
from fixloop.integrity.runner_canaries import cargo_canary, go_canary, pytest_canary, unittest_canary
from fixloop.integrity.tool_call import Canary, Project, ToolCall, call_of

_CANARIES: Final[Mapping[str, Callable[[ToolCall, Project, str], Canary | None]]] = {
    "pytest": pytest_canary,
    "py.test": pytest_canary,
    "unittest": unittest_canary,
    "go": go_canary,
    "cargo": cargo_canary,
    **dict.fromkeys(RUNNERS, javascript_canary),
    **dict.fromkeys(LINTERS, linter_canary),
    "tsc": typescript_canary,
}


def canary_of(command: Sequence[str], project: Project, token: str) -> Canary | None:
    """The canary for the tool that `command` calls, named after the unique `token`; None if it has none."""
    call = call_of(command, _CANARIES)
    return _CANARIES[call.tool](call, project, token) if call is not None else None


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
