"""The outcome of a decision in any profile, and the draft that collects it.

An outcome is a value: the next state and everything that follows from it, committed all at once. States, messages and
transitions belong to each profile (K30); they are collected in the same way for all.
"""

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from fixloop.protocol import ticket as tickets
from fixloop.protocol.agent_events import Continued, Paused
from fixloop.protocol.event import Moment, Moved

S = TypeVar("S", bound=Any)
M = TypeVar("M")


@dataclass
class Outcome(Generic[S, M]):
    """The next state and what follows from it."""

    state: S
    messages: tuple[M, ...] = ()
    transitions: tuple[Any, ...] = ()
    """Changes of status (A53-A55)."""
    steps: tuple[tickets.Ticket, ...] = ()
    deadlines: dict[str, float] = field(default_factory=dict)
    """Deadlines to set: name → engine seconds."""
    cleared_deadlines: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    """Tickets to void individually."""
    withdraws_tickets: bool = False
    """Void every earlier ticket and deadline."""
    notes: tuple[str, ...] = ()
    """Log entries that are not messages (A58)."""
    holds: bool | None = None
    """True: unclaimed tickets and all deadlines are held; False: they continue."""
    stood_seconds: float = 0.0
    """How long the deadlines that now continue were held."""
    answer: str = ""
    """The answer to the event's sender: `granted`, `forced`, `pending`, `lost` … (K10)."""
    commits: bool = True
    """False: nothing needs to be recorded; there is only the answer."""


class Draft(Generic[S, M]):
    """An outcome in the making; only drafts collect messages, tickets and deadlines."""

    def __init__(self, state: S, now: Moment) -> None:
        self.at = max(state.last_at, now.at)
        self.clock = now.clock
        self.state = state
        self.answer = ""
        self.commits = True
        self._made: Outcome[S, M] = Outcome(state)

    def outcome(self) -> Outcome[S, M]:
        made = self._made
        made.state, made.answer, made.commits = self.state, self.answer, self.commits
        return made

    def update(self, **changes: Any) -> None:
        self.state = self.state.with_(**changes)

    def note(self, text: str) -> None:
        """Add a log entry that is not a message."""
        self._made.notes += (text,)

    def set_deadline(self, name: str, due: float) -> None:
        """Have `DeadlineReached(name)` raised at `due` engine seconds."""
        cleared = self._made.cleared_deadlines
        self._made.cleared_deadlines = tuple(each for each in cleared if each != name)
        self._made.deadlines[name] = due

    def clear_deadlines(self, *names: str) -> None:
        """Remove deadlines that no longer matter."""
        for name in names:
            self._made.deadlines.pop(name, None)
        self._made.cleared_deadlines += names

    def hold(self) -> None:
        """Start no more work and let no deadline fall due."""
        self._made.holds = True

    def release(self, stood_seconds: float) -> None:
        """Continue held work; its deadlines move by the time they stood still."""
        self._made.holds, self._made.stood_seconds = False, stood_seconds

    def withdraw(self) -> None:
        """Void every ticket and deadline made so far (a pause or an end)."""
        self._made.withdraws_tickets = True
        self._made.steps = ()
        self._made.deadlines.clear()


