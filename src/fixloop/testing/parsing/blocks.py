"""The blocks of a rendered message: Markdown's structure, with the words as they were written.

markdown-it reads the structure and nothing else: inline marks stay as they stand, because the words are
escaped by our own rules and read back by them.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from fixloop.protocol.markdown import item_text, unitem

# Our own messages are four levels deep; deeper nesting says nothing and is what makes a hostile text slow.
_MARKDOWN: Final = MarkdownIt("commonmark", {"maxNesting": 12})
_MARKDOWN.enable("table").disable(["lheading", "reference", "code"])
_MARKDOWN.core.ruler.enableOnly(["normalize", "block"])


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
    return tuple(_blocks(SyntaxTreeNode(_MARKDOWN.parse(text)).children, text.split("\n")))


def _blocks(nodes: Sequence[SyntaxTreeNode], rows: list[str]) -> Iterator[Block]:
    for node in nodes:
        line = node.map[0] + 1 if node.map else 0
        match node.type:
            case "heading":
                yield Heading(line, int(node.tag[1:]), node.children[0].content)
            case "paragraph":
                yield Paragraph(line, tuple(node.children[0].content.split("\n")))
            case "bullet_list" | "ordered_list":
                items = []
                for item in node.children:
                    first, last = item.map or (0, 0)
                    text = unitem(item_text(rows[first:last]))
                    items.append(Item(first + 1, text, tuple(_blocks(item.children, rows))))
                yield Items(line, tuple(items))
            case "table":
                cells = [row.children for part in node.children for row in part.children]
                told = (tuple(cell.children[0].content for cell in row) for row in cells[1:])
                yield Table(line, tuple(told))
            case "fence":
                yield Fence(line, node.info.strip(), node.content)
            case "html_block":
                yield Comment(line, node.content)
            case "hr":
                yield Rule(line)
