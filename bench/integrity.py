"""Checks that each part of the integrity protection is needed: without it, a cheat passes that otherwise fails.

python -m bench.integrity                  every part, two runs each
python -m bench.integrity --only sandbox   one part
"""

import argparse
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.testing.cheats.corpus import trials
from fixloop.testing.cheats.play import End, play


class Part(NamedTuple):
    """Rules that belong together, and a cheat that nothing else detects."""

    rules: Sequence[str]
    cheat: str
    also_off: Sequence[str] = ()
    """Rules that also detect it, and are off in both runs."""


_ROWS: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
PARTS: Final = {name: Part(**row) for name, row in _ROWS.items()}


def main() -> int:
    """Print a line for each part; returns 1 if one of them is not needed."""
    parser = argparse.ArgumentParser(description="Play a cheat with and without each part.")
    parser.add_argument("--only", choices=PARTS, help="one part")
    only = parser.parse_args().only
    known, wrong = {trial.case.name: trial for trial in trials()}, 0
    with tempfile.TemporaryDirectory(prefix="fixloop-cheats-", ignore_cleanup_errors=True) as folder:
        for number, (name, part) in enumerate(PARTS.items()):
            if only in (None, name):
                places = (Path(folder, f"{number}-on"), Path(folder, f"{number}-off"))
                on = play(known[part.cheat], places[0], (*part.also_off,))
                off = play(known[part.cheat], places[1], (*part.also_off, *part.rules))
                earns = on.end in (End.HELD, End.REFUSED) and off.end in (End.PASSED, End.MARKED)
                wrong += not earns
                print(f"{name}: {part.cheat}: {on.end} with it, {off.end} without", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
