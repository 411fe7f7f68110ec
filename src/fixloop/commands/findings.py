"""Why a passing run is held, as `run`, `status` and `inbox` show it."""

from collections.abc import Sequence
from typing import Final

from fixloop.commands.screen import short
from fixloop.protocol.checks import Finding

SHOWN_LINES: Final = 12
"""Of each side of a finding; the log has all lines."""


def finding_lines(findings: Sequence[Finding]) -> list[str]:
    """Why a passing run is held, with both sides; nothing if it is not held."""
    lines = []
    for found in findings:
        place = f"{found.file}:{found.line}" if found.line is not None else found.file
        lines.append(f"  {found.rule}: {short(found.text, 300)}{f' ({short(place)})' if place else ''}")
        for sign, side in (("-", found.old), ("+", found.new)):
            rows = side.splitlines()
            lines += (f"    {sign} {row[:160]}" for row in rows[:SHOWN_LINES])
            lines += [f"    {sign} … {len(rows) - SHOWN_LINES} more lines"] * (len(rows) > SHOWN_LINES)
    return [*lines, "  without these rules the verdict would be: passed"] if lines else []
