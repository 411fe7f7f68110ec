"""Fixes by outside agents: a request is claimed under a lease, and answered with a patch or declined.

A claim is a lock of the store, and its fence a number that only grows: after the lease has run out, the holder is told
who has the request now. Submissions use the handlers of `fixloop ack`, `fixed` and `decline`.
"""

import asyncio
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple

from fixloop.commands.handlers import Work, handlers_of
from fixloop.commands.screen import heard
from fixloop.errors import RefusedError, UsageError
from fixloop.protocol.declining import Kind
from fixloop.serve.access import SUBMIT, Caller
from fixloop.serve.follower import News
from fixloop.serve.lists import Item
from fixloop.serve.problems import Problem
from fixloop.serve.service import Service

LEASE_SECONDS: Final = 15 * 60.0
"""The lease, renewed by each heartbeat."""
MOST_PATCH_BYTES: Final = 1024 * 1024
PAGE_CHARACTERS: Final = 8000
"""Of a complete failure."""

Answer = dict[str, Any]


class _Claim(NamedTuple):
    """The request of a claim, parsed from the claim's id."""

    workflow: str
    request: str
    """Specialist, iteration and epoch, which change as soon as something else is requested."""

    @property
    def resource(self) -> str:
        return f"work/{self.request}"

    @classmethod
    def parse(cls, text: str) -> "_Claim":
        workflow, _, request = text.partition(".")
        return cls(workflow, request)


