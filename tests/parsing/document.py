"""A rendered message as a reader of one type sees it: a title, and parts with fields, lists and tables.

markdown-it reads the structure and nothing else: inline marks stay as they stand, because the words are escaped by our
own rules and read back by them. A part begins at a rule or at a heading below the title. Fields are the lines
`**Label**: value`, alone or in a list; emphasis (`*not reported*`) is the template's word for "nothing": no tool's text
begins with an unescaped star.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple, TypeVar

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from fixloop.errors import UsageError
from fixloop.protocol.markdown import item_text, unescape, unitem

# Our own messages are four levels deep; deeper nesting says nothing and is what makes a hostile text slow.
_MARKDOWN: Final = MarkdownIt("commonmark", {"maxNesting": 12})
_MARKDOWN.enable("table").disable(["lheading", "reference", "code"])
_MARKDOWN.core.ruler.enableOnly(["normalize", "block"])
_FIELD: Final = re.compile(r"\*\*([^*]+)\*\*:(?: (.*))?", re.DOTALL)
_NUMBER: Final = re.compile(r"-?[0-9]{1,9}")
_CLOCK: Final = re.compile(r"(?:([0-9]{1,9}):)?([0-9]{2,9}):([0-5][0-9])")
_PERIOD: Final = re.compile(r"([0-9]{1,9}) (minute|second)s?")
_RUN: Final = re.compile(r"Iteration [0-9]{1,9}: ([0-9]{1,9}) failures?(?: \(PASS\))?")
_SHOWN: Final = re.compile(r"\\(?:\\|r|x[0-9a-f]{2}|u[0-9a-f]{4}|U000[0-9a-f]{5})")
_TITLE: Final = 2

E = TypeVar("E", bound=StrEnum)
M = TypeVar("M")


def unfence(info: str, content: str) -> str:
    """The text that `fence` wrote; `content` is what stands between the fences, its last line break included."""
    value = content.removesuffix("\n")
    if info != "escaped":
        return value
    return _SHOWN.sub(lambda found: found[0].encode("ascii").decode("unicode_escape"), value)


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


class UnreadableMessage(UsageError):
    """The text is not a message as fixloop renders it; the error names what is missing or wrong, and where."""


class _Field(NamedTuple):
    line: int
    value: str
    below: Block | None
    """What follows the field's line without another line between."""


@dataclass(eq=False)
class Part:
    title: str
    line: int
    blocks: Sequence[Block]
    _rows: Sequence[str]

    def written(self, before: str = "") -> str:
        """Its own lines as they stand, still escaped: what lies between its title and the field `before`."""
        end = self._fields[before].line - self.line if self.has(before) else len(self._rows)
        return "\n".join(self._rows[1 if self.title else 0 : end]).strip("\n")

    def field(self, label: str) -> str:
        """The text after `**{label}**:`, on its line or in the fence below; UnreadableMessage without it."""
        if not self.has(label):
            raise UnreadableMessage(f'{self} lacks the field "{label}"')
        return self.optional(label)

    def has(self, label: str) -> bool:
        return label in self._fields

    def optional(self, label: str) -> str:
        """As `field`, and empty where there is no such field."""
        found = self._fields.get(label)
        if found is None:
            return ""
        if not found.value and isinstance(found.below, Fence):
            return unfence(found.below.info, found.below.content)
        return "" if found.value.startswith("*") else unescape(found.value)

    def listed(self, label: str) -> tuple[str, ...]:
        """The items of the list below `**{label}**:`; none where there is no such field or list."""
        found = self._fields.get(label)
        below = found.below if found is not None else None
        return tuple(item.text for item in below.items) if isinstance(below, Items) else ()

    def items(self) -> tuple[str, ...]:
        """The items of the part's own list, which is below no field; none where it has none."""
        below = {id(field.below) for field in self._fields.values()}
        own = (block for block in self.blocks if isinstance(block, Items) and id(block) not in below)
        return tuple(item.text for item in next(own, Items(0, ())).items)

    def points(self) -> tuple["Part", ...]:
        """The items of the part's first list as parts: the item's first line is the title, its list the fields."""
        found = next((block for block in self.blocks if isinstance(block, Items)), None)
        return tuple(
            Part(unescape(item.blocks[0].rows[0]), item.line, item.blocks[1:], ())
            for item in (found.items if found is not None else ())
            if item.blocks and isinstance(item.blocks[0], Paragraph)
        )

    def nested(self, word: str) -> tuple[str, ...]:
        """The list inside the item that begins with `word`; none where it has none."""
        for block in self.blocks:
            for item in block.items if isinstance(block, Items) else ():
                if item.text.startswith(word):
                    inner = next((block for block in item.blocks if isinstance(block, Items)), None)
                    return tuple(nested.text for nested in inner.items) if inner is not None else ()
        return ()

    def rows(self) -> tuple[tuple[str, ...], ...]:
        found = next((block for block in self.blocks if isinstance(block, Table)), None)
        return tuple(tuple(map(unescape, row)) for row in found.rows) if found is not None else ()

    def parts(self, level: int) -> tuple["Part", ...]:
        return tuple(part for part in _parts(self.blocks, level, self._rows, self.line) if part.title)

    def search(self, pattern: str, missing: str) -> re.Match[str]:
        """The first line of text that all of `pattern` fits; its groups are still escaped."""
        rows: list[str] = []
        for block in self.blocks:
            if isinstance(block, Paragraph):
                rows += block.rows
            elif isinstance(block, Items):
                first = [item.blocks[0] for item in block.items if item.blocks]
                rows += [line.rows[0] for line in first if isinstance(line, Paragraph)]
        for row in rows:
            found = re.fullmatch(pattern, row, re.DOTALL)
            if found is not None:
                return found
        raise UnreadableMessage(f"{self} lacks {missing}")

    # Values; `words` are those of the field unless they are given.

    def number(self, label: str, words: str | None = None) -> int:
        words = self.field(label) if words is None else words
        if _NUMBER.fullmatch(words) is None:
            raise self._unfit(label, words, "a whole number")
        return int(words)

    def number_or_none(self, label: str, words: str | None = None) -> int | None:
        words = self.field(label) if words is None else words
        return self.number(label, words) if words else None

    def seconds(self, label: str, words: str | None = None) -> float:
        """`MM:SS`, `HH:MM:SS` (both are accepted, K24) or `5 minutes`, in seconds."""
        words = self.field(label) if words is None else words
        clock, period = _CLOCK.fullmatch(words), _PERIOD.fullmatch(words)
        if clock is not None:
            hours, minutes, rest = (int(group or 0) for group in clock.groups())
            return float(hours * 3600 + minutes * 60 + rest)
        if period is not None:
            return float(int(period[1]) * (60 if period[2] == "minute" else 1))
        raise self._unfit(label, words, "a duration such as 08:32, 00:08:32 or 5 minutes")

    def yes(self, label: str) -> bool:
        words = self.field(label)
        if words not in ("Yes", "No"):
            raise self._unfit(label, words, "Yes or No")
        return words == "Yes"

    def enumerated(self, label: str, kind: type[E]) -> E:
        """A member of `kind` by its value, capitalised."""
        return self.member(label, {entry.value.capitalize(): entry for entry in kind})

    def member(self, label: str, names: Mapping[str, M], words: str | None = None) -> M:
        words = self.field(label) if words is None else words
        if words not in names:
            raise self._unfit(label, words, f"one of {', '.join(names)}")
        return names[words]

    def counts(self) -> tuple[int, ...]:
        """The failure counts of its iteration history, one line for each run (B40)."""
        found = []
        for item in self.listed("Iteration History"):
            run = _RUN.fullmatch(item)
            if run is None:
                raise self._unfit("Iteration History", item, "`Iteration 2: 1 failure`")
            found.append(int(run[1]))
        return tuple(found)

    def _unfit(self, label: str, words: str, wanted: str) -> UnreadableMessage:
        shown = words if len(words) <= 80 else f"{words[:80]}…"
        return UnreadableMessage(f"{self}: {label} is {shown!r}, not {wanted}")

    def __str__(self) -> str:
        return f'section "{self.title}" (line {self.line})' if self.title else f"the part at line {self.line}"

    @cached_property
    def _fields(self) -> dict[str, _Field]:
        # Of several of one label the first counts.
        return dict(reversed(list(_fields(self.blocks))))


