"""Outside agents of the profiles whose steps are runs of agents: they are asked, begin, and submit their work."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from fixloop.commands.answer_file import read_given, text_in
from fixloop.commands.handlers import Answer, CommandHandlers, Said, Work
from fixloop.commands.presenter import Standing
from fixloop.commands.screen import note, print_lines, print_text
from fixloop.commands.session import Seen, Session, look
from fixloop.errors import RefusedError, UsageError
from fixloop.intake.redaction_scope import redaction_for
from fixloop.outside.offer import SNAPSHOT, Offer, offer_run, request_for, run_offered_at
from fixloop.outside.transfer import bring_work, keep_bundle, snapshot_in
from fixloop.protocol.agent_events import BranchPushed, Cancelled, Continued, Paused
from fixloop.protocol.answers import LIMIT_BYTES
from fixloop.protocol.event import ORCHESTRATOR, USER, Event, Repeated
from fixloop.protocol.ids import called
from fixloop.repository.change import Change
from fixloop.repository.copied import copied_paths
from fixloop.repository.merge import commit_of_directory, merge_checkout, rebased, resolve_descendant


class Handed(NamedTuple):
    """What an outside agent submits."""

    session: Session
    seen: Seen
    agent: str
    text: str
    artifacts: tuple[str, ...]
    blocked: str | None
    folder: Path | None
    """Where it worked, with the named files; None without a repository."""
    laid: bytes
    """The state those files were written from."""
    work: Mapping[str, str]
    """`base`, `tip` and `bundle` of its changes; empty without a repository."""
    files: tuple[str, ...] = ()


class Outside(NamedTuple):
    """How a profile handles its outside agents."""

    began: Callable[[str], Event]
    brought: Callable[[Handed], None]
    """Applies the events that an answer results in."""
    accepted: Callable[[str, str], Event] | None = None
    """Handoffs only: an agent accepts this one."""
    number: Callable[[Any], int] = lambda agent: int(agent.run)
    """The number of an agent's directory: the same until it has answered its request."""

    def ack(self, session: Session, workflow: str, agent: str, handoff: str = "") -> None:
        """Begin an agent's requested run, and print its request and the directory to work in. A `handoff` is accepted
        only by the first agent to name it (D17)."""
        name = self.chosen(look(session, workflow), agent)
        if not handoff:
            self.begin(session, workflow, name)
        elif self.accepted is not None:
            session.bring(workflow, self.accepted(name, handoff))
        else:
            raise UsageError(f"{workflow} has no handoffs to accept; leave --handoff out")
        seen = look(session, workflow)
        print_text(request_for(session.store, seen.found.snapshot, name))
        made = self.offered(session, seen, name)
        where = f"work in {made.directory}, then " if made is not None else ""
        note(f"{where}`fixloop fixed {called(seen.state)} --agent {name} --file ANSWER`")

    def begin(self, session: Session, workflow: str, agent: str) -> None:
        """Begin an agent's run; idempotent."""
        with suppress(Repeated):
            session.bring(workflow, self.began(agent))

    def chosen(self, seen: Seen, agent: str) -> str:
        """The agent somebody means: the named one, or the only outside agent with an open request."""
        agents, issue = agents_of(seen.state), seen.state.issue
        caller, agent = sender(""), agent.lower()
        if caller in agents and agent != caller:
            raise RefusedError(f"{caller} can only answer for itself")
        if not agent:
            asked = [name for name, each in agents.items() if each.asked and not each.command]
            if not asked:
                at_work = seen.standing.at_work
                raise RefusedError(f"no outside agent has a request in issue {issue}: {at_work}")
            if len(asked) > 1:
                raise UsageError(
                    f"{', '.join(asked)} all have requests in issue {issue}; name one with --agent"
                )
            return asked[0]
        if agent not in agents:
            raise UsageError(f"{agent!r} is not an agent of issue {issue}; there are {', '.join(agents)}")
        command = agents[agent].command
        if command:
            raise RefusedError(
                f"{agent} of issue {issue} is run by a command ({command}), which answers for it"
            )
        if not agents[agent].asked:
            raise RefusedError(f"{agent} has no request in issue {issue}; it is {agents[agent].status}")
        return agent

    def offered(self, session: Session, seen: Seen, agent: str) -> Offer | None:
        """The directory for an agent's current run, created if missing; None without a repository."""
        if not seen.state.snapshot:
            return None
        run, cache = self._folder(seen.state, agent), session.settings.cache_dir
        request = request_for(session.store, seen.found.snapshot, agent)
        return offer_run(session.store, seen.found, seen.state, run, request, cache)

    def _folder(self, state: Any, agent: str) -> str:
        return f"{state.workflow}.{agent}.{self.number(state.agent(agent))}"

    def show(self, session: Session, workflow: str) -> None:
        """Tell a person which agents are asked, and how to read their requests."""
        seen = look(session, workflow)
        for name, each in agents_of(seen.state).items():
            if each.asked and not each.command:
                one = f"fixloop ack {called(seen.state)} --agent {name}"
                note(f"{name} has a request: run `{one}` in another terminal to see it")

    def hand_in(self, session: Session, workflow: str, work: Work) -> None:
        """Take an agent's work and its answer, and print the files it changed."""
        seen = look(session, workflow)
        agent = self.chosen(seen, work.agent)
        if work.file is None and work.blocked is None:
            raise UsageError(f"{agent} must say how it went: give its answer with --file FILE, - for stdin")
        if work.blocked is not None and not work.blocked.strip():
            raise UsageError("--blocked is empty; give the reason")
        hidden = redaction_for(session.store, seen.state)
        raw = hidden.data(read_given(work.file)) if work.file is not None else b""
        if len(raw) > LIMIT_BYTES:
            told = (
                f"the answer has more than {LIMIT_BYTES} bytes; shorten it and leave files in the directory"
            )
            raise UsageError(told)
        text = text_in(raw, "the answer")
        kept = (session.store.put_artifact(workflow, raw),) if raw else ()
        folder, laid, base, change = self._taken(session, seen, agent, work)
        carried: dict[str, str] = {}
        if change is not None:
            mirror = bring_work(session.store, seen.state, session.settings.cache_dir)
            bundle = keep_bundle(session.store, seen.state, mirror, change.commit)
            carried = {"base": base, "tip": change.commit, "bundle": bundle}
        files = change.files if change is not None else ()
        self.brought(Handed(session, seen, agent, text, kept, work.blocked, folder, laid, carried, files))
        seen = look(session, workflow)
        if files:
            session.write_branch(seen.state)
            print_lines(*files)
        tell(seen.standing, waits_for="a decision", taken="accepted; ")

    def _taken(
        self, session: Session, seen: Seen, agent: str, work: Work
    ) -> tuple[Path | None, bytes, str, Change | None]:
        """Its directory, the state shown by the files there, the commit it began from, and its change."""
        state = seen.state
        if not state.snapshot:
            return None, b"", "", None
        mirror = bring_work(session.store, state, session.settings.cache_dir)
        message = f"fixloop: issue {state.issue}, {agent}, iteration {state.iteration}\n"
        if work.rev is not None:
            change = resolve_descendant(work.rev, path=session.directory, tip=state.tip, mirror=mirror)
            return None, b"", state.tip, change
        snapshot = snapshot_in(state)
        if work.here:
            change = merge_checkout(
                session.directory, base=snapshot.commit, tip=state.tip, mirror=mirror, message=message
            )
            return session.directory, seen.found.snapshot, state.tip, change
        made = run_offered_at(state, self._folder(state, agent), session.settings.cache_dir)
        if not made.top.is_dir():
            if work.blocked is not None:
                return None, b"", "", None
            raise RefusedError(
                f"{agent} has no directory yet; `fixloop ack {called(state)} --agent {agent}` makes one to work "
                "in, or use --here for the current checkout"
            )
        laid = (made.top.parent / SNAPSHOT).read_bytes()
        base = seen.presenter.load(laid).tip
        copied = copied_paths(mirror, snapshot_in(state).copied)
        own = commit_of_directory(made.top, base, mirror, message, without=copied)
        change = rebased(state.tip, own, base=base, mirror=mirror, message=message)
        return made.directory, laid, state.tip, change


