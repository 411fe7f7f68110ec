"""The report as Markdown and as one HTML page; the layout is in `templates/`.

Their expressions are escaped, in Markdown and in HTML alike, so that text of tools and agents stays text. The page is
self-contained: no script, no font, no picture, no address to load from.
"""

from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, Template

from fixloop.protocol import durations, markdown
from fixloop.protocol.checks import Counts
from fixloop.protocol.rendering import templates
from fixloop.summary.chart import chart, columns, span
from fixloop.summary.model import Phase, Summary

TEMPLATES: Final = Path(__file__).parent / "templates"
_AT: Final = attrgetter("at")
MOST_BYTES: Final = 2_000_000
"""The largest page; a longer report is cut, with counts of what is left out."""


def as_markdown(summary: Summary) -> str:
    """The report as Markdown, without the conversation, which `fixloop log` shows."""
    return _fitting(summary, _template("report.md.j2", finalize=markdown.escaped), 0.4)


def as_html(summary: Summary) -> str:
    """The report as one self-contained page."""
    return _fitting(summary, _template("report.html.j2", autoescape=True), 1.0)


def _fitting(summary: Summary, template: Template, part: float) -> str:
    """The page with as much content as fits."""
    while True:
        shown = trimmed(summary, Cut(part))
        page = template.render(
            s=shown,
            whole=summary,
            chart=chart(shown),
            history=sorted((run for phase in shown.phases for run in phase.runs), key=_AT),
            confirmations=sorted((run for phase in shown.phases for run in phase.confirmations), key=_AT),
            left_out=len(summary.lines) - len(shown.lines),
        )
        if len(page.encode(errors="replace")) <= MOST_BYTES or part < 0.001:
            return page
        part /= 2


def _counts(counts: Counts) -> str:
    if not counts.total:
        return "–"
    found = {name: getattr(counts, name) for name in ("failed", "errors", "skipped")}
    others = (f"{count} {name}" for name, count in found.items() if count)
    return ", ".join((f"{counts.passed} of {counts.total} passed", *others))


def _noun(count: int, noun: str) -> str:
    return noun if count == 1 else f"{noun}s"


class Cut:
    """How much is shown: `part`, at most 1, of the limits for a page without cuts."""

    def __init__(self, part: float) -> None:
        self.findings = max(1, int(50 * part))
        self.diff = max(20, int(400 * part))
        self.text = max(200, int(16_000 * part))
        self.lines = max(20, int(1000 * part))
        self.runs = max(10, int(400 * part))
        self.bars = max(60, int(3000 * part))
        self.names = max(10, int(200 * part))


def trimmed(summary: Summary, cut: Cut) -> Summary:
    """`summary` with shorter texts and lists; its figures stay those of the whole."""
    bars = summary.bars[-cut.bars :]
    gone = len(summary.bars) - len(bars)
    marks = (mark for mark in summary.moments if mark.bar >= gone)
    diff, further = _beginning(summary.diff, cut)
    lines = (
        line.model_copy(update={"text": line.text[: cut.text], "further": len(line.text) - cut.text})
        if len(line.text) > cut.text
        else line
        for line in summary.lines[-cut.lines :]
    )
    return summary.model_copy(
        update={
            "diff": diff,
            "further": further,
            "phases": tuple(_trimmed_phase(phase, cut) for phase in summary.phases),
            "escalations": summary.escalations[-cut.runs :],
            "errors": summary.errors[-cut.runs :],
            "marks": summary.marks[: cut.names],
            "files": summary.files[: cut.names],
            "bars": bars,
            "moments": tuple(mark.model_copy(update={"bar": mark.bar - gone}) for mark in marks),
            "lines": tuple(lines),
        }
    )


def _trimmed_phase(phase: Phase, cut: Cut) -> Phase:
    runs = []
    for run in phase.runs[-cut.runs :]:
        findings = (
            finding.model_copy(update={"text": finding.text[: cut.text // 8]})
            for finding in run.findings[: cut.findings]
        )
        runs.append(run.model_copy(update={"findings": tuple(findings), "fixes": run.fixes[: cut.names]}))
    fixes = []
    for fix in phase.fixes[-cut.runs :]:
        diff, further = _beginning(fix.diff, cut)
        lists = {name: getattr(fix, name)[: cut.names] for name in ("fixes", "files", "marks")}
        fixes.append(fix.model_copy(update={"diff": diff, "further": further, **lists}))
    return phase.model_copy(
        update={
            "runs": tuple(runs),
            "fixes": tuple(fixes),
            "confirmations": phase.confirmations[-cut.runs :],
            "known_issues": phase.known_issues[: cut.names],
            "skipped_checks": phase.skipped_checks[: cut.names],
        }
    )


def _beginning(diff: str, cut: Cut) -> tuple[str, int]:
    """The first lines of a diff, and the number of the others."""
    lines = diff[: cut.diff * 200].splitlines()[: cut.diff]
    return "\n".join(lines), max(0, diff.count("\n") + (not diff.endswith("\n") and diff != "") - len(lines))


@cache
def _template(name: str, **options: Any) -> Template:
    """Compiled on first use: every command imports this module, and few make a report."""
    return environment(**options).get_template(name)


def environment(*folders: Path, **options: Any) -> Environment:
    """Loads templates from these folders, then the report's own, with the filters of a report. `options` have to define
    the escaping."""
    environment = templates(*folders, TEMPLATES, **options)
    environment.filters |= {
        "cell": markdown.cell,
        "clock": lambda at: durations.stamp(at)[11:],
        "columns": columns,
        "counts": _counts,
        "day": durations.stamp,
        "fenced": markdown.fence,
        "hours": durations.hours_minutes_seconds,
        # `a, b and 3 more`
        "listed": lambda values, total: (
            ", ".join(values) + (f" and {total - len(values)} more" if total > len(values) else "")
        ),
        "noun": _noun,
        # A percentage for a bar's width; any time above zero stays visible.
        "part": lambda seconds, total: f"{max(0.5, 100 * seconds / total):.2f}" if total and seconds else "0",
        "plural": lambda count, noun: f"{count} {_noun(count, noun)}",
        # The changes since the run before (A93).
        "progress": lambda run: ", ".join(
            f"{count} {word}"
            for count, word in ((run.resolved, "resolved"), (run.persisting, "persisting"), (run.new, "new"))
            if count
        ),
        "short": lambda digest, most=12: digest[:most],
        "span": span,
    }
    return environment
