"""Failing tests in what unittest and TAP print, for checks that write no report.

Owns their names: the id by which unittest finds a test, and the title above a point of TAP. Other outputs have none.
"""

import re
from collections.abc import Iterator
from textwrap import dedent
from typing import Final

from fixloop.protocol.failures import Failure
from fixloop.reports.report import failure_of, place_in
from fixloop.reports.tracebacks import deepest, error_type, frames_in, line_in
from fixloop.reports.tree import SourceTree

_BLOCK: Final = re.compile(
    r"^={20,}\n(?P<end>ERROR|FAIL): (?:(?P<method>\S+) \((?P<owner>\S+)\)(?P<more>[^\n]*)|(?P<other>[^\n]+))\n"
    r"(?P<about>(?:(?!-{20})[^\n]*\n){0,9}?)-{20,}\n"
    r"(?P<said>.*?)(?=\n={20,}\n(?:ERROR|FAIL|UNEXPECTED SUCCESS): |\n-{20,}\nRan \d|\Z)",
    re.MULTILINE | re.DOTALL,
)
_LAST_FRAME: Final = re.compile(r'\A.*^ +File "[^\n]*', re.MULTILINE | re.DOTALL)

# A point with what explains it, which most write as YAML and some as comments, or a comment: a title.
_TAP: Final = re.compile(
    r"^(?P<indent> *)(?P<bad>not )?ok \d+\b(?: -)? ?(?P<name>[^\n]*?)"
    r"(?P<directive>\s# ?(?i:todo|(?P<timed>time)|skip)\b[^\n]*)?$"
    r"(?:\n(?P<margin> +)---(?P<yaml>(?:\n(?! *(?:not )?ok \d)[^\n]*){0,200}?)\n(?P=margin)\.\.\.$"
    r"|(?(directive)(?!)|(?(bad)(?P<comments>(?:\n *#(?! Subtest:)[^\n]*){1,50})|(?!))))?"
    r"|^ *# (?:Subtest: )?(?P<title>[^\n]+)",
    re.MULTILINE,
)
_ERROR: Final = re.compile(r"^ *(?:error|message): (?:[|>]-?\n *)?['\"]?([^\n]+?)['\"]?$", re.MULTILINE)


def failing_tests(output: str, tree: SourceTree) -> tuple[Failure, ...]:
    """Each test that unittest or a TAP producer calls failed, in their order."""
    return (*_of_unittest(output, tree), *_of_tap(output, tree))


def _of_unittest(output: str, tree: SourceTree) -> Iterator[Failure]:
    for block in _BLOCK.finditer(output):
        said, method, owner = block["said"].strip("\n"), block["method"], block["owner"]
        # Before Python 3.11 the class alone stands in parentheses.
        whole = owner if f".{owner}".endswith(f".{method}") else f"{owner}.{method}"
        name = block["other"] or whole.removeprefix("unittest.loader._FailedTest.")
        # The error stands behind the last frame and the code it shows.
        error = next((row for row in _LAST_FRAME.sub("", said).split("\n") if row[:1].strip()), "")
        file = tree.module_file(name)[0] or next((frame.file for frame in frames_in(said, tree)), "")
        kind = error_type(None, error, said, block["end"].lower())
        about = (error, (block["more"] or "").strip(), block["about"].strip(), said)
        yield _failure(name, (file, line_in(said, file)), kind, about, tree)


def _of_tap(output: str, tree: SourceTree) -> Iterator[Failure]:
    title, depth, failed_at = "", 0, 0
    for point in _TAP.finditer(output):
        if point["title"]:
            title = point["title"].strip()
            continue
        indent, name = len(point["indent"]), point["name"].strip() or "unnamed test"
        # What ends a group of points stands further left, and fails where one of them does.
        title, depth = "" if indent < depth else title, indent
        if point["bad"] and (point["timed"] or not point["directive"]):
            is_told, failed_at = indent < failed_at, indent
            text = dedent(point["yaml"] or point["comments"] or "").strip("\n")
            error = _ERROR.search(text)
            full = f"{title} > {name}" if title and title != name else name
            about = (error[1] if error else name, text)
            if not is_told:
                yield _failure(full, place_in(text, tree), error_type(None, "", text, "failure"), about, tree)


def _failure(
    name: str, place: tuple[str, int | None], kind: str, about: tuple[str, ...], tree: SourceTree
) -> Failure:
    frame = str(deepest(about[-1], tree) or "")
    return failure_of(name, kind, "\n".join(filter(None, about)), *place, frame=frame)
