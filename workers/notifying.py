"""Telling a person of an escalation: the configured command, with the report on its standard input."""

import os
from pathlib import Path
from typing import Final

from fixloop.configuration.model import Configuration
from fixloop.history import said
from workers.crew import Work
from workers.guard import run_guarded

__all__ = ["notify"]

LIMIT_SECONDS: Final = 10.0


def notify(work: Work, configuration: Configuration) -> str:
    """Run the notify command once; returns what came of it, in a few words."""
    holding = work.holding
    lines = list(said(work.store.history(holding.ticket.workflow)))
    report = next(line for line in reversed(lines) if line.message.body.kind == "escalation")
    result = run_guarded(
        configuration.notify,
        cwd=Path.home(),
        env=dict(os.environ),
        stdin=report.rendered.encode(),
        timeout_seconds=LIMIT_SECONDS,
        cancelled=work.cancelled,
    )
    if result.not_found:
        return f"{configuration.notify[0]} was not found"
    return f"{configuration.notify[0]} ended with exit code {result.exit_code}"
