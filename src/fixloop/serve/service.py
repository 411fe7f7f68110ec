"""What a caller is shown, and what is done for them: the commands' handlers and presenters, each after one check of the
caller. Routes and pages call nothing else."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from fixloop.commands.handlers import Answer, handlers_of
from fixloop.commands.inbox import items_of
from fixloop.commands.presenter import Logged, is_away
from fixloop.commands.report import whole_diff
from fixloop.commands.screen import heard
from fixloop.commands.session import Seen, Session, look
from fixloop.commands.worker import KnownWorker, workers_here
from fixloop.errors import Damaged, InfrastructureError, NewerVersion, ProtocolError, UsageError
from fixloop.intake.hook_files import Heartbeat, last_calls
from fixloop.intake.repositories import Repositories
from fixloop.intake.submission import enqueue
from fixloop.serve import access
from fixloop.serve.access import Caller
from fixloop.serve.follower import Follower
from fixloop.serve.lists import Filter, Holds, Item, Lists, Row
from fixloop.serve.problems import Problem, require
from fixloop.serve.submission import NewWorkflow
from fixloop.serve.times import AgentSeen, Times
from fixloop.serve.tokens import Tokens
from fixloop.store.keys import is_workflow
from fixloop.store.records import Entry, QueueLoad
from fixloop.store.waivers import Waiver, due_waivers
from fixloop.summary import Summary

HISTORY_SECONDS: Final = 0.05
"""How long one request reads histories for held runs."""
WAIVERS_SECONDS: Final = 5.0
WHOLE_DIFFERENCES: Final = 20
"""How many fixes on a page have their complete diff; earlier ones have the beginning, as stored in the history."""
DECIDABLE: Final = ("decision", "answer")


class Page(NamedTuple):
    """A part of the list of workflows."""

    workflows: Sequence[Item]
    next: str
    """The cursor of the next part; empty: there is none."""


class Look(NamedTuple):
    """A workflow with its history."""

    seen: Seen
    logged: Logged[Any]
    summary: Summary | None
    """Only for a validation workflow."""


class Figures(NamedTuple):
    """Figures for operators, across all projects."""

    workflows: Sequence[Row]
    waiting: Sequence[Item]
    queues: Sequence[QueueLoad]
    rejected: int
    """Broker messages that no worker could take."""
    is_away: bool
    """No sweeper runs."""
    memory_bytes: tuple[int, int]
    """The memory that Redis uses, and its limit; 0: no limit."""
    times: Times
    unread: int
    """Workflows whose changes are not in `times` yet."""


class Service:
    """A deployment's service for outside callers. Safe to share between threads."""

    def __init__(self, session: Session, tokens: Tokens, repositories: Sequence[str] = ()) -> None:
        """Features of `repositories`, and of repositories below them, may be submitted."""
        self.tokens = tokens
        self._repositories = Repositories(repositories)
        self._session = session
        self.follower = Follower(session.store)
        """Must run while callers are served."""
        self._lists = Lists(self.follower, self._waiting_in, session.store.history)
        self._times = Times(session.store.history)
        self._waivers: tuple[float, Sequence[Waiver]] = (-WAIVERS_SECONDS, ())

    @property
    def has_checkout(self) -> bool:
        """Whether it serves the project of its own checkout, instead of outside ones."""
        return self._session.settings.is_embedded

    def checkout(self, caller: Caller) -> Path:
        """Its own checkout. Problem: the caller has no work in that project."""
        project = self._session.project.hash8
        if not (caller.agents or caller.may(access.SUBMIT)) or not caller.covers((project,)):
            raise Problem("not-allowed", f"{caller.name} has no work in project {project}")
        return self._session.directory

    def ping(self) -> None:
        """InfrastructureError if Redis does not answer."""
        self._session.store.ping()

    def make_lists(self) -> None:
        """Read the data of the lists, if Redis answers."""
        with suppress(InfrastructureError):
            self._lists.waiting()

    def workflows(self, caller: Caller, wanted: Filter, most: int) -> Page:
        """A page of the list, latest change first. A workflow that does not change meanwhile is on exactly one."""
        require(caller, access.READ)
        left = (
            row
            for row in self._lists.workflows(wanted.state)
            if (not wanted.cursor or row.cursor < wanted.cursor)
            and caller.sees(row.workflow)
            and row.workflow.startswith(wanted.project)
            and wanted.profile in ("", row.document["profile"])
        )
        found = list(islice(left, most + 1))
        following = found[most - 1].cursor if len(found) > most else ""
        return Page([row.document for row in found[:most]], following)

    def seen(self, caller: Caller, workflow: str) -> Seen:
        """One workflow. Problem: there is none for this caller."""
        require(caller, access.READ)
        self.follower.check()
        if not is_workflow(workflow) or not caller.sees(workflow):
            raise Problem("not-found", f"no workflow {workflow[:60]}")
        try:
            return look(self._session, workflow)
        except UsageError as error:
            raise Problem("not-found", str(error)) from None

    def look(self, caller: Caller, workflow: str, texts: range = range(0)) -> Look:
        """One workflow for its pages; `texts` are the numbers of the messages that are given in full."""
        seen = self.seen(caller, workflow)
        logged = self._logged(seen)
        events = [entry.body.get("event", {}) for entry in reversed(logged.entries)]
        # For each fix, the digest of its diff.
        found = (str((event.get("completion") or event).get("diff_artifact") or "") for event in events)
        fixes = list(dict.fromkeys(filter(None, found)))
        earlier = set(fixes[WHOLE_DIFFERENCES:])
        stored = self._session.store.get_artifact
        artifact = cache(lambda digest: None if digest in earlier else stored(workflow, digest))
        logged = logged._replace(artifact=artifact, texts=texts)
        made = seen.presenter.summary
        return Look(seen, logged, made(seen.found, logged) if made is not None else None)

    def log(self, caller: Caller, workflow: str) -> dict[str, Any]:
        """The document of `log --all --json`."""
        seen = self.seen(caller, workflow)
        return seen.presenter.log_document(self._logged(seen, everything=True))

    def checks(self, caller: Caller, workflow: str) -> list[dict[str, Any]]:
        """The evidence of each check that ran, in the order of the history."""
        return [
            {"specialist": event["specialist"], "iteration": event["iteration"], "step": event["step"]}
            | {"outcome": event["outcome"], "at": entry.body["at"], **evidence}
            for entry in self._session.store.history(self.seen(caller, workflow).found.workflow)
            if (event := entry.body.get("event", {})).get("kind") == "run-finished"
            for evidence in event.get("evidence", ())
        ]

    def report(self, caller: Caller, workflow: str, form: str) -> str:
        """The report, as `markdown`, `html` or `json`."""
        seen = self.seen(caller, workflow)
        logged = self._logged(seen)
        artifact = partial(self._session.store.get_artifact, workflow)
        diff = whole_diff(self._session, seen.state, logged.entries, artifact)
        return seen.presenter.report(seen.found, logged._replace(artifact=artifact, diff=diff), form)

    def artifact(self, caller: Caller, workflow: str, digest: str) -> bytes:
        """An artifact that the history names. Problem: it is missing."""
        self.seen(caller, workflow)
        found = self._session.store.get_artifact(workflow, digest)
        if found is None:
            raise Problem("not-found", f"workflow {workflow} has no artifact {digest[:80]}")
        return found

    def inbox(self, caller: Caller) -> list[Item]:
        """Items that wait for somebody outside, the longest first; `can_decide` marks those for this caller."""
        may = caller.may(access.DECIDE)
        return [{**one, "can_decide": may and one["waits_for"] in DECIDABLE} for one in self.waiting(caller)]

    def item(self, caller: Caller, workflow: str, escalation: str) -> Item | None:
        """The open item of an escalation; None if it is no longer open."""
        self.seen(caller, workflow)
        items = items_of(self._session.store, workflow, {"owner": "person"}, self._session.settings.cache_dir)
        return next((each for each in items if each["escalation_id"] == escalation), None)

    def decided(self, look: Look, escalation: str) -> dict[str, Any] | None:
        """The answer to an escalation, its giver and time; None: there is none yet. Problem: it never was asked."""
        is_asked = False
        for entry in look.logged.entries:
            made, event = _decision(entry), entry.body.get("event", {})
            if made and (is_asked or event.get("question") == escalation):
                return made | {"reason": event.get("reason") or event.get("text") or ""}
            said = (message.get("message_id", "") for message in entry.body.get("messages", ()))
            is_asked = is_asked or escalation in said
        if not is_asked:
            raise Problem("not-found", f"workflow {look.seen.found.workflow} has not asked {escalation[:80]}")
        return None

    def decide(self, caller: Caller, workflow: str, version: int, given: Answer, key: str) -> dict[str, Any]:
        """Answer an escalation for a version, once for each `key`; a repetition gets the first answer. Problem: the
        caller may not, the state has changed, or the key was used for something else."""
        require(caller, access.DECIDE)
        seen = self.seen(caller, workflow)
        if caller.agents:
            raise Problem("not-allowed", "an agent does not decide; a person does")
        repeated = self.is_repeated(caller, key, (workflow, version, given))
        if repeated and (done := self._done(caller, workflow, version, given)):
            return done
        if seen.found.version != version:
            raise self._stale(seen, version)
        if given.word == "accept" and caller.name in self._fixed_by(seen):
            refusal = f"{caller.name} made the fix, and does not accept its hold; somebody else does"
            raise Problem("not-allowed", refusal)
        if given.word == "manual-fix" and (seen.found.fields.get("status") or "").upper() == "ERROR":
            raise Problem(
                "refused",
                f"manual-fix takes the checkout of who decides; use `fixloop decide {workflow} manual-fix` there",
            )
        acting = self.acting(caller, f"decide/{key}")
        try:
            with heard() as notes:
                handlers_of(acting, workflow).decide(acting, workflow, given)
        except (UsageError, ProtocolError) as error:
            # The same request sent twice at once has one answer; the slower one gets the answer of the faster.
            if repeated and (done := self._done(caller, workflow, version, given)):
                return done
            stale = self._stale(look(self._session, workflow), version)
            raise stale if "decided" in stale.facts else error from None
        self.follower.refresh(workflow)
        return {**(self._done(caller, workflow, version, given) or {}), "notes": notes}

    def submit(self, caller: Caller, given: NewWorkflow, key: str) -> tuple[dict[str, Any], bool]:
        """Submit a feature; a repetition creates no second workflow. Returns its document, and whether it was created
        now. Problem: the caller may not, or the repository is not listed; UsageError: it cannot be used."""
        require(caller, access.SUBMIT)
        self._repositories.check(given.repo)
        self.is_repeated(caller, key, given)
        acting = self.acting(caller, f"submit/{key}")
        cache, projects = acting.settings.cache_dir, caller.projects or None
        with heard():
            made = enqueue(acting.engine, given.feature(), cache=cache, projects=projects)
            acting.draw(made.workflow)
        self.follower.refresh(made.workflow)
        return self.document(self.seen(caller, made.workflow)), made.created

    def command(self, caller: Caller, workflow: str, word: str, reason: str, key: str) -> dict[str, Any]:
        """Pause, continue or cancel, once for each `key`."""
        require(caller, access.SUBMIT)
        self.seen(caller, workflow)
        self.is_repeated(caller, key, (workflow, word, reason))
        handlers = handlers_of(self._session, workflow)
        made = {"pause": handlers.paused, "cancel": handlers.cancelled}
        event = made[word](reason) if word in made else handlers.continued()
        with heard():
            self.acting(caller, f"{word}/{key}").bring(workflow, event)
        self.follower.refresh(workflow)
        return self.document(self.seen(caller, workflow))

    def document(self, seen: Seen) -> dict[str, Any]:
        """The document of `status ISSUE --json`."""
        return seen.presenter.document(seen.found, seen.state)

    def counts(self, caller: Caller) -> list[dict[str, Any]]:
        """The numbers of workflows by profile and state."""
        require(caller, access.READ)
        rows = (row for row in self._lists.workflows() if caller.sees(row.workflow))
        by_state = Counter((row.document["profile"], row.state) for row in rows)
        return [{"profile": name, "state": at, "count": n} for (name, at), n in sorted(by_state.items())]

    def figures(self) -> Figures:
        """Figures for operators. Raises InfrastructureError."""
        store = self._session.store
        away = is_away(store.now(0), store.now(0))
        listed, waiting = self._lists.workflows(), self._lists.waiting()
        memory = self._session.connection.call(lambda client: client.info("memory"))
        taken = memory["used_memory"], memory.get("maxmemory", 0)
        unread = self._times.read(self.follower.rows())
        rejected = store.rejections().total
        return Figures(listed, waiting, store.queues(), rejected, away, taken, self._times, unread)

    def queues(self, caller: Caller) -> Sequence[QueueLoad]:
        """The load of the queues, across all projects: empty for a caller who is limited to some."""
        require(caller, access.READ)
        return self._session.store.queues() if caller.covers(()) else ()

    def agents(self, caller: Caller) -> Sequence[AgentSeen]:
        """The agents and people that make fixes, latest first."""
        require(caller, access.READ)
        self._times.read(self.follower.rows(), HISTORY_SECONDS)
        mine = (each for each in self._times.agents.values() if caller.sees(each.workflow))
        return sorted(mine, key=lambda each: each.at, reverse=True)

    def hooks(self, caller: Caller) -> Sequence[tuple[str, Heartbeat]]:
        """The last runs of agents' stop hooks on this host: none for a caller who is limited to some projects."""
        require(caller, access.READ)
        return last_calls(self._session.settings.cache_dir) if caller.covers(()) else ()

    def workers(self, caller: Caller) -> Sequence[KnownWorker]:
        """The workers of this host that serve this Redis: for a caller who is limited to some projects those that serve
        one of their workflows alone."""
        require(caller, access.READ)
        return [each for each in workers_here(self._session) if caller.sees(each.queue)]

    def holds(self, caller: Caller) -> Holds:
        """What integrity rules held, and what people decided."""
        require(caller, access.READ)
        return self._lists.holds(caller.sees, HISTORY_SECONDS)

    def _waiting_in(self, workflow: str, fields: Mapping[str, str]) -> Sequence[Item]:
        try:
            return items_of(self._session.store, workflow, fields, self._session.settings.cache_dir)
        except (Damaged, NewerVersion):
            # The list of workflows shows it as damaged; the items of others are shown all the same.
            return ()

    def waiting(self, caller: Caller) -> Iterator[Item]:
        """Items that wait for somebody outside in this caller's projects, the longest first."""
        require(caller, access.READ)
        return (item for item in self._lists.waiting() if caller.sees(item["workflow_id"]))

    def waivers(self, caller: Caller) -> list[Waiver]:
        """Waivers that end soon or have ended, at most WAIVERS_SECONDS old."""
        require(caller, access.READ)
        if time.monotonic() > self._waivers[0] + WAIVERS_SECONDS:
            found = due_waivers(self._session.store, self._session.connection)
            self._waivers = time.monotonic(), found
        return [each for each in self._waivers[1] if caller.sees(each.workflow)]

    def is_repeated(self, caller: Caller, key: str, request: object) -> bool:
        """Whether the same request came with this key before. Problem: the key was used for another request."""
        kind = self.tokens.request(caller, key, repr(request))
        if kind == "other":
            raise Problem("key-used", f"Idempotency-Key {key[:80]!r} went with another request before")
        return kind == "repeated"

    def acting(self, caller: Caller, operation: str) -> Session:
        """The session in which an event is applied for a caller, once for each operation."""
        digest = sha256(f"{caller.signature}/{operation}".encode()).hexdigest()[:32]
        return self._session.acting_for(caller.signature, f"http/{digest}")

    def _logged(self, seen: Seen, *, everything: bool = False) -> Logged[Any]:
        entries = self._session.store.history(seen.found.workflow)[: seen.found.version]
        return Logged(seen.state, seen.found.moment, entries, everything)

    def _done(self, caller: Caller, workflow: str, version: int, given: Answer) -> dict[str, Any] | None:
        """The result of a decision, if this caller's is in the history after `version`."""
        for entry in self._session.store.history(workflow, version):
            made = _decision(entry)
            if made and made["by"] == caller.signature and made["decision"] == given.word:
                return {"workflow_id": workflow, **made}
        return None

    def _stale(self, seen: Seen, version: int) -> Problem:
        entries, now = self._session.store.history(seen.found.workflow, version), seen.found.version
        facts: dict[str, Any] = {"version": now, "happened": list(seen.presenter.happened(entries))}
        said = "something else has happened"
        if made := next(filter(None, map(_decision, entries)), None):
            said = f"{made['by']} decided {made['decision']} at {made['at']}"
            facts["decided"] = made
        return Problem("stale", f"it is at version {now} and not at {version}: {said}", **facts)

    def _fixed_by(self, seen: Seen) -> set[str]:
        """Who made fixes for the specialist at work: what is held is all that they changed."""
        events = (entry.body.get("event", {}) for entry in self._session.store.history(seen.found.workflow))
        made = (each for each in events if each.get("kind") == "fix-completed")
        mine = (each["completion"] for each in made if each.get("specialist") == seen.state.active.name)
        return {str(each.get("by", "")).partition(" (")[0] for each in mine}


def _decision(entry: Entry) -> dict[str, Any] | None:
    event = entry.body.get("event", {})
    word = {"decision-made": "decision", "answered": "answer", "cancelled": "kind"}.get(event.get("kind", ""))
    if word is None:
        return None
    by = event.get("by") or "somebody on the command line"
    return {"decision": event[word], "by": by, "at": entry.body["at"], "version": entry.seq}
