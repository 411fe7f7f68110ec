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
from fixloop.configuration.project_commands import TARGET, makefile_of
from fixloop.configuration.scripts import needs_shell

_TESTS: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["tests"]

PROJECT_FILES: Final = frozenset(
    each["files"][0] for each in _TESTS if "alone" not in each and "/" not in each["files"][0]
)
"""Names that are only given to the files of a project."""


def proposals(directory: Path, *, is_alone: bool = True) -> Iterator[Proposal]:
    """The tests of a project in `directory`, if a file there says how they are run. `is_alone`: it has no package.json,
    which is that of another language's front end."""
    file, text = makefile_of(directory)
    targets = [each for each in ("test", "tests", "check") if is_alone and each in TARGET.findall(text)]
    if targets:
        maker = "just" if file.endswith("ustfile") else "make"
        need, why = Need("program", maker, f"install {maker}"), f"{file}: {targets[0]}"
        call = (maker, targets[0])
        yield proposal("test-runner", " ".join(call), call, why, need, runs_tests=True)
        return
    for known in (each for each in _TESTS if is_alone or "alone" not in each):
        first, *others = ([*directory.glob(pattern)] for pattern in known["files"])
        sign = re.compile(known.get("text", ""), re.MULTILINE)
        if all(others) and (found := next((each for each in first if sign.search(text_of(each))), None)):
            line, words = known["command"], tuple(shlex.split(known["command"]))
            command = ("sh", "-c", line) if "program" in known or needs_shell(words) else words
            program, name = known.get("program", words[0]), known.get("name", line)
            how = known.get("how", f"install {program}")
            need = Need("file" if "/" in program else "program", program, how)
            why = str(found.relative_to(directory))
            yield proposal("test-runner", name, command, why, need, runs_tests=True)
            return
