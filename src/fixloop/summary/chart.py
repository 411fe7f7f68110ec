"""The places of the timeline's bars and marks: geometry in pixels, without colours and markup.

The stretches of a workflow follow one another, so the axis need not be linear: if one of them dwarfs the others, widths
follow the square root of time, and nothing becomes too small to see. The axis shows when each stretch starts.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import accumulate
from typing import Final, NamedTuple

from fixloop.protocol.durations import hours_minutes_seconds, minutes_seconds
from fixloop.summary.model import Bar, Mark, Phase, Summary

ROW: Final = 70
BAR: Final = 24
THIN: Final = 12
_WIDTH: Final = 860
_WIDEST: Final = 9000
_TICK: Final = 74
_MARK: Final = 16
_PAD: Final = 10
_LEAST: Final = {"run": 30, "confirmation": 24, "fix": 14, "person": 30, "engine": 2}
_MOST_COLUMNS: Final = 60
_MANY: Final = 80
"""With more bars each may be narrower; their figures are then only in the tables."""


class Shape(NamedTuple):
    bar: Bar
    x: float
    y: float
    width: float
    height: float
    label: str
    above: str
    title: str


class Point(NamedTuple):
    mark: Mark
    x: float
    y: float
    letter: str
    title: str


class Tick(NamedTuple):
    x: float
    label: str
    anchor: str


class Chart(NamedTuple):
    width: int
    height: int
    rows: tuple[tuple[str, str], ...]
    """Specialist and phase."""
    shapes: tuple[Shape, ...]
    points: tuple[Point, ...]
    ticks: tuple[Tick, ...]
    is_even: bool
    """Whether the axis is to scale."""
    has_hours: bool
    """Whether it shows hours, minutes and seconds instead of minutes and seconds."""


class Column(NamedTuple):
    """One run in a specialist's small chart of failures."""

    number: int
    failures: int
    passed: bool
    height: float


def chart(summary: Summary) -> Chart:
    """The timeline of `summary`: a row for each applicable specialist."""
    rows = tuple((phase.name, phase.title) for phase in summary.phases if phase.applicable)
    widths, is_even = _widths(summary.bars)
    starts = [_PAD + each for each in accumulate(widths, initial=0.0)]
    top = {name: index * ROW for index, (name, _) in enumerate(rows)}
    shapes = tuple(
        _shape(bar, starts[n], widths[n], top[bar.specialist])
        for n, bar in enumerate(summary.bars)
        if bar.kind != "engine" and bar.specialist in top
    )
    free, ticks = 0.0, []
    for bar, x in zip(summary.bars, starts, strict=False):
        if bar.kind != "engine" and x >= free and x + 2 * _TICK <= starts[-1]:
            ticks.append(Tick(round(x, 1), _since(summary, bar.start), "start"))
            free = x + _TICK
    ticks.append(Tick(round(starts[-1], 1), _since(summary, summary.as_of), "end"))
    return Chart(
        width=round(starts[-1] + _PAD),
        height=len(rows) * ROW + 28,
        rows=rows,
        shapes=shapes,
        points=tuple(_points(summary, starts, widths, top)),
        ticks=tuple(ticks),
        is_even=is_even,
        has_hours=_has_hours(summary),
    )


def columns(phase: Phase) -> tuple[Column, ...]:
    """The bars of a specialist, such as `3 → 1 → 0`, for its last runs."""
    runs = phase.runs[-_MOST_COLUMNS:]
    most = max((run.count for run in runs), default=0) or 1
    # The square root keeps 1 visible next to 500.
    return tuple(
        Column(run.number, run.count, run.result == "passed", max(3.0, 44.0 * (run.count / most) ** 0.5))
        for run in runs
    )


