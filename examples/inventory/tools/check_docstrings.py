"""Prints `path:line: message` for each public function or class without a docstring."""

import ast
import sys
from pathlib import Path

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def main(folder: str) -> int:
    count = 0
    for path in sorted(Path(folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, DEFINITIONS) or node.name.startswith("_"):
                continue
            if ast.get_docstring(node) is None:
                print(f"{path.as_posix()}:{node.lineno}: {node.name} has no docstring")
                count += 1
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
