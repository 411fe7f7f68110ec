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


def read_blocks(text: str) -> tuple[Block, ...]:
    """The blocks of `text`, whose only line break is `\\n`; lines are counted from 1."""
    return tuple(_blocks(_markdown().parse(text), text.split("\n")))


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


def _blocks(tokens: "list[Token]", rows: list[str]) -> Iterator[Block]:
    for token, inner in _elements(tokens):
        line = token.map[0] + 1 if token.map else 0
        match token.type:
            case "heading_open":
                yield Heading(line, int(token.tag[1:]), inner[0].content)
            case "paragraph_open":
                yield Paragraph(line, tuple(inner[0].content.split("\n")))
            case "bullet_list_open" | "ordered_list_open":
                items = []
                for item, below in _elements(inner):
                    first, last = item.map or [0, 0]
                    text = unitem(item_text(rows[first:last]))
                    items.append(Item(first + 1, text, tuple(_blocks(below, rows))))
                yield Items(line, tuple(items))
            case "table_open":
                cells = [row for _, part in _elements(inner) for _, row in _elements(part)]
                told = (tuple(cell.content for cell in row if cell.type == "inline") for row in cells[1:])
                yield Table(line, tuple(told))
            case "fence":
                yield Fence(line, token.info.strip(), token.content)
            case "html_block":
                yield Comment(line, token.content)
            case "hr":
                yield Rule(line)


def _elements(tokens: "list[Token]") -> "Iterator[tuple[Token, list[Token]]]":
    """Each token of the outermost level, with those up to the one that closes it."""
    start = depth = 0
    for number, token in enumerate(tokens):
        depth += token.nesting
        if depth <= 0:
            yield tokens[start], tokens[start + 1 : number]
            start, depth = number + 1, 0
