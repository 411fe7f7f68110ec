"""What a language's detection proposes: a check, the file that speaks for it, and what it needs to run here.

Values only. Which proposals become checks is decided once, by `preflight`, from what is there.
"""

from typing import Literal, NamedTuple

from fixloop.configuration.model import Check


class Need(NamedTuple):
    """Something that has to be there before a check can start."""

    kind: Literal["module", "program", "file"]
    """`module`: importable by the project's interpreter; `program`: beside that interpreter or on the PATH;
    `file`: a path below the checkout."""
    name: str
    remedy: str
    """The one command that brings it, as `npm ci` or `.venv/bin/pip install ruff`."""


class Proposal(NamedTuple):
    """A check that the project's own files speak for."""

    specialist: str
    check: Check
    tool: str
    """The tool's name as its users say it: `vitest`, never `npx`."""
    why: str
    """The file and the place in it, as `package.json: scripts.test` or `tox.ini: [testenv:lint]`."""
    needs: tuple[Need, ...] = ()
    runs_tests: bool = False
    """A test runner that is found and not run leaves the whole unverified (exit code 3)."""