class Document:
    def __init__(self, title: str, blocks: Sequence[Block], rows: Sequence[str], line: int) -> None:
        self.title = title
        self.line = line
        self.comments = [block.text for block in blocks if isinstance(block, Comment)]
        self.header, *self.parts = _parts(blocks, _TITLE + 1, rows, line + 1) or [Part("", line, (), ())]

    def part(self, title: str) -> Part:
        for part in self.parts:
            if part.title == title:
                return part
        raise UnreadableMessage(f'message "{self.title}" (line {self.line}) lacks the section "{title}"')

    def untitled(self, label: str) -> Part:
        for part in self.parts:
            if not part.title and part.has(label):
                return part
        raise UnreadableMessage(f'message "{self.title}" (line {self.line}) lacks the field "{label}"')


def documents(text: str) -> tuple[Document, ...]:
    """The messages in `text`: each begins with a heading of the second level."""
    rows = text.split("\n")
    blocks = read_blocks(text)
    starts = [
        (number, block)
        for number, block in enumerate(blocks)
        if isinstance(block, Heading) and block.level == _TITLE
    ]
    ends = [*(number for number, _ in starts[1:]), len(blocks)]
    found = []
    for (start, heading), end in zip(starts, ends, strict=False):
        last = blocks[end].line - 1 if end < len(blocks) else len(rows)
        inner = blocks[start + 1 : end]
        found.append(Document(heading.text, inner, rows[heading.line : last], heading.line))
    return tuple(found)


def _parts(blocks: Sequence[Block], level: int, rows: Sequence[str], first: int) -> list[Part]:
    """`blocks`, written in `rows` from line `first` on, parted at rules and headings of `level`."""
    starts = [number for number, block in enumerate(blocks) if _begins(block, level)]
    if blocks and 0 not in starts:
        starts.insert(0, 0)
    found = []
    for start, end in pairwise([*starts, len(blocks)]):
        head = blocks[start]
        last = blocks[end].line if end < len(blocks) else first + len(rows)
        title = unescape(head.text) if isinstance(head, Heading) else ""
        inner = blocks[start + 1 : end] if _begins(head, level) else blocks[start:end]
        found.append(Part(title, head.line, inner, rows[head.line - first : last - first]))
    return found


def _begins(block: Block, level: int) -> bool:
    return isinstance(block, Rule) or (isinstance(block, Heading) and block.level == level)


def _fields(blocks: Sequence[Block]) -> Iterator[tuple[str, _Field]]:
    for number, block in enumerate(blocks):
        if isinstance(block, Items):
            for item in block.items:
                yield from _fields(item.blocks)
        elif isinstance(block, Paragraph):
            below = blocks[number + 1] if number + 1 < len(blocks) else None
            last = len(block.rows) - 1
            for at, row in enumerate(block.rows):
                match = _FIELD.fullmatch(row)
                if match is not None:
                    yield match[1], _Field(block.line + at, match[2] or "", below if at == last else None)
