"""A parsed file for the rules: a syntax tree or tokens, and the enclosing function of each line."""

import ast
import io
import re
import tokenize
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

from fixloop.integrity.tokens import LANGUAGES, Token, tokens

_JOINED: Final = ["]", ".", "join", "(", ")"]
_GO_MARGIN: Final = re.compile(r"func (?:\([^()]*\) )?(\w+)|\}")
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Sign(NamedTuple):
    """One match of a rule in a file."""

    rule: str
    key: str
    """Identifies what was found, independent of context; `kin` is its more general form."""
    kin: str
    text: str
    """One sentence."""
    path: str
    line: int
    code: str
    """Its line without indentation: with the key, it identifies the sign after a move."""
    scope: str
    """Its function, as `Class.method`: with the key, it identifies the sign after its line changed."""


class Span(NamedTuple):
    first: int
    last: int
    name: str


@dataclass(frozen=True)
class Source:
    """One file at one commit."""

    path: str
    text: str

    @cached_property
    def ending(self) -> str:
        return self.path.rpartition("/")[2].rpartition(".")[2].lower()

    @property
    def is_python(self) -> bool:
        return self.ending in ("py", "pyi", "pyw")

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def tree(self) -> ast.Module | None:
        """None for another language, and for text that this Python cannot parse."""
        if not self.is_python:
            return None
        try:
            with warnings.catch_warnings(action="ignore"):
                return ast.parse(self.text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        return tuple(ast.walk(self.tree)) if self.tree else ()

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """Tokens of a language with braces; empty for others."""
        language = LANGUAGES.get(self.ending)
        return tuple(tokens(self.text, language)) if language else ()

    @cached_property
    def code_tokens(self) -> tuple[Token, ...]:
        return tuple(token for token in self.tokens if token.kind != "comment")

    @cached_property
    def comments(self) -> tuple[Token, ...]:
        """In Python, up to the first token error."""
        if not self.is_python:
            return tuple(token for token in self.tokens if token.kind == "comment")
        found = []
        # From Python 3.12 on, tokenize itself cannot read a text with a single CR in front of some characters.
        with suppress(tokenize.TokenError, SyntaxError, ValueError):
            for token in tokenize.generate_tokens(io.StringIO(self.text, newline=None).readline):
                if token.type == tokenize.COMMENT:
                    found.append(Token("comment", token.string, token.start[0]))
        return tuple(found)

    @cached_property
    def scopes(self) -> tuple[Span, ...]:
        """Python functions and classes, outer ones first, and Go functions, which end at the left margin."""
        if self.ending == "go":
            margin = [(number, _GO_MARGIN.match(line)) for number, line in enumerate(self.lines, 1)]
            marks = [(number, found[1] or "") for number, found in margin if found] + [(len(self.lines), "")]
            return tuple(Span(first, last, name) for (first, name), (last, _) in pairwise(marks) if name)
        return tuple(_scopes(self.tree, "")) if self.tree else ()

    def scope(self, line: int) -> str:
        return self.span(line).name

    def span(self, line: int) -> Span:
        """The innermost function or class around a line; unnamed at module level."""
        whole = Span(0, len(self.lines), "")
        return next((each for each in reversed(self.scopes) if each.first <= line <= each.last), whole)

    def sign(self, rule: str, key: str, line: int, text: str, *, kin: str = "") -> Sign:
        code = " ".join(self.lines[line - 1].split()) if 0 < line <= len(self.lines) else ""
        return Sign(rule, key, kin or key, text, self.path, line, code, self.scope(line))

    def shapes(self, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], int]]:
        """The matches of a pattern and their lines in code with braces: tokens joined by one space, strings in `'`."""
        for found in pattern.finditer(self._joined_tokens[0]):
            yield found, self._joined_tokens[1][found.start()]

    @cached_property
    def _joined_tokens(self) -> tuple[str, list[int]]:
        pieces: list[str] = []
        lines: list[int] = []
        for token in _put_together(self.code_tokens):
            pieces.append(f"'{token.text}'" if token.kind == "string" else token.text.replace("?.", "."))
            lines += [token.line] * (len(pieces[-1]) + 1)
        return " ".join(pieces), lines

    @cached_property
    def imported(self) -> dict[str, list[tuple[Span, int, str]]]:
        """What each imported name refers to (`np` to `numpy`), with the scope and line of each import."""
        found = defaultdict[str, list[tuple[Span, int, str]]](list)
        for node in self.nodes:
            if not isinstance(node, ast.Import | ast.ImportFrom) or getattr(node, "level", False):
                continue
            above = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            for each in node.names:
                # `import a.b` binds `a`.
                bound = each.name if each.asname or above else each.name.split(".")[0]
                found[each.asname or bound].append((self.span(node.lineno), node.lineno, above + bound))
        return found

    def dotted(self, node: ast.AST | None) -> str:
        """The full name such as `inspect.stack`, whatever its alias in the file; empty if it is not a name."""
        if isinstance(node, ast.Name):
            # Use the import in the innermost scope around the line, and there the last one before it.
            line, bound = node.lineno, self.imported.get(node.id, ())
            near = [(a.first <= line <= a.last, a.first, at <= line, at, means) for a, at, means in bound]
            return max(near)[-1] if near else node.id
        if isinstance(node, ast.Attribute):
            above = self.dotted(node.value)
            return f"{above}.{node.attr}" if above else ""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            # Computed names: `getattr(sys, "_get" + "frame")`, `__import__("os")._exit`.
            name, words = self.dotted(node.func), [text for each in node.args for text in strings_of(each)]
            if name == "getattr" and words and (above := self.dotted(node.args[0])):
                return f"{above}.{words[0]}"
            return words[0] if words and name in ("__import__", "importlib.import_module") else ""
        return ""


def names_in(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def strings_of(node: ast.AST) -> Iterator[str]:
    """The string value of a literal, a concatenation or a `join`, at most one."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [text for side in (node.left, node.right) for text in list(strings_of(side))[:1]]
        yield from ["".join(parts)] if len(parts) == 2 else []
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "join":
        pieces = [each for arg in node.args for each in getattr(arg, "elts", ())]
        yield "".join(text for each in pieces for text in strings_of(each))


def _put_together(found: Iterable[Token]) -> list[Token]:
    """Tokens with `'VI' + 'TEST'` and `['VI', 'TEST'].join('')` as the one string that they make."""
    done: list[Token] = []
    for token in found:
        done.append(token)
        if [each.kind for each in done[-3::2]] == ["string", "string"] and done[-2].text == "+":
            done[-3:] = [done[-3]._replace(text=done[-3].text + token.text)]
        elif token.kind == "mark" and [each.text for each in (*done[-6:-2], token)] == _JOINED:
            first = len(done) - 7
            while first > 0 and (done[first].kind == "string" or done[first].text == ","):
                first -= 1
            pieces = [each.text for each in done[first:-6] if each.kind == "string"]
            if done[first].text == "[":
                done[first:] = [Token("string", done[-2].text.join(pieces), token.line)]
    return done


def _scopes(node: ast.AST, above: str) -> Iterator[Span]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function | ast.ClassDef):
            name = f"{above}.{child.name}" if above else child.name
            first = min([child.lineno, *(each.lineno for each in child.decorator_list)])
            yield Span(first, child.end_lineno or first, name)
            yield from _scopes(child, name)
        else:
            yield from _scopes(child, above)
