"""Examples in docstrings: tests in a product file, which a fix can edit."""

import ast
import doctest
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from fixloop.integrity.difference import Change
from fixloop.protocol.checks import Finding

RULE: Final = "doctest"
_DOCUMENTED: Final = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def edited(changes: Sequence[Change], run: Collection[str]) -> Iterator[Finding]:
    """Examples that no changed product file contains unchanged. `run`: the files whose examples run as tests; other
    files are not judged."""
    product = [each for each in changes if not each.is_test and each.path.endswith(".py")]
    now = Counter(example for each in product for example in _examples(each.new or ""))
    for each in product:
        gone = list((Counter(_examples(each.old or "")) - now).elements()) if each.path in run else []
        if gone:
            rest = f", and {len(gone) - 1} more" if len(gone) > 1 else ""
            text = f"an example in a docstring is not as it was{rest}"
            yield Finding(rule=RULE, text=text, file=each.path, old=gone[0])


def _examples(text: str) -> Iterator[str]:
    try:
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, _DOCUMENTED)]
        documented = [ast.get_docstring(node) or "" for node in nodes]
        found = [each for said in documented for each in doctest.DocTestParser().get_examples(said)]
    except (SyntaxError, ValueError, RecursionError):
        return
    yield from (f">>> {each.source.strip()}\n{each.want.strip()}" for each in found)
