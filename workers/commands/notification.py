"""Telling a person of an escalation: the configured command, with the report on its standard input."""

import os
from pathlib import Path
from typing import Final

from fixloop.configuration.model import Configuration
from fixloop.engine.history import said
from fixloop.engine.registry import PROFILES
from fixloop.machine.guard import run_guarded
from fixloop.protocol.ticket import line_of
from fixloop.servers.settings import load_settings
from workers.steps.step import Step
from workers.workspaces.environment import allowed_variables

LIMIT_SECONDS: Final = 10.0


def notify(work: Step, configuration: Configuration) -> str:
    """Run the notify command once; returns what came of it, in a few words."""
    state, history = work.holding.state, work.store.history(work.holding.ticket.workflow)
    text = PROFILES[state.profile].text
    if text is None:
        said_last = reversed(list(said(history)))
        report = next(line.rendered for line in said_last if line.message.body.kind == "escalation")
    else:
        lines = (kept for entry in history for kept in entry.body.get("messages", ()))
        told = next(text(kept) for kept in lines if kept["number"] == line_of(work.holding.ticket))
        ask = f"#{state.issue} {state.name} waits for you; `fixloop inbox` says what to answer."
        report = f"{ask}\n\n{told.rstrip()}\n"
    # On a worker for everybody the command is a stranger's, as a check is.
    is_own = bool(state.queue)
    env = dict(os.environ) if is_own else allowed_variables(os.environ, load_settings().allow_env)
    result = run_guarded(
        configuration.notify,
        cwd=Path.home(),
        env=env,
        stdin=report.encode(),
        timeout_seconds=LIMIT_SECONDS,
        cancelled=work.cancelled,
    )
    if result.not_found:
        return f"{configuration.notify[0]} was not found"
    return f"{configuration.notify[0]} ended with exit code {result.exit_code}"
