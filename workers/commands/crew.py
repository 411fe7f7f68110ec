"""The real crew: specialists and fixers are commands, run under guard in a workspace for each."""

from pathlib import Path
from typing import Any

from fixloop.configuration.model import Configuration
from fixloop.intake.frozen_configuration import frozen_configuration
from fixloop.outside.push import push_branch
from fixloop.outside.transfer import bring_work, snapshot_in
from fixloop.protocol.events import AnswerRejected, BlockerSignalled, FixCompleted, FixFailed, RunFinished
from fixloop.repository.publication import publish
from fixloop.servers.settings import load_settings
from fixloop.statefiles.agent_run import Brought, Played
from workers.commands import agent, fixer, notification, specialist
from workers.steps.step import Step


class Commands:
    """Does the work by running what the configuration says. What a method does is None where its ticket was withdrawn
    meanwhile; Injured where it was killed, PutOff where a child workflow does the work and has not ended."""

    acknowledges = True
    """Whether the start of a fix is committed by itself; scripted fixers finish before anyone could look."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache

    def check(self, work: Step) -> RunFinished | None:
        return specialist.check(work, configuration_of(work), self._cache)

    def fix(self, work: Step) -> FixCompleted | FixFailed | AnswerRejected | BlockerSignalled | None:
        return fixer.fix(work, configuration_of(work), self._cache)

    def notify(self, work: Step) -> str:
        return notification.notify(work, configuration_of(work))

    def push(self, work: Step) -> str:
        """The branch that was pushed to the repository's URL, empty where there is none. UsageError: it is refused."""
        return push_branch(work.store, work.holding.state, self._cache)

    def play(self, work: Step, snapshot: bytes) -> Played | None:
        return agent.play(work, configuration_of(work), snapshot, self._cache)

    def bring_onto(self, work: Step, state: Any, base: str, tip: str) -> Brought:
        """What changed from `base` to `tip`, on the commit of `state`. UsageError: others changed the same lines."""
        return agent.bring_onto(work, state, base, tip, self._cache)

    def settle(self, work: Step, state: Any) -> None:
        """Write the branch, now that the commit has made it true; `resume` repairs what a crash leaves out."""
        if work.holding.ticket.step not in ("fix", "work") or state.tip == work.holding.state.tip:
            return
        if getattr(state, "parent", ""):
            # The branch is that of the workflow that it works for.
            return
        mirror = bring_work(work.store, state, self._cache)
        publish(snapshot_in(state), issue=state.issue, tip=state.tip, mirror=mirror)


def commands() -> Commands:
    return Commands(load_settings().cache_dir)


def configuration_of(work: Step) -> Configuration:
    return frozen_configuration(work.store, work.holding.state)
