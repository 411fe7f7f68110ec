"""A report cut to what people can read: what is left out is counted, and stands in the log."""

from typing import Final

from fixloop.summary.model import FixRow, Phase, Summary

FINDINGS: Final = 50
TEXT: Final = 16_000
DIFF_LINES: Final = 400
"""What somebody reads through before looking at the files themselves."""
LINES: Final = 1000
RUNS: Final = 400
NAMES: Final = 200
BARS: Final = 3000


class Cut:
    """How much is shown; `part` of the usual amount, at most 1."""

    def __init__(self, part: float) -> None:
        self.findings = max(1, int(FINDINGS * part))
        self.diff = max(20, int(DIFF_LINES * part))
        self.text = max(200, int(TEXT * part))
        self.lines = max(20, int(LINES * part))
        self.runs = max(10, int(RUNS * part))
        self.bars = max(60, int(BARS * part))
        self.names = max(10, int(NAMES * part))


def trimmed(summary: Summary, cut: Cut) -> Summary:
    """`summary` with shorter texts and lists; its figures stay those of the whole."""
    bars = summary.bars[-cut.bars :]
    gone = len(summary.bars) - len(bars)
    moments = (
        mark.model_copy(update={"bar": mark.bar - gone}) for mark in summary.moments if mark.bar >= gone
    )
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
            "phases": tuple(_phase(phase, cut) for phase in summary.phases),
            "escalations": summary.escalations[-cut.runs :],
            "errors": summary.errors[-cut.runs :],
            "marks": summary.marks[: cut.names],
            "files": summary.files[: cut.names],
            "bars": bars,
            "moments": tuple(moments),
            "lines": tuple(lines),
        }
    )


def _phase(phase: Phase, cut: Cut) -> Phase:
    runs = []
    for run in phase.runs[-cut.runs :]:
        findings = (
            finding.model_copy(update={"text": finding.text[: cut.text // 8]})
            for finding in run.findings[: cut.findings]
        )
        runs.append(run.model_copy(update={"findings": tuple(findings), "fixes": run.fixes[: cut.names]}))
    return phase.model_copy(
        update={
            "runs": tuple(runs),
            "fixes": tuple(_fix(fix, cut) for fix in phase.fixes[-cut.runs :]),
            "confirmations": phase.confirmations[-cut.runs :],
            "known_issues": phase.known_issues[: cut.names],
            "skipped_checks": phase.skipped_checks[: cut.names],
        }
    )


def _fix(fix: FixRow, cut: Cut) -> FixRow:
    diff, further = _beginning(fix.diff, cut)
    return fix.model_copy(
        update={
            "diff": diff,
            "further": further,
            "fixes": fix.fixes[: cut.names],
            "files": fix.files[: cut.names],
            "marks": fix.marks[: cut.names],
        }
    )


def _beginning(diff: str, cut: Cut) -> tuple[str, int]:
    """The first lines of a diff, and how many follow."""
    lines = diff[: cut.diff * 200].splitlines()[: cut.diff]
    return "\n".join(lines), max(0, diff.count("\n") + (not diff.endswith("\n") and diff != "") - len(lines))
