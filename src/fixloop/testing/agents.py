"""Agents by name, each a script: what a main agent or a specialist may do to the loop, good and bad.

Give one to a workflow as its feature's name, with `FIXLOOP_CREW=fixloop.testing:scripted_crew` in the worker's
environment, and see what comes of it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple


class Agent(NamedTuple):
    """One kind of agent."""

    script: str
    """See `fixloop.testing.script`."""
    what: str
    specialists: tuple[str, ...] = ("test-runner",)
    """Those that its workflow needs."""
    fix_seconds: float = 1800.0
    """How long its answer is waited for."""
    is_extended: bool = False
    """Whether a person gives it more runs when it has none left; what escalates otherwise is given up."""


AGENTS: Final[Mapping[str, Agent]] = MappingProxyType(
    {
        "apart": Agent(
            "$a~0.2 $-~0.2; fix: $ok~0.2", "a check and a fixer that are commands of their own, under guard"
        ),
        "good": Agent("abc~0.05 a~0.05 -; fix: ok~0.1", "mends two of three failures, then the last"),
        "lazy": Agent("a~0.05; fix: same", "says each time that nothing had to be changed"),
        "silent": Agent("a~0.05; fix: silent", "takes the request and never answers", fix_seconds=1.0),
        "slow": Agent("a -~0.5; fix: ok~0.5", "takes its time, within every limit"),
        "lying": Agent(
            "unit-test: - b~0.05 -; security: a~0.05 -",
            "says that it mended security, and broke a unit test",
            ("unit-test", "security"),
        ),
        "thorough": Agent(
            "test-runner: abc~0.05 b -; security: a~0.05 -",
            "mends what two of five specialists find",
            ("unit-test", "integration-test", "test-runner", "code-quality", "security"),
        ),
        "late": Agent(
            "abcde~0.05 abcd abc ab a f -", "needs two runs more than it has, and gets them", is_extended=True
        ),
        "garbled": Agent("a -~0.05; fix: bad ok~0.05", "answers what does not fit, then what does"),
        "oscillating": Agent("ab~0.05 cd ab cd ab", "mends one thing and breaks another, to and fro"),
        "blocked": Agent("a~0.05; fix: blocked", "says that it cannot go on"),
        "failing": Agent(
            "a -~0.05; fix: fail gone ok", "ends with an error, is not found, and then mends it"
        ),
        "raising": Agent("!a~0.05 b -", "a specialist whose first attempt is an error"),
    }
)
"""By name."""
