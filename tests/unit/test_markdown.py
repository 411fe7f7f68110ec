"""Escaping and its inverse: every text comes back as it was."""

import pytest
from hypothesis import example, given, strategies as st

from fixloop.protocol import markdown
from tests.parsing.document import Fence, Items, Paragraph, Table, read_blocks, unfence
from tests.unit.hostile import HOSTILE

ANY = st.one_of(HOSTILE, st.text(st.characters(exclude_categories=["Cs"])))


@pytest.mark.proves("A22")
@given(ANY)
@example("none")
@example("*empty*")
@example("a" + " " * 100_000 + "*b")
def test_a_line_is_one_paragraph_and_reads_back(text: str) -> None:
    (block,) = read_blocks(f"x{markdown.line(text)}x")

    assert isinstance(block, Paragraph)
    assert markdown.unescape(markdown.line(text)) == text
    assert markdown.unescape(str(markdown.lines(text))) == text


@pytest.mark.proves("A22")
@given(ANY, st.sampled_from([0, 2, 7]))
@example("````\n~~~~~~\n\x1b[0m\\x1b", 0)
@example("\n\n", 2)
@example("\t a\r\n b\r", 2)
def test_a_fence_reads_back(text: str, indent: int) -> None:
    head = {0: "", 2: "- x\n", 7: "1. y\n     - x\n"}[indent]
    blocks = read_blocks(f"{head}{markdown.fence(text, indent)}\n")
    while isinstance(blocks[-1], Items):
        blocks = blocks[-1].items[-1].blocks

    (fence,) = [block for block in blocks if isinstance(block, Fence)]
    assert unfence(fence.info, fence.content) == text


@pytest.mark.heavy
@pytest.mark.proves("A22")
@given(st.lists(ANY, min_size=1, max_size=12))
@example(["", "", "none", "*empty*"])
@example(["a\n\n\nb\n", " lead", "- x\n1. y"])
def test_lists_read_back(items: list[str]) -> None:
    for text in (markdown.numbered(items), markdown.bullets(items), f"**Below**:\n{markdown.bullets(items)}"):
        found = read_blocks(str(text))[-1]

        assert isinstance(found, Items)
        assert [item.text for item in found.items] == items


@pytest.mark.heavy
@pytest.mark.proves("A22")
@given(st.lists(st.tuples(ANY, ANY), min_size=1, max_size=4))
@example([("a|b\\", "\\|"), ("", " | ")])
def test_a_table_reads_back(rows: list[tuple[str, str]]) -> None:
    lines = "".join(f"| 1 | {markdown.cell(one)} | {markdown.cell(two)} |\n" for one, two in rows)

    (table,) = read_blocks(f"| n | a | b |\n|---|---|---|\n{lines}")
    assert isinstance(table, Table)
    assert [tuple(map(markdown.unescape, row[1:])) for row in table.rows] == rows
