"""The report as Markdown and as one HTML page; the layout is in the templates beside.

Every expression in them is escaped, in Markdown and in HTML alike, so that what tools and agents wrote stays text.
The page stands alone: no script, no font, no picture, no address to load from.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from fixloop.protocol import durations, markdown
from fixloop.protocol.checks import Counts
from fixloop.protocol.markdown import Verbatim
from fixloop.summary.drawing import Column, chart, columns, span
from fixloop.summary.model import Phase, RunRow, Summary
from fixloop.summary.trimming import Cut, trimmed

MOST_BYTES: Final = 2_000_000
"""No page is longer; a workflow that says more is cut, with counts of what is left out."""


def as_markdown(summary: Summary) -> str:
    """The report as Markdown, without the conversation, which is `fixloop log`'s."""
    return _fitting(summary, _template("report.md.j2", finalize=_escaped), 0.4)


def as_html(summary: Summary) -> str:
    """The report as one self-contained page."""
    return _fitting(summary, _template("report.html.j2", autoescape=True), 1.0)


def _fitting(summary: Summary, template: Template, part: float) -> str:
    """The page with as much of everything as goes into it."""
    while True:
        shown = trimmed(summary, Cut(part))
        page = template.render(
            s=shown,
            whole=summary,
            chart=chart(shown),
            history=sorted((run for phase in shown.phases for run in phase.runs), key=lambda run: run.at),
            confirmations=sorted(
                (each for phase in shown.phases for each in phase.confirmations), key=lambda each: each.at
            ),
            left_out=len(summary.lines) - len(shown.lines),
        )
        if len(page.encode(errors="replace")) <= MOST_BYTES or part < 0.001:
            return page
        part /= 2


def _columns(phase: Phase) -> tuple[Column, ...]:
    return columns([(run.number, run.count, run.result == "passed") for run in phase.runs[-60:]])


def _part(seconds: float, total: float) -> str:
    """A percentage for a bar's width; what took any time stays visible."""
    return f"{max(0.5, 100 * seconds / total):.2f}" if total and seconds else "0"


def _counts(counts: Counts) -> str:
    if not counts.total:
        return "–"
    parts = [f"{counts.passed} of {counts.total} passed"]
    for name in ("failed", "errors", "skipped"):
        if getattr(counts, name):
            parts.append(f"{getattr(counts, name)} {name}")
    return ", ".join(parts)


def _progress(run: RunRow) -> str:
    """What changed since the run before (A93)."""
    parts = [(run.resolved, "resolved"), (run.persisting, "persisting"), (run.new, "new")]
    return ", ".join(f"{count} {word}" for count, word in parts if count)


def _noun(count: int, noun: str) -> str:
    return noun if count == 1 else f"{noun}s"


def _escaped(value: object) -> object:
    if type(value) is Verbatim or not isinstance(value, str):
        return value
    return markdown.line(value)


def _listed(values: Sequence[str], total: int) -> str:
    """`a, b and 3 more`."""
    more = f" and {total - len(values)} more" if total > len(values) else ""
    return ", ".join(values) + more


@cache
def _template(name: str, **options: Any) -> Template:
    """Compiled when it is first needed: every command imports this module, and few make a report."""
    environment = Environment(  # nosec B701: Markdown is escaped by `finalize`, HTML by `autoescape`
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **options,
    )
    environment.filters |= {
        "cell": markdown.cell,
        "clock": lambda at: durations.stamp(at)[11:],
        "columns": _columns,
        "counts": _counts,
        "day": durations.stamp,
        "fenced": markdown.fence,
        "hours": durations.hours_minutes_seconds,
        "listed": _listed,
        "noun": _noun,
        "part": _part,
        "plural": lambda count, noun: f"{count} {_noun(count, noun)}",
        "progress": _progress,
        "short": lambda digest, most=12: digest[:most],
        "span": span,
    }
    return environment.get_template(name)
