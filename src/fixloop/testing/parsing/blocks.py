"""The blocks of a rendered message: Markdown's structure, with the words as they were written.

markdown-it reads the structure and nothing else: inline marks stay as they stand, because the words are
escaped by our own rules and read back by them.
"""

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from fixloop.protocol.markdown import item_text, unitem

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


class Heading(NamedTuple):
    line: int
    level: int
    text: str


class Rule(NamedTuple):
    line: int


class Paragraph(NamedTuple):
    line: int
    rows: tuple[str, ...]


class Fence(NamedTuple):
    line: int
    info: str
    content: str


class Comment(NamedTuple):
    line: int
    text: str


class Table(NamedTuple):
    line: int
    rows: tuple[tuple[str, ...], ...]
    """Without the row of titles."""


class Item(NamedTuple):
    line: int
    text: str
    """The item's words; meaningless where it holds fields."""
    blocks: "tuple[Block, ...]"


class Items(NamedTuple):
    line: int
    items: tuple[Item, ...]


Block = Heading | Rule | Paragraph | Fence | Comment | Table | Items


@cache
def _markdown() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # slow to load, and only what reads messages needs it

    # Our own messages are four levels deep; deeper nesting says nothing and is what makes a hostile text slow.
    made = (
        MarkdownIt("commonmark", {"maxNesting": 12})
        .enable("table")
        .disable(["lheading", "reference", "code"])
    )
    made.core.ruler.enableOnly(["normalize", "block"])
    return made


def read_blocks(text: str) -> tuple[Block, ...]:
    """
    The blocks of `text`, lines counted from 1.

    Args:
        text: Markdown with `\\n` as its only line break.
    """
    return tuple(_Reader(text).blocks(_markdown().parse(text)))


class _Reader:
    def __init__(self, text: str) -> None:
        self._rows = text.split("\n")

    def blocks(self, tokens: "list[Token]") -> Iterator[Block]:
        index = 0
        while index < len(tokens):
            end = _end(tokens, index)
            block = self._block(tokens[index], tokens[index + 1 : end])
            if block is not None:
                yield block
            index = end + 1

    def _block(self, token: "Token", inner: "list[Token]") -> Block | None:
        line = token.map[0] + 1 if token.map else 0
        match token.type:
            case "heading_open":
                return Heading(line, int(token.tag[1:]), inner[0].content)
            case "paragraph_open":
                return Paragraph(line, tuple(inner[0].content.split("\n")))
            case "bullet_list_open" | "ordered_list_open":
                return Items(line, tuple(self._items(inner)))
            case "table_open":
                return Table(line, tuple(_table_rows(inner)))
            case "fence":
                return Fence(line, token.info.strip(), token.content)
            case "html_block":
                return Comment(line, token.content)
            case "hr":
                return Rule(line)
            case _:
                return None

    def _items(self, tokens: "list[Token]") -> Iterator[Item]:
        index = 0
        while index < len(tokens):
            end = _end(tokens, index)
            first, last = tokens[index].map or [0, 0]
            inner = tuple(self.blocks(tokens[index + 1 : end]))
            yield Item(first + 1, unitem(item_text(self._rows[first:last])), inner)
            index = end + 1


def _end(tokens: "list[Token]", index: int) -> int:
    """The index of the token that closes the one at `index`."""
    depth = 0
    for number in range(index, len(tokens)):
        depth += tokens[number].nesting
        if depth <= 0:
            return number
    return len(tokens)


def _table_rows(tokens: "list[Token]") -> Iterator[tuple[str, ...]]:
    starts = [number for number, token in enumerate(tokens) if token.type == "tr_open"]
    for start in starts[1:]:
        row = tokens[start : _end(tokens, start)]
        yield tuple(token.content for token in row if token.type == "inline")
