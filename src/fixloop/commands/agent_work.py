"""How both cycles and handoffs are shown: who is at work, until when, and who waits."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from fixloop.commands.presenter import Standing, clock_line, deadline_of, way_out
from fixloop.commands.screen import few, short
from fixloop.protocol.durations import iso_stamp, minutes_seconds
from fixloop.protocol.ids import called
from fixloop.store.records import Snapshot

DECISIONS: Final = ("manual-fix", "skip", "abort", "extend")
_VERDICTS: Final = {"success": "passed", "skipped": "passed_with_known_issues"}


class AtWork(NamedTuple):
    """An agent with an open request."""

    name: str
    run: int
    command: str
    began: datetime | None
    """When its current run began; None: not yet."""
    heard: datetime | None = None
    """The last heartbeat of somebody outside, if later."""

    def line(self, found: Snapshot) -> str:
        """The state of its run, on one line."""
        who, now = f"{self.name}, run {self.run}", found.moment.at
        if self.command and self.began is not None:
            return f"{who}: for {minutes_seconds((now - self.began).total_seconds())}"
        if self.command:
            claimed = (held.ticket.specialist for held in found.tickets if held.status == "claimed")
            return f"{who}: {'running' if self.name in claimed else 'waiting for a worker'}"
        if self.began is None:
            return f"{who}: waiting for somebody outside"
        heard = ""
        if self.heard is not None and self.heard > self.began:
            heard = f", last heard {minutes_seconds((now - self.heard).total_seconds())} ago"
        return f"{who}: begun by somebody outside{heard}"


def clocks(found: Snapshot, state: Any, at_work: Iterable[AtWork], owner: str) -> str:
    """Elapsed time, runs, deadline and whose turn it is, on one line."""
    elapsed = (state.ended_at or found.moment.at) - state.started_at
    turn = "paused" if state.paused_clock is not None else f"{owner}'s turn"
    return clock_line(found, elapsed, (each.line(found) for each in at_work), "" if state.ended else turn)


def away_line(state: Any) -> tuple[str, str]:
    """Label and text for a missing worker."""
    again = f" or `fixloop resume {called(state)}`" if state.queue else ""
    return "engine", f"away: no worker is running; start `fixloop worker`{again}"


def ending(state: Any) -> str:
    """The end of the last line: known issues, and the result of the push."""
    known = f"; known issues: {few(state.remaining_issues)}" if state.remaining_issues else ""
    if state.push_error:
        again = f"`fixloop push {called(state)}` retries"
        return f"{known}; not pushed: {short(state.push_error, 400)}; {again}"
    return f"{known}; pushed as {state.pushed}" if state.pushed else known


def standing(state: Any, asked: Mapping[str, str], *, asks: bool, held: str, done: bool = False) -> Standing:
    """`asked` has each agent's command, empty for an outside agent; `asks`: a person must answer first."""
    waits_for: Literal["", "decision", "agent"] = ""
    if not (state.ended or state.closing or done or any(asked.values())):
        waits_for = "decision" if asks else "agent" if asked and not held else ""
    at_work = told(state.outcome, state.closing, asked)
    return Standing(
        state.issue, state.name, state.outcome, waits_for, held, at_work, state.push, called(state)
    )


def next_command(state: Any, at_work: Iterable[AtWork], decide: str) -> str:
    """The command most likely wanted next; `decide` is the answer to a person's open question, if any."""
    if state.ended:
        return way_out(state) or f"fixloop log {called(state)}"
    if state.paused_clock is not None:
        return f"fixloop continue {called(state)}"
    if decide:
        return decide
    away = [each for each in at_work if not each.command]
    # Before the receipt there is no directory whose work could be submitted.
    begun = next((each for each in away if each.began is not None), None)
    if begun is not None:
        return answers(state, begun.name)[1]
    return answers(state, away[0].name)[0] if away else f"fixloop watch {called(state)}"


def told(outcome: str, closing: str, asked: Mapping[str, str]) -> str:
    """What is happening, in a few words; `closing` is the outcome it will have once its branch is pushed."""
    if outcome or closing:
        return f"it ended ({outcome})" if outcome else "its branch is pushed"
    busy = ", ".join(name for name, command in asked.items() if command)
    away = ", ".join(name for name, command in asked.items() if not command)
    parts = (f"{busy} at work" if busy else "", f"waiting for {away}" if away else "")
    return "; ".join(filter(None, parts)) or "no agent is at work"


def shared(
    found: Snapshot, state: Any, *, asks: bool, held: Mapping[str, Any] | None, owner: str
) -> dict[str, Any]:
    """`status ISSUE --json`, as far as both share it; `asks`: a question to a person is open."""
    due = deadline_of(found)
    return {
        "issue": state.issue,
        "name": state.name,
        "workflow_id": state.workflow,
        "profile": state.profile,
        "status": str(state.status),
        "paused": asks or held is not None,
        "held": held,
        "verdict": _VERDICTS.get(state.outcome, "not_passed") if state.ended else None,
        "outcome": state.outcome or None,
        "owner": owner,
        "iteration": state.iteration,
        "max_iterations": state.max_iterations,
        "deadline": iso_stamp(due) if due is not None else None,
        "tip": state.tip,
        "pushed": state.pushed or None,
        "push_error": state.push_error or None,
        "updated_at": iso_stamp(state.last_at),
    }


def answers(state: Any, agent: str) -> tuple[str, str]:
    """The commands with which an outside agent begins and submits."""
    one = f"{called(state)} --agent {agent}"
    return f"fixloop ack {one}", f"fixloop fixed {one} --file ANSWER"


def paused_item(state: Any, specialist: str, since: datetime) -> dict[str, Any]:
    """The inbox item of a workflow paused by a person."""
    asked = asked_item(state, specialist, since, reason="paused by a person", detail="")
    commands = [f"fixloop continue {called(state)}"]
    return asked | {"waits_for": "continue", "target": "user", "commands": commands}


def asked_item(state: Any, agent: str, since: datetime, *, reason: str, detail: str) -> dict[str, Any]:
    """The inbox item of an agent without a command."""
    return item(state) | {
        "specialist": agent,
        "waits_for": "work",
        "escalation_id": None,
        "reason": reason,
        "detail": detail,
        "target": agent,
        "since": iso_stamp(since),
        "options": [],
        "commands": list(answers(state, agent)),
    }


def item(state: Any) -> dict[str, Any]:
    """The fields that all inbox items share."""
    return {"iteration": state.iteration, "max_iterations": state.max_iterations, "directory": None}