class Desk(NamedTuple):
    """Hands out work to one outside agent, and takes its submissions."""

    service: Service
    caller: Caller

    def changes(self) -> AbstractContextManager[asyncio.Queue[News]]:
        """A queue of changes from now on, for the running loop: each may be a new request."""
        return self.service.follower.listening()

    def claim(self) -> Answer:
        """The longest waiting request for this agent that nobody else holds; for its holder, the same one again.
        Problem: the caller takes no work."""
        self._require_worker()
        for item in self.service.waiting(self.caller):
            if item["waits_for"] == "fix" and (found := self._claimed(item)):
                return found
        return {"status": "none", "next": "claim again later"}

    def heartbeat(self, claim: str, fence: int) -> Answer:
        """Extend a claim by LEASE_SECONDS from now."""
        self._require_worker()
        if late := self._invalid_claim(claim, fence):
            return late
        return {"status": "held", "lease_seconds": LEASE_SECONDS, "next": "submit or decline"}

    def failure(self, claim: str, number: str, part: int) -> Answer:
        """One complete failure, in pages of PAGE_CHARACTERS. UsageError: there is no such failure or page."""
        self._require_worker()
        seen = self.service.seen(self.caller, _Claim.parse(claim).workflow)
        session = self.service.acting(self.caller, "read")
        text = handlers_of(session, seen.found.workflow).failure(session, seen.found.workflow, number)
        pages = max(1, -(-len(text) // PAGE_CHARACTERS))
        if not 1 <= part <= pages:
            raise UsageError(f"failure {number} has pages 1 to {pages}, not {part}")
        shown = text[(part - 1) * PAGE_CHARACTERS : part * PAGE_CHARACTERS]
        return {"status": "found", "text": shown, "part": part, "parts": pages, "next": "submit or decline"}

    def submit(
        self, claim: str, fence: int, patch: str, summary: str, key: str, revision: str = ""
    ) -> Answer:
        """Submit a unified diff onto the work so far, or a revision of the repository that descends from it, once for
        each key: `accepted`, `unchanged` (it changes nothing, and nothing is recorded), `refused` with reasons (it does
        not apply; the claim stands) or `too_late`."""
        return self._submit(claim, fence, _fix(patch, revision, summary), key)

    def done(self, workflow: str, patch: str, revision: str, summary: str, key: str) -> Answer:
        """The same for a workflow without an earlier claim: it is claimed for the duration of the call."""
        self._require_worker()
        work = _fix(patch, revision, summary)
        if isinstance(work, dict):
            return work
        repeated = self.service.is_repeated(self.caller, key, (workflow, work))
        for item in self.service.waiting(self.caller):
            if item["workflow_id"] == workflow and item["waits_for"] == "fix":
                if (found := self._claimed(item)) is None:
                    return _too_late("another has claimed this request")
                return self._apply_work(_Claim.parse(found["claim"]), found["fence"], work, key)
        history = self.service.acting(self.caller, "read").store.history(workflow) if repeated else []
        events = (entry.body.get("event", {}) for entry in history)
        if any(event.get("completion", {}).get("by") == self.caller.signature for event in events):
            return {"status": "accepted", "next": "claim"}
        return _too_late(f"workflow {workflow[:60]} waits for no fix")

    def decline(self, claim: str, fence: int, kind: str, text: str, key: str) -> Answer:
        """Report that there will be no fix, and why: a person decides, and no iteration is counted."""
        return self._submit(claim, fence, Work(blocked=text, declined=Kind(kind)), key)

    def _require_worker(self) -> None:
        if not (self.caller.agents or self.caller.may(SUBMIT)):
            raise Problem("not-allowed", f"{self.caller.name} takes no work; a token of role agent does")

    def _claimed(self, item: Item) -> Answer | None:
        state = self.service.seen(self.caller, item["workflow_id"]).state
        # A workflow that names no agent is open to any agent.
        named = getattr(state, "agent", "")
        if not (self.caller.may(SUBMIT) or named in self.caller.agents or (self.caller.agents and not named)):
            return None
        claim = _Claim(state.workflow, f"{state.active.name}.{state.active.iteration}.{state.epoch}")
        session = self.service.acting(self.caller, f"ack/{claim.request}")
        locks, workflow = session.store.locks, claim.workflow
        grant = locks.acquire(workflow, claim.resource, self.caller.signature, lease_seconds=LEASE_SECONDS)
        if not grant.is_held:
            return None
        try:
            with heard():
                request = handlers_of(session, workflow).request(session, workflow)
        except RefusedError:
            # It was answered in the meantime.
            locks.release(workflow, claim.resource, grant.token)
            return None
        return {
            "status": "claimed",
            "claim": f"{workflow}.{claim.request}",
            "fence": grant.token,
            "lease_seconds": LEASE_SECONDS,
            "workflow_id": workflow,
            "issue": state.issue,
            "name": state.name,
            "specialist": state.active.name,
            "iteration": state.active.iteration,
            "of": state.active.max_iterations,
            "deadline": item.get("deadline"),
            "base_commit": state.tip,
            "request": request,
            "next": "submit a patch onto base_commit, or decline; heartbeat keeps the claim",
        }

    def _submit(self, claim: str, fence: int, work: Work | Answer, key: str) -> Answer:
        self._require_worker()
        if isinstance(work, dict):
            return work
        found = _Claim.parse(claim)
        self.service.seen(self.caller, found.workflow)
        repeated = self.service.is_repeated(self.caller, key, (claim, fence, work))
        if repeated and (done := self._earlier_answer(found)):
            return done
        return self._invalid_claim(claim, fence) or self._apply_work(found, fence, work, key)

    def _apply_work(self, found: _Claim, fence: int, work: Work, key: str) -> Answer:
        session = self.service.acting(self.caller, f"work/{key}")
        tip = session.engine.state(found.workflow).tip
        try:
            with heard() as notes:
                handlers_of(session, found.workflow).fixed(session, found.workflow, work)
        except RefusedError as error:
            return self._earlier_answer(found) or _too_late(str(error))
        except UsageError as error:
            return _refused(str(error))
        session.store.locks.release(found.workflow, found.resource, fence)
        self.service.follower.refresh(found.workflow)
        done = self._earlier_answer(found)
        if done is None:
            unchanged = session.engine.state(found.workflow).tip == tip
            return {"status": "unchanged" if unchanged else "accepted", "notes": notes, "next": "claim"}
        return {**done, "notes": notes}

    def _invalid_claim(self, claim: str, fence: int) -> Answer | None:
        """Why a claim is no longer valid; None if it is, and then it is extended by LEASE_SECONDS."""
        found = _Claim.parse(claim)
        state = self.service.seen(self.caller, found.workflow).state
        active = getattr(state, "active", None)
        asked = f"{active.name}.{active.iteration}.{state.epoch}" if active and not state.ended else ""
        if asked != found.request:
            return _too_late("this request was answered, or is no longer asked")
        locks = self.service.acting(self.caller, "claim").store.locks
        # A fence is a small number, which others can guess, so the lock's holder is compared by name.
        grant = locks.acquire(
            found.workflow, found.resource, self.caller.signature, lease_seconds=LEASE_SECONDS
        )
        if grant.status == "again":
            if grant.token != fence:
                return _too_late(f"fence {fence} is not that of your claim; claim again to see it")
            locks.extend(found.workflow, found.resource, fence, lease_seconds=LEASE_SECONDS)
            return None
        if grant.is_held:
            # Nobody holds it: the caller gets it again by claiming.
            locks.release(found.workflow, found.resource, grant.token)
            return _too_late("the lease of this claim has run out")
        return _too_late(f"{grant.agent} has it since {grant.acquired:%Y-%m-%d %H:%M:%SZ}")

    def _earlier_answer(self, claim: _Claim) -> Answer | None:
        """The answer to this caller's earlier submission for a request, from the history."""
        session = self.service.acting(self.caller, "read")
        for entry in reversed(session.store.history(claim.workflow)):
            event = entry.body.get("event", {})
            told = event.get("completion", event)
            if told.get("by") != self.caller.signature:
                continue
            if event["kind"] == "blocker-signalled":
                return {"status": "accepted", "version": entry.seq, "next": "a person decides"}
            if claim.request.startswith(f"{event.get('specialist')}.{told.get('iteration')}."):
                if event["kind"] == "fix-completed":
                    return {"status": "accepted", "version": entry.seq, "next": "claim"}
                # The caller took the request with this receipt, and has not answered it since.
                return None
        return None


def _fix(patch: str, revision: str, summary: str) -> Work | Answer:
    """The submitted work, or an answer that refuses it."""
    data = patch.encode()
    if revision and data:
        return _refused("a fix is a patch or a revision, and not both")
    if len(data) > MOST_PATCH_BYTES:
        return _refused(f"a patch may have {MOST_PATCH_BYTES:,} bytes, and this one has {len(data):,}")
    if not data.strip() and not revision:
        return {"status": "unchanged", "next": "submit a patch that changes something, or decline"}
    return Work(patch=None if revision else data, revision=revision, summary=summary)


def _too_late(reason: str) -> Answer:
    return {"status": "too_late", "reasons": [reason], "next": "claim"}


def _refused(reason: str) -> Answer:
    return {"status": "refused", "reasons": [reason], "next": "submit again, or decline"}
