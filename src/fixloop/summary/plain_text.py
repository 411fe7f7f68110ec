"""Foreign text made harmless to look at: nothing in it acts on a terminal, a browser or the order of letters."""

import re
from typing import Final

from fixloop.machine.terminal_text import visible

#: A terminal's colours and cursor movements.
_SEQUENCES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


def clean(text: str) -> str:
    """`text` without colours, with its own line breaks and tabs; all other hidden characters are shown."""
    return visible(_SEQUENCES.sub("", text))


def one_line(text: str, most: int = 300) -> str:
    """`text` on one line of at most `most` characters."""
    line = " ".join(clean(text[: 4 * most]).split())
    return line if len(line) <= most and len(text) <= 4 * most else f"{line[: most - 1]}…"
