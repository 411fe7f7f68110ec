"""A minimal lexer for languages with braces: enough to distinguish code from comments and strings.

Never fails: invalid text becomes single marks, and most unterminated strings end with their line.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

LANGUAGES: Final[dict[str, str]] = {
    **dict.fromkeys(("js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"), "javascript"),
    "go": "go",
    "rs": "rust",
}
"""By file extension."""


class Token(NamedTuple):
    """A piece of text that is not white space; a string has no quotes, and `word` includes keywords."""

    kind: str
    text: str
    line: int


_COMMENT: Final = r"(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))"
_QUOTED: Final = r'"(?:\\.|[^"\\\n])*"?'
_SINGLE: Final = r"'(?:\\.|[^'\\\n])*'?"
_STRINGS: Final[dict[str, str]] = {
    "javascript": f"{_QUOTED}|{_SINGLE}",
    "go": rf"{_QUOTED}|{_SINGLE}|`[^`]*`?",
    "rust": r'b?r(?P<hashes>\#*)".*?(?:"(?P=hashes)|\Z)|b?"(?:\\.|[^"\\])*"?|' + r"b?'(?:\\[^']+|[^'\\\n])'",
}
_REST: Final = (
    r"(?P<word>[^\W\d][\w$]*|[$@][\w$]*)|(?P<number>\d[\w.]*)"
    r"|(?P<mark>===|!==|==|!=|=>|->|::|\?\.|&&|\|\||\S)"
)
_PATTERNS: Final = {
    language: re.compile(rf"{_COMMENT}|(?P<string>{strings})|{_REST}", re.DOTALL)
    for language, strings in _STRINGS.items()
}
_REGEXP: Final = re.compile(r"/(?:\\.|\[(?:\\.|[^\]\\\n]){0,200}\]|[^/\\\n\[]){1,1000}/[a-z]*")
_TEMPLATE: Final = re.compile(r"(?:\\.|\$(?!\{)|[^`$\\])*", re.DOTALL)
_BEFORE_REGEXP: Final = frozenset(
    ("return", "typeof", "case", "in", "of", "do", "else", "void", "throw", "await", "yield")
)


def tokens(text: str, language: str) -> Iterator[Token]:
    """The tokens of a text, in order. Code between `${` and `}` in a template is code."""
    pattern, position, line, last = _PATTERNS[language], 0, 1, Token("mark", "", 0)
    # For each open template: the number of open braces in the code within it.
    templates: list[int] = []
    while found := pattern.search(text, position):
        line += text.count("\n", position, found.start())
        kind, piece, position = found.lastgroup or "mark", found[0], found.end()
        if language == "javascript" and kind == "mark":
            if piece == "/" and _may_be_regexp(last) and (whole := _REGEXP.match(text, found.start())):
                kind, piece, position = "regexp", whole[0], whole.end()
            elif templates and piece in "{}":
                templates[-1] += 1 if piece == "{" else -1
            if piece == "`" or (piece == "}" and templates and templates[-1] < 0):
                if piece == "}":
                    templates.pop()
                inside = _TEMPLATE.match(text, position)
                assert inside is not None
                kind, piece, position = "string", f"`{inside[0]}`", inside.end()
                if text.startswith("${", position):
                    templates.append(0)
                position += 2 if text.startswith("${", position) else 1
        if kind == "string":
            bare = piece.lstrip("br#") if piece[0] in "br" else piece
            piece = bare.rstrip("#").strip(bare[0]) if bare else ""
        last = Token("string" if kind == "hashes" else kind, piece, line)
        yield last
        line += text.count("\n", found.start(), position)


def _may_be_regexp(before: Token) -> bool:
    """Whether a slash here starts a regular expression rather than divides."""
    if before.kind == "word":
        return before.text in _BEFORE_REGEXP
    return before.kind in ("mark", "comment") and before.text not in (")", "]", "}")
