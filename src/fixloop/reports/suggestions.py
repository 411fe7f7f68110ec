"""One short, honest recommendation for each failure, from what is known of its kind (B22).

Owns the wording. Claims nothing about the code that the report does not say.
"""

from typing import Final

from fixloop.protocol.failures import Failure
from fixloop.reports.limits import one_line

__all__ = ["for_coverage", "for_line", "for_output", "for_rule", "for_test"]

_TEXT_BYTES: Final = 300
_BY_ERROR: Final = {
    "ModuleNotFoundError": "make the import work: add the missing module or dependency, or correct its name",
    "ImportError": "make the import work: provide the missing name or correct it",
    "SyntaxError": "correct the syntax",
    "IndentationError": "correct the indentation",
    "NameError": "define or import the name before it is used",
    "AttributeError": "give the object this attribute, or stop asking for it where it cannot be there",
    "KeyError": "make sure the key is there, or handle its absence",
    "IndexError": "check the length before the index is used",
    "TypeError": "make the call and the definition agree on their arguments and types",
    "FileNotFoundError": "create the file or correct its path",
    "TimeoutError": "find what never finishes and end it",
}


def for_test(failure: Failure) -> str:
    """What to do about a failing test."""
    test = failure.name.rsplit("::", 1)[-1]
    kind = failure.error_type.replace("\\", ".").rsplit(".", 1)[-1]
    where = f" (see {failure.location})" if failure.location else ""
    if known := _BY_ERROR.get(kind):
        return f"{known}{where}"
    if "Assert" in kind or kind in {"failure", "Failed", "ComparisonFailure"}:
        return f"make `{test}` pass: change the code to behave as the test expects{where}"
    return f"find why `{test}` ends in `{kind}` and correct the cause{where}"


def for_rule(failure: Failure, fix: str, help_text: str, help_uri: str) -> str:
    """What to do about a finding: the tool's own fix, else its rule's help, else where to read about it."""
    for text in (fix, help_text):
        if line := one_line(text, _TEXT_BYTES):
            return line
    where = f" at {failure.location}" if failure.location else ""
    more = f"; {one_line(help_uri, _TEXT_BYTES)} explains it" if help_uri else ""
    return f"change the code{where} so that it satisfies `{failure.name}`{more}"


def for_line(failure: Failure) -> str:
    """What to do about one line of a tool's output."""
    return f"correct {failure.location}: {one_line(failure.message, _TEXT_BYTES)}"


def for_output(check: str, command: str) -> str:
    """What to do about a command that only said no."""
    return f"run `{one_line(command, _TEXT_BYTES)}` and correct what `{check}` reports until it exits with 0"


def for_coverage(worst_file: str) -> str:
    """What to do about too little coverage."""
    return f"add tests that run the missing lines{f' of {worst_file}' if worst_file else ''}"
