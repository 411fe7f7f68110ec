"""Compiles modules of a project as Python and pytest do. Runs in the project's interpreter, as text.

Standard input: a JSON list of (source, its kept bytecode or "", the bytecode's place, its tag). A module that cannot be
compiled without a warning is left to the command that imports it. Older interpreters run this, too.
"""

import _imp
import ast
import json
import marshal
import os
import sys
import warnings
from importlib.util import MAGIC_NUMBER, source_hash
from types import CodeType
from typing import cast

HASHED = (3).to_bytes(4, "little")


def code_of(source: str, content: bytes, kept: str, tag: str) -> CodeType:
    """Raises any error of compiling it."""
    if kept:
        with open(kept, "rb") as file:
            code = cast(CodeType, marshal.loads(file.read()[16:]))
        _imp._fix_co_filename(code, source)  # type: ignore[attr-defined]
        return code
    if tag == sys.implementation.cache_tag:
        return compile(content, source, "exec", dont_inherit=True)
    from _pytest.assertion import rewrite

    if tag != rewrite.PYTEST_TAG:
        raise ValueError(tag)
    tree = ast.parse(content, filename=source)
    rewrite.rewrite_asserts(tree, content, source, None)
    return compile(tree, source, "exec", dont_inherit=True)


def compile_module(source: str, kept: str, target: str, tag: str) -> None:
    with open(source, "rb") as file:
        content, status = file.read(), os.fstat(file.fileno())
    code = code_of(source, content, kept, tag)
    is_by_content = tag == sys.implementation.cache_tag
    if not is_by_content:
        from _pytest.assertion import rewrite

        # As newer versions of pytest do; older ones go by date and size.
        is_by_content = hasattr(rewrite, "_fix_code_filename")
    if is_by_content:
        # PEP 552: it is used only for a source with this hash.
        head = HASHED + source_hash(content)
    else:
        # A date that no later edit can have.
        seconds = int(status.st_mtime) - 2
        os.utime(source, (seconds, seconds))
        stamps = (0, seconds & 0xFFFFFFFF, status.st_size & 0xFFFFFFFF)
        head = b"".join(number.to_bytes(4, "little") for number in stamps)
    with open(target + ".new", "xb") as new:
        new.write(MAGIC_NUMBER + head + marshal.dumps(code))
    os.replace(target + ".new", target)


def main() -> None:
    modules = json.load(sys.stdin)
    try:
        from _pytest.assertion import rewrite  # noqa: F401
    except Exception:
        modules = [each for each in modules if each[3] == sys.implementation.cache_tag]
    warnings.simplefilter("error")
    for each in modules:
        try:
            compile_module(*each)
        except Exception:
            continue


if __name__ == "__main__":
    main()
