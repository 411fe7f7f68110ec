"""The real crew: specialists and fixers are commands, each run under guard in a separate workspace."""

import os
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from fixloop.configuration.model import Configuration
from fixloop.engine.history import said
from fixloop.engine.profile import profile_named
from fixloop.intake.frozen_configuration import frozen_configuration
from fixloop.machine.guard import UNCONFINED, run_guarded
from fixloop.machine.sandbox import Confinement, confined, state_files
from fixloop.machine.variables import allowed_variables
from fixloop.outside.transfer import bring_work, push_branch, snapshot_in
from fixloop.protocol.events import AnswerRejected, BlockerSignalled, FixCompleted, FixFailed, RunFinished
from fixloop.protocol.ticket import line_of
from fixloop.repository.publication import publish
from fixloop.servers.settings import load_settings
from fixloop.statefiles.agent_run import Brought, Played
from workers.commands import agent, fixer, specialist
from workers.commands.ahead import Ahead
from workers.steps.step import Step

NOTIFY_SECONDS: Final = 10.0


class Commands:
    """Does the work by running the configured commands. Methods return None if their ticket was withdrawn; they raise
    Injured if killed, and PutOff while a child workflow does the work."""

    acknowledges = True
    """Whether the start of a fix is committed separately; scripted fixers finish before anyone could look."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._ahead = Ahead()

    def check(self, work: Step) -> RunFinished | None:
        configuration = configuration_of(work)
        check = partial(specialist.check, configuration=configuration, cache=self._cache)
        # Setup would run for two of them at once.
        if configuration.workspace.setup:
            return check(work)
        self._ahead.begin(work, check)
        return self._ahead.taken(work, check) or check(work)

    def fix(self, work: Step) -> FixCompleted | FixFailed | AnswerRejected | BlockerSignalled | None:
        self._ahead.end()
        return fixer.fix(work, configuration_of(work), self._cache)

    def notify(self, work: Step) -> str:
        """Run the notify command once, with the escalation's report on its stdin; returns its result in a few words."""
        state, history = work.holding.state, work.store.history(work.holding.ticket.workflow)
        text, command = profile_named(state.profile).text, configuration_of(work).notify
        if text is None:
            said_last = reversed(list(said(history)))
            report = next(line.rendered for line in said_last if line.message.body.kind == "escalation")
        else:
            lines = (kept for entry in history for kept in entry.body.get("messages", ()))
            message = next(text(kept) for kept in lines if kept["number"] == line_of(work.holding.ticket))
            ask = f"#{state.issue} {state.name} waits for you; `fixloop inbox` says what to answer."
            report = f"{ask}\n\n{message.rstrip()}\n"
        # On a shared worker the command is as untrusted as a check.
        is_own_worker = bool(state.queue)
        env = dict(os.environ) if is_own_worker else allowed_variables(os.environ, load_settings().allow_env)
        writable, hidden = load_settings().sandbox_writable, (self._cache / "work", *state_files(None))
        with TemporaryDirectory(prefix="fixloop-") as folder:
            what = Confinement(writable, hidden, tmp=Path(folder))
            result = run_guarded(
                command,
                cwd=Path.home(),
                env=env,
                stdin=report.encode(),
                timeout_seconds=NOTIFY_SECONDS,
                cancelled=work.cancelled,
                confined=UNCONFINED if is_own_worker else confined(what, env, cwd=Path.home()),
            )
        how = "was not found" if result.not_found else f"ended with exit code {result.exit_code}"
        return f"{command[0]} {how}"

    def push(self, work: Step) -> str:
        """The branch pushed to the repository's URL; empty if no fix was needed. Raises RefusedError."""
        return push_branch(work.store, work.holding.state, self._cache)

    def play(self, work: Step, snapshot: bytes) -> Played | None:
        return agent.play(work, configuration_of(work), snapshot, self._cache)

    def bring_onto(self, work: Step, state: Any, base: str, tip: str) -> Brought:
        """The changes from `base` to `tip`, on the commit of `state`. Raises UsageError on a conflict."""
        return agent.bring_onto(work, state, base, tip, self._cache)

    def settle(self, work: Step, state: Any) -> None:
        """Write the branch after the commit of the step; `resume` repairs it after a crash."""
        if work.holding.ticket.step not in ("fix", "work") or state.tip == work.holding.state.tip:
            return
        if getattr(state, "parent", ""):
            # A child workflow has no branch.
            return
        mirror = bring_work(work.store, state, self._cache)
        publish(snapshot_in(state), issue=state.issue, tip=state.tip, mirror=mirror)


def commands() -> Commands:
    return Commands(load_settings().cache_dir)


def configuration_of(work: Step) -> Configuration:
    return frozen_configuration(work.store, work.holding.state)
