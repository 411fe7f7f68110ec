"""Foreign text made harmless to look at: nothing in it acts on a terminal, a browser or the order of letters."""

import re
from typing import Final

__all__ = ["clean", "one_line"]

#: A terminal's colours and cursor movements.
_SEQUENCES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
#: Control characters, halves of surrogate pairs, what is no character, and what turns the direction of writing.
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)


def clean(text: str) -> str:
    """`text` with its own line breaks and tabs, all other hidden characters replaced."""
    return _HIDDEN.sub("\ufffd", _SEQUENCES.sub("", text.replace("\r\n", "\n")))


def one_line(text: str, most: int = 300) -> str:
    """`text` on one line of at most `most` characters."""
    line = " ".join(clean(text[: 4 * most]).split())
    return line if len(line) <= most and len(text) <= 4 * most else f"{line[: most - 1]}…"
