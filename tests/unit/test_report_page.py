"""The page needs no other file, shows everything, and nothing that tools or agents wrote becomes markup (U18)."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from html.parser import HTMLParser
from typing import Any, Final

import pytest

from fixloop.protocol.failures import Failure
from fixloop.protocol.specialists import SPECIALISTS
from fixloop.summary import Answer, Summary, Told, as_html, as_markdown, summarize
from fixloop.summary.chart import chart
from tests.fixtures.script import SILENT, BadAnswer, Breaks, Fix, fails, failure, passes
from tests.fixtures.validation_stage import Stage
from tests.scenarios.report import history_of, report_on

pytestmark = pytest.mark.heavy

VOID: Final = frozenset({"meta", "br"})
DRAWN: Final = frozenset({"rect", "path", "circle", "line"})
ATTRIBUTES: Final = frozenset(
    {
        *(
            "aria-hidden",
            "aria-label",
            "charset",
            "class",
            "content",
            "cx",
            "cy",
            "d",
            "datetime",
            "fill",
            "height",
        ),
        *(
            "href",
            "http-equiv",
            "id",
            "lang",
            "name",
            "open",
            "patterntransform",
            "patternunits",
            "r",
            "role",
            "rx",
        ),
        *("scope", "tabindex", "text-anchor", "title", "transform", "viewbox", "width", "x", "x1"),
        *("x2", "y", "y1", "y2"),
    }
)


class Page(HTMLParser):
    """A parsed page; unclosed elements and wrong closings are recorded. `seen` is what nothing folds."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str]] = []
        self.ids: list[str] = []
        self.text = ""
        self.seen = ""
        self.wrong: list[str] = []
        self.captions = 0
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.wrong += self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(name, value or "") for name, value in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._open.pop()
        if tag not in DRAWN:
            self.wrong.append(f"{tag} is not closed by itself in HTML")

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data
        self.seen += data if "details" not in self._open or "summary" in self._open else ""


def told(text: str) -> Summary:
    """A workflow in which every text is `text`."""
    found = Failure(
        name=text, file=text, line=3, error_type=text, message=text, suggestion=text, context=text
    )
    said = Fix(text, (text,), (text,), marks=(text,), diff=text, said=text)
    stage = Stage(
        {"unit-test": [fails(found, coverage=text), fails(found), fails(found)], "security": [fails(found)]},
        answers=[said, BadAnswer((text,)), said, said, said],
        name=text,
        project=text,
        fixer="command",
    ).run()
    stage.decide("skip", reason=text)
    return report_on(stage.run())


@cache
def plain() -> Summary:
    """A whole workflow without hostile text; played once, at its first use."""
    return told("word")


@pytest.mark.heavy
@pytest.mark.proves("U18")
def test_the_page_is_well_formed_and_needs_nothing_from_outside() -> None:
    text = as_html(plain())
    page = Page(text)

    assert page.wrong == []
    assert {"script", "link", "img", "iframe", "object", "form"}.isdisjoint(page.tags)
    assert {name for name, _ in page.attributes} <= ATTRIBUTES
    assert all(value.startswith("#") for name, value in page.attributes if name == "href")
    assert "@import" not in text
    assert "//" not in "".join(value for name, value in page.attributes if name != "datetime")
    style = text[text.index("<style>") : text.index("</style>")]
    assert style.count("url(") == style.count("url(#")


def submitted(stage: Stage, *, snapshot: Mapping[str, str] | None = None, **told: Any) -> Summary:
    """The report on a workflow of the folder `/srv/shop`."""
    described = {"source": "/srv/shop", **(snapshot or {})}
    state = stage.state.model_copy(update={"name": "shop", "snapshot": json.dumps(described)})
    return summarize(state, history_of(stage), stage.now, Told(**told))