class AgentDraft(Draft[S, M]):
    """The draft of profiles whose steps are runs of named agents: asks for runs, writes letters to outside agents."""

    def __init__(self, state: S, now: Moment) -> None:
        super().__init__(state, now)
        self._before = state
        self._asked: list[str] = []
        self.update(last_at=self.at)

    def about(self, message: M) -> tickets.About:
        """What a letter about a message says; each profile defines it."""
        raise NotImplementedError

    def outcome(self) -> Outcome[S, M]:
        """The finished outcome, with letters for the messages to outside agents."""
        outside = {agent.name for agent in self.state.agents if not agent.command}
        self.post([about for about in map(self.about, self._made.messages) if about.agent in outside])
        return super().outcome()

    def post(self, said: list[tickets.About]) -> None:
        """Write a letter for each message to an outside agent, and for each run that no message asks for."""
        state, before = self.state, self._before
        is_over = state.ended or bool(state.closing)
        # An answer that arrived before the letter was delivered voids the letter.
        void = [
            letter
            for letter in state.letters
            if is_over or (before.agent(letter.agent).asked and not state.agent(letter.agent).asked)
        ]
        told = {about.agent for about in said}
        runs = {name: tickets.work_id(state, state.agent(name)) for name in self._asked if name not in told}
        work = [tickets.About(name, run, run, f"{state.profile}.work") for name, run in runs.items()]
        new = tuple(
            tickets.Letter(number=number, **about._asdict())
            for number, about in enumerate([] if is_over else [*said, *work], state.posted + 1)
        )
        kept = tuple(letter for letter in state.letters if letter not in void)
        self.update(letters=(*kept, *new), posted=state.posted + len(new))
        for letter in new:
            self.deliver(letter)
        self._made.dropped += tuple(tickets.letter_id(state, letter) for letter in void)

    def letter(self, number: int) -> tickets.Letter | None:
        """A letter that is in no mailbox yet; None if its agent has answered in the meantime."""
        return next((letter for letter in self.state.letters if letter.number == number), None)

    def replace_letter(self, letter: tickets.Letter, *by: tickets.Letter) -> None:
        """Remove a letter, or replace it by its next attempt."""
        letters = self.state.letters
        at = letters.index(letter)
        self.update(letters=(*letters[:at], *by, *letters[at + 1 :]))

    def agent(self, name: str, **changes: Any) -> Any:
        """Change an agent; returns the changed agent."""
        after = self.state.agent(name).with_(**changes)
        self.update(agents=tuple(after if agent.name == name else agent for agent in self.state.agents))
        return after

    def ask(self, name: str, *, delay_seconds: float = 0.0) -> None:
        """Ask an agent for a run: a ticket for its command, or a deadline for an outside agent (G15)."""
        agent = self.agent(name, asked=True, asked_at=self.at)
        limit = self.state.limits.seconds_of(name)
        if not agent.command:
            self._asked.append(name)
            if limit is not None:
                self.set_deadline(f"run/{name}", self.clock + limit)
            return
        self._made.steps += (tickets.work_ticket(self.state, agent).with_(delay_seconds=delay_seconds),)

    def drop(self, name: str) -> None:
        """Void what an agent was asked for."""
        agent = self.state.agent(name)
        if agent.asked and agent.command:
            self._made.dropped += (tickets.work_id(self.state, agent),)
        self.stop_clock(name)
        self.agent(name, asked=False)

    def stop_clock(self, name: str) -> None:
        self.clear_deadlines(f"run/{name}")

    def advance(self, base: str, tip: str) -> None:
        """Make an agent's commit `tip`, based on `base`, the current one; `base` itself or an empty commit changes
        nothing. Moved if another agent's work was committed in between: the result has to be rebased."""
        present = self.state.tip
        if tip in ("", base):
            return
        if base != present:
            raise Moved(f"this work was begun on commit {base[:12]}; the work so far is {present[:12]}")
        self.update(tip=tip)

    def push(self, attempt: int = 1, delay_seconds: float = 0.0) -> None:
        id = f"{self.state.workflow}.{tickets.PUSH}.{attempt}"
        again = tickets.agent_ticket(
            self.state, id, tickets.PUSH, attempt=attempt, delay_seconds=delay_seconds
        )
        self._made.steps += (again,)

    def deliver(self, letter: tickets.Letter, delay_seconds: float = 0.0) -> None:
        """Ask for a letter's delivery to its agent's mailbox."""
        ticket = tickets.agent_ticket(
            self.state,
            tickets.letter_id(self.state, letter),
            tickets.DELIVER,
            queue=f"{self.state.queue or 'fixloop'}.control",
            specialist=letter.agent,
            attempt=letter.attempt,
            delay_seconds=delay_seconds,
        )
        self._made.steps += (ticket,)

    def notify(self) -> None:
        """Ask for the notify command for the last message, if there is one."""
        if self.state.notify:
            # An escalation has the priority Critical (K13).
            id = f"{self.state.workflow}.{tickets.NOTIFY}.{self.state.lines}"
            self._made.steps += (tickets.agent_ticket(self.state, id, tickets.NOTIFY, priority=0),)

    def withdraw(self) -> None:
        """Void every ticket, deadline and request."""
        super().withdraw()
        self._asked.clear()
        self.update(agents=tuple(agent.with_(asked=False) for agent in self.state.agents))

    def pause(self, event: Paused) -> None:
        """Hold everything until a person continues it."""
        self.update(status="paused", paused_clock=self.clock)
        self.hold()

    def go_on(self, event: Continued) -> None:
        """Release what a person's pause held."""
        self.release(self.clock - self.state.paused_clock)
        self.update(status="running", paused_clock=None)

    def ask_again(self) -> None:
        """After a loss of Redis: ask the agents again, send letters again, and keep a pause."""
        for agent in self.state.agents:
            if agent.asked:
                self.ask(agent.name)
        if self.state.closing:
            self.push()
        for letter in self.state.letters:
            self.deliver(letter)
        if self.state.paused_clock is not None:
            self.update(paused_clock=self.clock)
            self.hold()
