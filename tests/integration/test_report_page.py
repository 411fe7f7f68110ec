"""No text becomes markup of a report, and the page of a long workflow can be opened (U18)."""

from collections import Counter
from collections.abc import Callable
from functools import cache, reduce
from typing import Final

import pytest
from hypothesis import example, given, settings, strategies as st
from markdown_it import MarkdownIt

from fixloop.summary import Summary, as_html, as_markdown
from fixloop.summary.model import Finding
from fixloop.summary.pages import MOST_BYTES
from tests.fixtures.script import fails, passes
from tests.fixtures.validation_stage import Stage
from tests.scenarios.report import report_on
from tests.unit.test_report_page import ATTRIBUTES, Page, plain, told

pytestmark = pytest.mark.slow

Test = Callable[[str], None]
HOSTILE: Final = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "]]></style></svg></pre></details><h1>",
    "-->{{ 7 * 7 }}{% raw %}",
    "x\x00\x1b[31m\u202eevil",
    "# heading\n\n| a | b |\n|---|---|\n<!-- -->",
    "&lt;script&gt;",
]


def with_hostile(test: Test) -> Test:
    """`test` with every text of the list, in addition to those that hypothesis finds."""
    return reduce(lambda each, text: example(text)(each), HOSTILE, test)


@pytest.mark.proves("U18", "A21")
@with_hostile
@settings(max_examples=40, deadline=None)
@given(
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60).map(
        lambda text: f"w{text}w"
    )
)
def test_no_text_becomes_markup_of_the_page(text: str) -> None:
    summary = told(text)
    page = Page(as_html(summary))

    assert page.wrong == []
    assert page.tags - _lines(summary) == plain_tags()
    assert {name for name, _ in page.attributes} <= ATTRIBUTES
    assert summary.name in page.text
    assert not any(ord(each) < 32 and each not in "\n\t" for each in page.text)


@cache
def plain_tags() -> Counter[str]:
    return Page(as_html(plain())).tags - _lines(plain())


def _lines(summary: Summary) -> Counter[str]:
    """Each line of a difference is an element."""
    fixes = (fix for phase in summary.phases for fix in phase.fixes)
    return Counter(span=sum(len(fix.diff.splitlines()) for fix in fixes))


@with_hostile
@settings(max_examples=40, deadline=None)
@given(
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60).map(
        lambda text: f"w{text}w"
    )
)
def test_no_text_becomes_layout_of_the_markdown(text: str) -> None:
    assert layout(told(text)) == plain_layout()


def layout(summary: Summary) -> Counter[str]:
    tokens = MarkdownIt("commonmark").enable("table").parse(as_markdown(summary))
    inner = [child for token in tokens for child in token.children or ()]
    # Underscores stay as they are (see `fixloop.protocol.markdown`): emphasis forges nothing.
    harmless = {"text", "em_open", "em_close", "strong_open", "strong_close"}
    return Counter(token.type for token in (*tokens, *inner) if token.type not in harmless)


@cache
def plain_layout() -> Counter[str]:
    return layout(plain())


def long_workflow(text: str) -> Summary:
    """A hundred runs with fifty failures each, and their messages."""
    short = report_on(Stage([fails("a"), passes()], issue=10).run())
    phase = short.phases[2]
    finding = Finding(name=text[:160], location=text[:160], headline=text[:160])
    run = phase.runs[0].model_copy(update={"count": 50, "findings": (finding,) * 50})
    runs = tuple(run.model_copy(update={"number": number}) for number in range(1, 101))
    long = phase.model_copy(update={"runs": runs, "iterations": 100, "history": (50,) * 100})
    bars = tuple(bar.model_copy(update={"number": n}) for n in range(1, 101) for bar in short.bars)
    lines = tuple(line.model_copy(update={"text": text * 50}) for _ in range(100) for line in short.lines)
    phases = (*short.phases[:2], long, *short.phases[3:])
    return short.model_copy(update={"phases": phases, "bars": bars, "lines": lines})


@pytest.mark.proves("U18", "K41")
@pytest.mark.parametrize("said", ["it broke", "'<&>\"" * 2000], ids=["usual", "hostile"])
def test_the_page_of_a_long_workflow_stays_small(said: str) -> None:
    summary = long_workflow(said)
    text = as_html(summary)

    assert len(text.encode()) < MOST_BYTES
    assert len(as_markdown(summary).encode()) < MOST_BYTES
    page = Page(text)
    assert page.wrong == []
    assert "run-test-runner-100" in page.ids


def test_omitted_characters_are_counted() -> None:
    summary = long_workflow("'<&>\"" * 2000)

    page = Page(as_html(summary))
    assert "more characters are in fixloop log 10 --format markdown" in page.text