def _widths(bars: Sequence[Bar]) -> tuple[list[float], bool]:
    shrink = min(1.0, _MANY / max(1, len(bars)) + 0.25) if len(bars) > _MANY else 1.0
    least = [_LEAST[bar.kind] * shrink for bar in bars]
    width = min(max(_WIDTH, sum(least) * 1.25), _WIDEST) - 2 * _PAD
    spent = [bar.seconds + bar.away_seconds for bar in bars]
    total = sum(spent)
    even = [width * each / total if total else 0.0 for each in spent]
    seen = (
        bar.kind == "engine" or each >= least_one
        for bar, each, least_one in zip(bars, even, least, strict=True)
    )
    if total and all(seen):
        return even, True
    rest = max(0.0, width - sum(least))
    roots = [each**0.5 for each in spent]
    share = rest / sum(roots) if sum(roots) else 0.0
    return [smallest + share * root for smallest, root in zip(least, roots, strict=True)], False


def _shape(bar: Bar, x: float, width: float, top: int) -> Shape:
    height, label = THIN, ""
    if bar.kind in ("run", "confirmation"):
        height = BAR
        sign = {"passed": "✓", "failed": "✕", "could not run": "✕", "running": "…"}.get(bar.result, "!")
        full = f"{sign} {bar.count}" if bar.count else sign
        label = next((text for text in (full, sign) if len(text) * 8 <= width), "")
    above: tuple[str, ...] = ()
    if bar.away_seconds:
        away = f"engine away {span(bar.away_seconds)}"
        named = (f"run {bar.number}, {away}", away, f"run {bar.number}") if bar.kind == "run" else (away,)
        above = tuple(text for text in named if len(text) * 6 <= width)
    elif bar.kind == "run" or (bar.kind == "confirmation" and bar.count):
        above = tuple(text for text in (f"run {bar.number}", str(bar.number)) if len(text) * 7 <= width)
    elif bar.kind == "person" and width >= 60:
        above = (span(bar.seconds),)
    return Shape(
        bar=bar,
        x=round(x + 0.5, 1),
        y=top + 37 + (BAR - height) / 2,
        width=round(max(1.0, width - 1), 1),
        height=height,
        label=label,
        above=next(iter(above), ""),
        title=described(bar),
    )


def described(bar: Bar) -> str:
    """A bar in one sentence, for tooltips and screen readers."""
    what = {
        "run": f"Run {bar.number} of {bar.specialist}",
        "confirmation": f"Confirmation of {bar.specialist} on the final tree",
        "fix": f"Main agent fixes {bar.specialist}, run {bar.number}",
        "person": f"A person is waited for, {bar.specialist}",
    }.get(bar.kind, "fixloop at work")
    failures = f", {bar.count} failure{'s' * (bar.count != 1)}" if bar.count else ""
    away = f"; the engine was away for {span(bar.away_seconds)} more" if bar.away_seconds else ""
    return f"{what}: {bar.result}{failures}, {span(bar.seconds)}{away}"


def _points(
    summary: Summary, starts: Sequence[float], widths: Sequence[float], top: dict[str, int]
) -> Iterator[Point]:
    free: dict[str, float] = {}
    for mark in summary.moments:
        if mark.specialist not in top:
            continue
        x = starts[min(mark.bar, len(starts) - 1)]
        if mark.bar < len(summary.bars):
            bar = summary.bars[mark.bar]
            if whole := (bar.end - bar.start).total_seconds():
                x += widths[mark.bar] * min(1.0, max(0.0, (mark.at - bar.start).total_seconds() / whole))
        x = min(max(x, _MARK / 2, free.get(mark.specialist, 0.0)), starts[-1])
        free[mark.specialist] = x + _MARK
        letter = {"escalation": "!", "decision": "D", "reminder": "R", "error": "E"}.get(mark.kind, "V")
        title = f"{mark.kind.capitalize()} {mark.text}"
        yield Point(mark, round(x, 1), top[mark.specialist] + 12, letter, title)


def _since(summary: Summary, at: datetime) -> str:
    """`08:32`, or `01:08:32` if the whole takes an hour or more."""
    seconds = (at - summary.started_at).total_seconds()
    return hours_minutes_seconds(seconds) if _has_hours(summary) else minutes_seconds(seconds)


def _has_hours(summary: Summary) -> bool:
    return (summary.as_of - summary.started_at).total_seconds() >= 3600


def span(seconds: float) -> str:
    """`4.2 s`, `08:32` or `14:10:00`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    return minutes_seconds(seconds) if seconds < 3600 else hours_minutes_seconds(seconds)
