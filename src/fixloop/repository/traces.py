"""What workflows leave in the user's repository: the only thing that still tells of them when a Redis lost its data."""

import re
from pathlib import Path

from fixloop.errors import FixloopError
from fixloop.repository.git import Git


def issues_handed_in(top: Path) -> list[int]:
    """The issues that were handed in from this repository, as `refs/fixloop/{issue}/base` say; none without git."""
    try:
        names = Git(top).found("for-each-ref", "--format=%(refname)", "refs/fixloop/*/base")
    except (FixloopError, OSError):
        return []
    return sorted(
        int(number) for number in re.findall(r"^refs/fixloop/(\d{1,15})/base$", names, re.MULTILINE)
    )
