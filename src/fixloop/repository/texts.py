"""The texts of many files at once, by two git commands however many there are."""

from collections.abc import Iterable

from fixloop.repository.git import Git

_LOOKED_AT = 8000
"""Bytes that tell whether a file is binary, as git does it."""


def texts(git: Git, names: Iterable[str], most_bytes: int) -> dict[str, str]:
    """What each blob's id or `commit:path` stands for; without what is not there, binary, or larger."""
    asked = [name for name in dict.fromkeys(names) if "\n" not in name]
    told = git.output("cat-file", "--batch-check=%(objecttype) %(objectsize)", stdin=_lines(asked))
    sizes = {
        name: int(line.removeprefix(b"blob "))
        for name, line in zip(asked, told.split(b"\n"), strict=False)
        if line.startswith(b"blob ") and line[5:].isdigit() and int(line[5:]) <= most_bytes
    }
    content, place = git.output("cat-file", "--batch=", stdin=_lines(sizes)), 0
    found: dict[str, str] = {}
    for name, size in sizes.items():
        # Each has an empty line before it, where its kind and size would be, and a newline after it.
        data, place = content[place + 1 : place + 1 + size], place + size + 2
        if b"\0" not in data[:_LOOKED_AT]:
            found[name] = data.decode("utf-8", "replace")
    return found


def _lines(names: Iterable[str]) -> bytes:
    return "".join(f"{name}\n" for name in names).encode("utf-8", "surrogateescape")
