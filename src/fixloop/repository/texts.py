"""Reads the texts of many files with two git commands, however many there are."""

from collections.abc import Iterable

from fixloop.repository.git import Git
from fixloop.repository.tree import contents

_LOOKED_AT = 8000
"""The bytes that decide whether a file is binary, as in git."""


def texts(git: Git, names: Iterable[str], most_bytes: int) -> dict[str, str]:
    """The text of each blob id or `commit:path`, except missing, binary and larger files."""
    asked = [name for name in dict.fromkeys(names) if "\n" not in name]
    lines = "".join(f"{name}\n" for name in asked).encode("utf-8", "surrogateescape")
    told = git.output("cat-file", "--batch-check=%(objecttype) %(objectsize)", stdin=lines)
    wanted = [
        name
        for name, line in zip(asked, told.split(b"\n"), strict=False)
        if line.startswith(b"blob ") and line[5:].isdigit() and int(line[5:]) <= most_bytes
    ]
    found = contents(git, wanted).items()
    return {name: data.decode("utf-8", "replace") for name, data in found if b"\0" not in data[:_LOOKED_AT]}