def test_a_wait_for_a_person_is_most_prominent_with_its_answers_and_a_fixed_time() -> None:
    stage = Stage({"security": [fails("s")] * 3}, fixer="command").run().advance(3600)
    answers = (Answer(command="fixloop decide 47 extend", does="3 more", because="it went well"),)

    first = submitted(stage, answers=answers)
    text = as_html(first)
    later = submitted(stage.advance(7200), answers=answers)

    assert first.waiting == later.waiting
    assert first.waiting is not None
    assert (first.waiting.what, first.waiting.since) == ("a decision", first.escalations[0].at)
    assert '<p class="what">Waits for a decision</p>' in text
    assert "(recommended: it went well)" in Page(text).seen
    assert text.index("fixloop decide 47 extend") < text.index('class="verdict"')
    assert "running" not in Page(text[text.index("<body>") :]).text


def test_a_fix_without_a_configured_fixer_is_shown_as_awaited() -> None:
    stage = Stage({"security": [fails("s")]}, answers=[SILENT], fixer="outside").run().advance(60)

    summary = submitted(stage)

    assert summary.waiting is not None
    assert summary.waiting.because == "no fixer is configured; --fixer COMMAND or [fixer] names one"
    page = Page(as_html(summary))
    assert "At work" not in page.text
    assert f"{summary.workflow}, running" not in page.text
    assert "waiting for a person 0.0 s" not in page.text
    markdown = as_markdown(summary)
    assert "**Waits for a fix.**" in markdown
    assert "It waits for a fix since" in markdown
    assert "- **Status**: waits for a fix (AWAITING_FIX)" in markdown


def test_a_failed_fixer_s_last_lines_and_the_failures_are_not_folded() -> None:
    broken = Breaks("the fixer ended with exit code 1", "Traceback\nfatal: invalid object name 'main'\n")
    failing = failure("s", message="first line\nassert 41 == 42")
    stage = Stage({"security": [fails(failing)]}, answers=[broken] * 3, fixer="command").run()

    page = Page(as_html(submitted(stage)))

    assert "Traceback\nfatal: invalid object name 'main'" in page.seen
    assert "assert 41 == 42" in page.seen
    assert "Traceback\nfatal: invalid object name" in as_markdown(submitted(stage))


def test_the_diff_of_each_fix_and_of_all_is_shown_with_omissions_counted() -> None:
    diff = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-price = 1\n+price = 2\n"
    long = diff + "+more\n" * 1000
    fixes = [Fix(diff=diff, said="I believe it is the price."), Fix(diff=long)]
    stage = Stage([fails("a", "b"), fails("a"), passes()], answers=fixes, fixer="command").run()

    summary = submitted(stage, diff="+all of it\n")
    text = as_html(summary)

    assert [fix.diff for fix in summary.phases[2].fixes] == [diff, long]
    assert '<span class="minus">-price = 1\n</span>' in text
    assert '<span class="plus">+price = 2\n</span>' in text
    assert "I believe it is the price." in text
    assert "605 more lines: fixloop report" in text
    assert "+all of it" in Page(text).seen
    markdown = as_markdown(summary)
    assert all(said in markdown for said in ("+price = 2", "+all of it", "more lines:"))
    alone = Stage([fails("a"), passes()], answers=[Fix(diff=diff)], fixer="command").run()
    assert submitted(alone, diff=diff).diff == ""


def test_the_title_is_the_commits_subject_unless_the_feature_has_a_name() -> None:
    stage = Stage([passes()]).run()
    snapshot = {"branch": "totals", "subject": "Count items", "author": "Ann Lee"}

    page = Page(as_html(submitted(stage, snapshot=snapshot)))

    assert "Count items" in page.text
    assert "totals" in page.text
    assert "by Ann Lee" in page.text
    markdown = as_markdown(submitted(stage, snapshot=snapshot))
    assert "- **Branch**: totals" in markdown
    assert "- **Author**: Ann Lee" in markdown
    named = summarize(
        stage.state.model_copy(update={"name": "Cart", "snapshot": json.dumps(snapshot)}),
        history_of(stage),
        stage.now,
    )
    assert (named.title, named.branch) == ("", "totals")


def test_inapplicable_gates_take_one_line_and_single_counts_are_singular() -> None:
    page = Page(as_html(submitted(Stage([passes()]).run())))

    assert page.tags["article"] == 1
    assert "5 phases do not apply: Unit Test Writing, " in page.text
    assert "10 gates N/A: Unit tests written, " in page.seen
    assert page.seen.count("Unit tests written") == 1
    assert re.search(r"specialist1\b", page.text)
    assert "1 specialists" not in page.text


