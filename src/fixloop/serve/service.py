"""What a caller is shown, and what is done for them: the commands' handlers and presenters, each after one check of the
caller. Routes and pages call nothing else."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache, partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from fixloop.commands.handlers import Answer, handlers_of
from fixloop.commands.inbox import items_of
from fixloop.commands.integrity import Hold, holds_in
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
from fixloop.serve.lists import Item, Lists, Row
from fixloop.serve.problems import Problem
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


class Held(NamedTuple):
    """A run that passed and was held."""

    workflow: str
    name: str
    rules: Sequence[str]
    decision: str
    """Empty: it is open."""


class Holds(NamedTuple):
    """The holds in the workflows read so far, latest workflow first."""

    holds: Sequence[Held]
    left: int
    """Workflows whose histories have not been read yet."""


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

    @staticmethod
    def age_seconds(item: Item) -> float:
        return (datetime.now(UTC) - datetime.fromisoformat(item["since"])).total_seconds()


class Service:
    """A deployment's service for outside callers. Safe to share between threads."""

    def __init__(self, session: Session, tokens: Tokens, repositories: Sequence[str] = ()) -> None:
        """Features of `repositories`, and of repositories below them, may be submitted."""
        self.tokens = tokens
        self._repositories = Repositories(repositories)
        self._session = session
        self.follower = Follower(session.store)
        """Must run while callers are served."""
        self._lists = Lists(self.follower, self._waiting_in)
        self._times = Times(session.store.history)
        self._waivers: tuple[float, Sequence[Waiver]] = (-WAIVERS_SECONDS, ())
        self._held: dict[str, tuple[Mapping[str, str], Sequence[Hold]]] = {}

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

    def workflows(
        self,
        caller: Caller,
        *,
        state: str = "",
        project: str = "",
        profile: str = "",
        cursor: str = "",
        most: int = 50,
    ) -> Page:
        """A page of the list, latest change first. A workflow that does not change meanwhile is on exactly one."""
        require(caller, access.READ)
        left = (
            row
            for row in self._lists.workflows(state)
            if (not cursor or row.cursor < cursor)
            and caller.sees(row.workflow)
            and row.workflow.startswith(project)
            and profile in ("", row.document["profile"])
        )
        found = list(islice(left, most + 1))
        return Page(
            [row.document for row in found[:most]], found[most - 1].cursor if len(found) > most else ""
        )

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
        stored = cache(partial(self._session.store.get_artifact, workflow))
        logged = logged._replace(
            artifact=lambda digest: None if digest in earlier else stored(digest), texts=texts
        )
        made = seen.presenter.summary
        return Look(seen, logged, made(seen.found, logged) if made is not None else None)

    def log(self, caller: Caller, workflow: str) -> dict[str, Any]:
        """The document of `log --all --json`."""
        seen = self.seen(caller, workflow)
        return seen.presenter.log_document(self._logged(seen, everything=True))

    def checks(self, caller: Caller, workflow: str) -> list[dict[str, Any]]:
        """The evidence of each check that ran, in the order of the history."""
        seen = self.seen(caller, workflow)
        return [
            {"specialist": event["specialist"], "iteration": event["iteration"], "step": event["step"]}
            | {"outcome": event["outcome"], "at": entry.body["at"], **evidence}
            for entry in self._session.store.history(seen.found.workflow)
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
        found = list(self.waiting(caller))
        return [
            {**item, "can_decide": item["waits_for"] in DECIDABLE and caller.may(access.DECIDE)}
            for item in found
        ]

    def item(self, caller: Caller, workflow: str, escalation: str) -> Item | None:
        """The open item of an escalation; None if it is no longer open."""
        require(caller, access.READ)
        self.seen(caller, workflow)
        fields = {"owner": "person"}
        items = items_of(self._session.store, workflow, fields, self._session.settings.cache_dir)
        return next((each for each in items if each["escalation_id"] == escalation), None)

    def decided(self, caller: Caller, look: Look, escalation: str) -> dict[str, Any] | None:
        """The answer to an escalation, with who gave it and when; None if there is none yet. Problem: there never was
        such an escalation."""
        require(caller, access.READ)
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
        if given.word == "accept" and (maker := self._fixed_by(workflow)) == caller.name:
            raise Problem(
                "not-allowed", f"{maker} made the fix, and does not accept its hold; somebody else does"
            )
        if given.word == "manual-fix" and (seen.found.fields.get("status") or "").upper() == "ERROR":
            raise Problem(
                "refused",
                f"manual-fix takes the checkout of who decides; use `fixloop decide {workflow} manual-fix` there",
            )
        told = self.acting(caller, f"decide/{key}")
        try:
            with heard() as notes:
                handlers_of(told, workflow).decide(told, workflow, given)
        except (UsageError, ProtocolError) as error:
            # The same request sent twice at once has one answer; the slower one gets the answer of the faster.
            if repeated and (done := self._done(caller, workflow, version, given)):
                return done
            now = look(self._session, workflow)
            raise self._stale(now, version) if self._decided_since(workflow, version) else error from None
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

    def counts(self, caller: Caller) -> dict[str, Any]:
        """The numbers of workflows by state, and of waiting items."""
        require(caller, access.READ)
        rows = (row for row in self._lists.workflows() if caller.sees(row.workflow))
        by_state = Counter((row.document["profile"], row.state) for row in rows)
        return {
            "workflows": [
                {"profile": name, "state": at, "count": n} for (name, at), n in sorted(by_state.items())
            ]
        }

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
        """The workers of this host that serve this Redis."""
        require(caller, access.READ)
        return workers_here(self._session)

    def holds(self, caller: Caller) -> Holds:
        """What integrity rules held, and what people decided. Many histories are read in parts: each call continues for
        HISTORY_SECONDS where the previous one stopped."""
        require(caller, access.READ)
        ends, found, left = time.monotonic() + HISTORY_SECONDS, [], 0
        seen = [
            (workflow, fields) for workflow, fields in self.follower.rows().items() if caller.sees(workflow)
        ]
        for workflow, fields in sorted(seen, key=lambda each: each[1].get("updated_at", ""), reverse=True):
            kept = self._held.get(workflow)
            if kept is None or kept[0] != fields:
                if time.monotonic() > ends:
                    left += 1
                    continue
                held: Sequence[Hold] = ()
                with suppress(Damaged, NewerVersion):
                    held = list(holds_in(self._session.store.history(workflow)))
                kept = self._held[workflow] = fields, held
            found += [Held(workflow, fields.get("name", ""), *hold) for hold in kept[1]]
        return Holds(found, left)

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
        entries = self._session.store.history(seen.found.workflow, version)
        made = self._decided_since(seen.found.workflow, version)
        said = (
            f"{made['by']} decided {made['decision']} at {made['at']}"
            if made
            else "something else has happened"
        )
        facts: dict[str, Any] = {"decided": made} if made else {}
        return Problem(
            "stale",
            f"it is at version {seen.found.version} and not at {version}: {said}",
            version=seen.found.version,
            happened=list(seen.presenter.happened(entries)),
            **facts,
        )

    def _decided_since(self, workflow: str, version: int) -> dict[str, Any] | None:
        entries = self._session.store.history(workflow, version)
        return next(filter(None, map(_decision, entries)), None)

    def _fixed_by(self, workflow: str) -> str:
        """Who made the last fix."""
        events = (entry.body.get("event", {}) for entry in reversed(self._session.store.history(workflow)))
        fix: Item = next((each for each in events if each.get("kind") == "fix-completed"), {})
        return str(fix.get("completion", {}).get("by", "")).partition(" (")[0]


def require(caller: Caller, scope: str) -> None:
    """Problem if a caller lacks the scope."""
    if not caller.may(scope):
        raise Problem(
            "not-allowed", f"{caller.name} may {', '.join(sorted(caller.scopes))}; this needs {scope!r}"
        )


def _decision(entry: Entry) -> dict[str, Any] | None:
    event = entry.body.get("event", {})
    word = {"decision-made": "decision", "answered": "answer", "cancelled": "kind"}.get(event.get("kind", ""))
    if word is None:
        return None
    by = event.get("by") or "somebody on the command line"
    return {"decision": event[word], "by": by, "at": entry.body["at"], "version": entry.seq}
