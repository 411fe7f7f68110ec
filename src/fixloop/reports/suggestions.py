"""What a tool itself recommends for a failure, and the one case in which the plain reading of a test is wrong (B22).

Owns the wording. Guesses nothing from the kind of an error: such a guess is wrong more often than right.
"""

from typing import Final

from fixloop.protocol.failures import Failure
from fixloop.reports.limits import one_line

_TEXT_BYTES: Final = 300


def for_test(failure: Failure) -> str:
    """What to know about a failing test; empty: its error says it."""
    if failure.message.startswith("[XPASS(strict)]"):
        return "the test is marked as expected to fail, and passes: find what made it pass, and whether that is meant"
    return ""


def for_rule(fix: str, help_text: str, help_uri: str) -> str:
    """The tool's own fix, else its rule's help, else where to read about it."""
    return next((line for text in (fix, help_text, help_uri) if (line := one_line(text, _TEXT_BYTES))), "")