def agents_of(state: Any) -> dict[str, Any]:
    """The agents of a workflow, by name."""
    return {agent.name: agent for agent in state.agents}


def handlers(
    outside: Outside,
    *,
    decide: Callable[[Session, str, Answer], None],
    send: Callable[[Session, str, Said], None],
) -> CommandHandlers:
    return CommandHandlers(
        cancelled=lambda reason: Cancelled(sender=_person("cancel"), reason=reason),
        paused=lambda reason: Paused(sender=_person("pause"), reason=reason),
        continued=lambda: Continued(sender=_person("continue")),
        pushed=lambda branch: BranchPushed(sender=_person("push"), branch=branch),
        decide=decide,
        ack=outside.ack,
        fixed=outside.hand_in,
        show=outside.show,
        send=send,
    )


def sender(otherwise: str) -> str:
    """The caller: the agent fixloop runs this for (`FIXLOOP_ROLE`), else `otherwise`; it proves nothing."""
    return os.environ.get("FIXLOOP_ROLE", "").strip() or otherwise


def _person(what: str) -> str:
    """The calling person: only people may do this to a workflow (C5, C58), agents are refused."""
    named = sender(USER)
    if named not in (USER, ORCHESTRATOR):
        raise RefusedError(f"{named} cannot {what} a workflow; only the user can")
    return named


def tell(now: Standing, *, waits_for: str, taken: str = "") -> None:
    """Print where the workflow stands after an answer or a message."""
    if now.outcome:
        note(f"issue {now.issue} ended: {now.outcome}")
    elif now.waits_for == "decision":
        note(f"issue {now.issue} waits for {waits_for}: `fixloop inbox`")
    elif now.held and taken:
        note(f"{taken}issue {now.issue} is paused by {now.held}")
    else:
        note(f"{taken}issue {now.issue} continues: {now.at_work}")


def refuse_bounds(given: Answer, what: str) -> None:
    """Refuse --iterations without extend, and --minutes where there are none."""
    if given.iterations is not None and given.word != "extend":
        raise UsageError(f"--iterations goes with extend, not with {given.word}")
    if given.minutes is not None:
        told = f"--minutes has no effect on {what}: each further run has its full time; leave it out"
        raise UsageError(told)
