"""What a failing test's text says about the error and the line.

Owns the guessing; every pattern reads a bounded piece of the text, so that no text can make it slow.
"""

import re
from typing import Final

_EXCERPT: Final = 4096
_TOKEN: Final = 512
_MOST_TRIES: Final = 1000
_KIND: Final = r"(?:Error|Exception|Failure|Failed|Warning|Timeout|Interrupt|Exit)"
_NAMED: Final = re.compile(r"\b([A-Za-z_]\w{0,60}(?:Error|Exception)|Error|Exception)\b")
_HEAD: Final = re.compile(rf"\s*((?:[\w$]{{1,100}}[.\\]){{0,20}}\w{{0,100}}{_KIND})\s*(?::|$)", re.MULTILINE)
_CRASH: Final = re.compile(
    r"^[ \t]*\S[^:\n]{0,500}:\d{1,7}: ((?:\w{1,100}\.){0,20}[A-Z]\w{0,100})\s*$", re.MULTILINE
)
_PYTHON: Final = re.compile(r"^((?:\w{1,100}\.){0,20}[A-Z]\w{0,100})(?::|$)", re.MULTILINE)
_RAISED: Final = re.compile(r"^E +((?:\w{1,100}\.){0,20}\w{0,100}(?:Error|Exception))(?::|$)", re.MULTILINE)
_AFTER_FILE: Final = re.compile(r'(?:", line |:|\()(\d{1,7})')


def error_type(declared: str | None, message: str, text: str, fallback: str) -> str:
    """
    The kind of error, for the key of a failure (K7).

    Taken from the report's own `type`, else from how the message begins, else from the line that ends a
    traceback, else from the first name in the message or text that looks like an error; else `fallback`.
    """
    if declared and declared.strip():
        return declared.strip()
    if message.startswith("Traceback") and (names := _PYTHON.findall(message[-_EXCERPT:])):
        return str(names[-1])
    if head := _HEAD.match(message[:_EXCERPT]):
        return head[1]
    if crashes := _CRASH.findall(text[-_EXCERPT:]):
        return str(crashes[-1])
    if raised := _RAISED.findall(text[-_EXCERPT:]):
        return str(raised[-1])
    for excerpt in (message[:_EXCERPT], text[:_EXCERPT], text[-_EXCERPT:]):
        if named := _NAMED.search(excerpt):
            return named[1]
    return fallback


def raised_in(text: str) -> str:
    """What pytest says was raised, as `KeyError: 'x'`; empty where it names no error."""
    excerpt = text[-_EXCERPT:]
    found = [excerpt[match.start(1) :].partition("\n")[0] for match in _RAISED.finditer(excerpt)]
    return found[-1] if found else ""


def line_in(text: str, file: str) -> int | None:
    """The last line of `file` that `text` names, as `path:12`, `File "path", line 12` or `path(12)`."""
    base = file.rsplit("/", 1)[-1]
    end = len(text)
    for _ in range(_MOST_TRIES if base else 0):
        start = text.rfind(base, 0, end)
        if start < 0:
            break
        end = start + len(base)
        if after := _AFTER_FILE.match(text, end):
            token = re.split(r"[\s\"'()<>]", text[max(start - _TOKEN, 0) : end])[-1]
            path = token.replace("\\", "/").removeprefix("./")
            # The same file, seen from above or from below the workspace.
            if path == file or path.endswith(f"/{file}") or file.endswith(f"/{path}"):
                return int(after[1])
        end -= 1
    return None