def test_a_worker_s_start_is_not_shown_as_an_absence() -> None:
    stage = Stage([passes()])
    stage.away_seconds += 4

    assert report_on(stage.run()).times.away == 0


@pytest.mark.proves("U18")
def test_the_page_shows_every_specialist_iteration_and_message() -> None:
    page = Page(as_html(plain()))

    assert {f"phase-{each.name}" for each in SPECIALISTS} <= set(page.ids)
    assert {f"run-{run.specialist}-{run.number}" for phase in plain().phases for run in phase.runs} <= set(
        page.ids
    )
    assert len(page.ids) == len(set(page.ids))
    for line in plain().lines:
        assert line.message_id in page.text
    assert all(gate.name in page.text for gate in plain().gates)


def test_every_link_within_the_page_has_a_target() -> None:
    page = Page(as_html(plain()))

    targets = {value.removeprefix("#") for name, value in page.attributes if name == "href"}
    assert targets <= set(page.ids)


def test_the_page_can_be_used_without_seeing_colours_and_without_a_mouse() -> None:
    text = as_html(plain())
    page = Page(text)

    assert (page.tags["h1"], page.tags["main"], page.tags["html"]) == (1, 1, 1)
    assert page.tags["caption"] == page.tags["table"]
    assert ("lang", "en") in page.attributes
    bars = [shape for shape in chart(plain()).shapes if shape.bar.kind in ("run", "confirmation")]
    assert all(shape.label[0] in "✓✕!…" for shape in bars)
    assert text.count("<title>") == len(chart(plain()).shapes) + len(chart(plain()).points) + 1
    assert 'tabindex="0" role="region"' in text
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text


def test_on_a_narrow_screen_the_timeline_says_that_it_continues_sideways() -> None:
    text = as_html(plain())
    narrow = text[text.index("@media (max-width") : text.index("@media print")]

    assert "it goes on sideways" in Page(text).text
    assert ".sideways { display: block; }" in narrow


def test_short_runs_stay_visible_next_to_a_night_of_waiting() -> None:
    stage = Stage([fails("a", takes_seconds=2)] * 3, answers=[Fix(takes_seconds=1)] * 2).run()
    stage.advance(14 * 3600)

    drawn = chart(report_on(stage))

    assert not drawn.is_even
    assert all(shape.width >= 12 for shape in drawn.shapes)
    ends = [shape.x + shape.width for shape in drawn.shapes]
    assert all(end <= after.x for end, after in zip(ends, drawn.shapes[1:], strict=False))
    assert max(ends) <= drawn.width


def test_marks_of_one_moment_do_not_overlap() -> None:
    drawn = chart(plain())

    for before, after in zip(drawn.points, drawn.points[1:], strict=False):
        assert before.mark.specialist != after.mark.specialist or after.x - before.x >= 16


def luminance(colour: str) -> float:
    """Relative luminance of `#rrggbb` (WCAG 2.1)."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("look", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("front", "back"),
    [
        *(("ink", "page"), ("ink", "card"), ("soft", "page"), ("soft", "card"), ("soft", "idle")),
        *(("ok", "ok-soft"), ("bad", "bad-soft"), ("warn", "warn-soft"), ("agent", "card")),
        *(("on", "ok"), ("on", "bad"), ("on", "warn"), ("on", "person")),
    ],
)
def test_text_contrasts_with_its_background(front: str, back: str, look: int) -> None:
    found = re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", as_html(plain()))
    colours = dict(found[look * len(found) // 2 : (look + 1) * len(found) // 2])

    dark, light = sorted((luminance(colours[front]), luminance(colours[back])))
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_the_time_of_fixloop_between_commands_is_reported_as_its_own() -> None:
    summary = report_on(Stage([passes(takes_seconds=9.5)]).run())
    times = summary.times.model_copy(update={"commands": 0.5})
    summary = summary.model_copy(update={"times": times})

    markdown, page = as_markdown(summary), as_html(summary)

    assert "took 0.5 s by themselves, and fixloop 9.0 s around them" in markdown
    assert "their commands 0.5 s, fixloop around them 9.0 s" in page
    assert "own steps" not in markdown
