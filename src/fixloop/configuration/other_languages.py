"""Proposes how the tests of a project in any other language are run: by a target of its Makefile, else as its files
suggest."""

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fixloop.configuration.declarations import text_of
from fixloop.configuration.model import Need, Proposal, proposal
from fixloop.configuration.project_commands import test_targets
from fixloop.configuration.scripts import needs_shell

_TESTS: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["tests"]

PROJECT_FILES: Final = frozenset(
    each["files"][0] for each in _TESTS if "alone" not in each and "/" not in each["files"][0]
)
"""Names that are only given to the files of a project."""


def proposals(directory: Path, *, is_alone: bool = True) -> Iterator[Proposal]:
    """The tests of a project in `directory`, if a file there says how they are run. `is_alone`: it has no package.json,
    which is that of another language's front end."""
    for target, why in test_targets(directory)[:1] if is_alone else ():
        make = Need("program", "make", "install make")
        yield proposal("test-runner", f"make {target}", ("make", target), why, make, runs_tests=True)
        return
    for known in (each for each in _TESTS if is_alone or "alone" not in each):
        first, *others = ([*directory.glob(pattern)] for pattern in known["files"])
        text = re.compile(known.get("text", ""), re.MULTILINE)
        if all(others) and (found := next((each for each in first if text.search(text_of(each))), None)):
            line, words = known["command"], tuple(shlex.split(known["command"]))
            command = ("sh", "-c", line) if "program" in known or needs_shell(words) else words
            program, name = known.get("program", words[0]), known.get("name", line)
            how = known.get("how", f"install {program}")
            need = Need("file" if "/" in program else "program", program, how)
            why = str(found.relative_to(directory))
            yield proposal("test-runner", name, command, why, need, runs_tests=True)
            return
