"""Pushing to a URL: what is asked for is pushed before the end, and no commits are overwritten."""

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from fixloop.commands.outcome import next_command, remarks
from fixloop.commands.presenter import way_out
from fixloop.engine.engine import Engine
from fixloop.errors import InfrastructureError, RefusedError, UsageError
from fixloop.intake.feature import Feature
from fixloop.intake.preparation import usable
from fixloop.intake.submission import enqueue
from fixloop.outside.transfer import keep_bundle, push_branch, snapshot_in
from fixloop.protocol.event import Unexpected
from fixloop.protocol.events import (
    BranchPushed,
    Cancelled,
    Event,
    FixCompleted,
    ReportDelivered,
    RunFinished,
    WorkflowStarted,
)
from fixloop.protocol.failures import Failure
from fixloop.protocol.roles import WrongParty
from fixloop.protocol.state import Completion, State, WorkflowOutcome
from fixloop.protocol.ticket import Ticket
from fixloop.repository.git import without_userinfo
from fixloop.repository.merge import commit_of_directory
from fixloop.repository.snapshot import Snapshot, mirror_of, take_snapshot_of_url
from tests.fixtures.memory_store import MemoryStore
from tests.fixtures.repositories import git, make_repository, write
from workers.workspaces.workspace import open_workspace
from workflows.validation import following

pytestmark = pytest.mark.slow

PROJECT = "0a1b2c3d"


class Deployment:
    """A store in memory, a repository behind a URL, and one machine's cache."""

    def __init__(self, folder: Path) -> None:
        self.remote = make_repository(folder / "remote", {"price": "wrong\n"})
        self.cache = folder / "cache"
        self.store = MemoryStore(lambda: datetime.now(UTC))
        self.engine = Engine(self.store)

    @property
    def url(self) -> str:
        return f"file://{self.remote}"

    def begin(self, number: int = 1, *, push: bool = True) -> str:
        """The `number`-th workflow of issue 47."""
        taken = take_snapshot_of_url(self.url, issue=47, cache=self.cache)
        event = WorkflowStarted(
            workflow=f"{PROJECT}-47-{number}",
            issue=47,
            name="shop",
            specialists=("test-runner",),
            push=push,
            snapshot=taken.model_dump_json(),
            tip=taken.commit,
            tree=taken.tree,
        )
        assert self.engine.start(event).status == "ok"
        return event.workflow

    def tell(self, workflow: str, event: Event) -> State:
        self.engine.apply(workflow, event, operation=event.model_dump_json())
        return self.engine.state(workflow)

    def steps(self, workflow: str) -> list[Ticket]:
        found = self.store.read(workflow)
        assert found is not None
        return [held.ticket for held in found.tickets]

    def fixed(self, workflow: str, files: dict[str, str]) -> State:
        """One round to a PASS, with a fix that writes `files`."""
        state = self.engine.state(workflow)
        self.tell(workflow, ran(state, "validate", 1, failed=True))
        self.tell(workflow, ReportDelivered(specialist="test-runner", iteration=1))
        mirror = mirror_of(snapshot_in(state), self.cache)
        with open_workspace(self.cache, mirror, state.tip, name=workflow) as workspace:
            write(workspace.path, files)
            change = commit_of_directory(workspace.path, state.tip, mirror, "fix\n")
        bundle = keep_bundle(self.store, state, mirror, change.commit)
        completion = Completion(iteration=1, by="x", tip=change.commit, tree=change.tree)
        state = self.tell(
            workflow, FixCompleted(specialist="test-runner", completion=completion, bundle=bundle)
        )
        return self.tell(workflow, ran(state, "recheck", 2, failed=False))

    def pushed(self, workflow: str) -> str:
        return push_branch(self.store, self.engine.state(workflow), self.cache)

    def branch(self) -> str:
        return git(self.remote, "rev-parse", "fixloop/47")


def ran(state: State, step: str, number: int, *, failed: bool) -> RunFinished:
    return RunFinished.model_validate(
        {
            "step": step,
            "specialist": "test-runner",
            "iteration": number,
            "outcome": "failed" if failed else "passed",
            "tree": state.tree,
            "failures": (Failure(name="a test"),) if failed else (),
        }
    )


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return Deployment(tmp_path)


def test_a_workflow_that_is_to_push_does_so_before_it_ends(deployment: Deployment) -> None:
    workflow = deployment.begin()

    state = deployment.fixed(workflow, {"price": "right\n"})
    [ticket] = deployment.steps(workflow)

    assert (state.outcome, ticket.step, ticket.queue) == (None, "push", "fixloop.fix")
    assert following(state, ticket) == []
    branch = deployment.pushed(workflow)
    state = deployment.tell(workflow, BranchPushed(branch=branch))
    assert (state.outcome, state.pushed) == (WorkflowOutcome.SUCCESS, "fixloop/47")
    assert deployment.branch() == state.tip
    assert deployment.steps(workflow) == []
    assert list(remarks(state)) == ["pushed as fixloop/47"]


def test_a_workflow_without_a_push_ends_at_once(deployment: Deployment) -> None:
    workflow = deployment.begin(push=False)

    state = deployment.fixed(workflow, {"price": "right\n"})

    assert state.outcome is WorkflowOutcome.SUCCESS
    assert deployment.steps(workflow) == []


def test_an_unreachable_url_is_tried_three_times_and_the_pass_stands(deployment: Deployment) -> None:
    workflow = deployment.begin()
    deployment.fixed(workflow, {"price": "right\n"})
    delays = []

    for attempt in (1, 2, 3):
        [ticket] = deployment.steps(workflow)
        delays.append(ticket.delay_seconds)
        deployment.tell(workflow, BranchPushed(attempt=attempt, error="nobody answers"))

    state = deployment.engine.state(workflow)
    assert delays == [0.0, 2.0, 4.0]
    assert (state.outcome, state.pushed, state.push_error) == (WorkflowOutcome.SUCCESS, "", "nobody answers")
    assert list(remarks(state)) == ["not pushed: nobody answers; `fixloop push 47` retries"]
    assert next_command(state) == "fixloop push 47"


def test_a_refusal_is_final_until_a_person_tries_again(deployment: Deployment) -> None:
    workflow = deployment.begin()
    deployment.fixed(workflow, {"price": "right\n"})

    state = deployment.tell(workflow, BranchPushed(error="not yours", fatal=True))
    later = deployment.tell(workflow, BranchPushed(branch="fixloop/47", sender="User"))

    assert (state.outcome, state.push_error) == (WorkflowOutcome.SUCCESS, "not yours")
    assert (later.outcome, later.pushed, later.push_error) == (WorkflowOutcome.SUCCESS, "fixloop/47", "")
    assert deployment.store.verify(workflow) == []


def test_a_workflow_that_did_not_pass_pushes_nothing(deployment: Deployment) -> None:
    live, other = deployment.begin(), "main-agent"

    with pytest.raises(Unexpected, match="has no verified branch to push"):
        deployment.tell(live, BranchPushed(branch="fixloop/47"))
    with pytest.raises(WrongParty):
        deployment.tell(live, BranchPushed(branch="fixloop/47", sender=other))
    deployment.tell(live, Cancelled())
    with pytest.raises(Unexpected, match="has no verified branch to push"):
        deployment.tell(live, BranchPushed(branch="fixloop/47", attempt=2))


def test_a_pass_without_a_fix_has_nothing_to_push(deployment: Deployment) -> None:
    workflow = deployment.begin()
    deployment.tell(workflow, ran(deployment.engine.state(workflow), "validate", 1, failed=False))

    assert deployment.pushed(workflow) == ""
    assert deployment.tell(workflow, BranchPushed()).outcome is WorkflowOutcome.SUCCESS
    assert git(deployment.remote, "branch", "--list", "fixloop/*") == ""


def test_the_same_push_twice_changes_nothing_and_a_lost_cache_does_not_matter(deployment: Deployment) -> None:
    workflow = deployment.begin()
    state = deployment.fixed(workflow, {"price": "right\n"})

    deployment.pushed(workflow)
    first = deployment.branch()
    deployment.cache = deployment.cache.with_name("another")
    deployment.pushed(workflow)

    assert first == deployment.branch() == state.tip


def test_commits_of_others_are_never_overwritten(deployment: Deployment) -> None:
    workflow = deployment.begin()
    deployment.fixed(workflow, {"price": "right\n"})
    git(deployment.remote, "checkout", "-q", "-b", "fixloop/47")
    git(deployment.remote, "commit", "-q", "--allow-empty", "-m", "mine")
    theirs = deployment.branch()

    with pytest.raises(RefusedError, match="has commits that are not fixloop's and was left as it is"):
        deployment.pushed(workflow)

    assert deployment.branch() == theirs
    git(deployment.remote, "checkout", "-q", "--detach")
    git(deployment.remote, "branch", "-m", "fixloop/47", "mine")
    assert deployment.pushed(workflow) == "fixloop/47"


def test_a_branch_pushed_by_the_issue_s_earlier_workflow_is_replaced(deployment: Deployment) -> None:
    first = deployment.begin()
    deployment.fixed(first, {"price": "right\n"})
    deployment.tell(first, BranchPushed(branch=deployment.pushed(first)))
    write(deployment.remote, {"stock": "new\n"})
    git(deployment.remote, "add", "-A")
    git(deployment.remote, "commit", "-q", "-m", "more")

    second = deployment.begin(2)
    state = deployment.fixed(second, {"price": "dear\n"})
    deployment.pushed(second)

    assert deployment.branch() == state.tip


def test_the_server_s_own_message_is_in_the_refusal(deployment: Deployment) -> None:
    workflow = deployment.begin()
    deployment.fixed(workflow, {"price": "right\n"})
    hook = deployment.remote / ".git/hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        "#!/bin/sh\necho 'branches need a ticket; see https://bot:s3cret@wiki.example/x' >&2\nexit 1\n"
    )
    hook.chmod(0o755)

    with pytest.raises(RefusedError, match="pre-receive hook declined") as refused:
        deployment.pushed(workflow)

    assert "branches need a ticket; see https://wiki.example/x" in str(refused.value)


def test_a_url_that_does_not_answer_is_an_infrastructure_error(deployment: Deployment) -> None:
    workflow = deployment.begin()
    deployment.fixed(workflow, {"price": "right\n"})
    deployment.remote.rename(deployment.remote.with_name("moved"))

    with pytest.raises(InfrastructureError, match=f"cannot push to {deployment.url}: "):
        deployment.pushed(workflow)


def test_a_repository_submitted_by_path_is_pushed_from_there(deployment: Deployment) -> None:
    snapshot = Snapshot(source="/srv/shop", commit="c", tree="t")
    workflow = deployment.begin()
    state = deployment.engine.state(workflow).model_copy(update={"snapshot": snapshot.model_dump_json()})

    with pytest.raises(RefusedError, match="the branch fixloop/47 is in /srv/shop, push it from there"):
        push_branch(deployment.store, state, deployment.cache)


def test_push_with_a_path_is_refused_before_anything_is_written(deployment: Deployment) -> None:
    feature = Feature(issue=47, repo=str(deployment.remote), push=True)

    with pytest.raises(UsageError, match="is a path, and --push needs a URL"):
        usable(feature)
    with pytest.raises(UsageError, match="is a path, and --push needs a URL"):
        enqueue(deployment.engine, feature, cache=deployment.cache)


def test_a_call_without_push_does_not_join_a_workflow_with_push(deployment: Deployment) -> None:
    write(deployment.remote, {"fixloop.toml": '[specialist.test-runner]\ncommand = "true"\n'})
    git(deployment.remote, "add", "-A")
    git(deployment.remote, "commit", "-q", "-m", "gates")
    feature = Feature(issue=48, repo=deployment.url, ref="main", push=True)
    first = enqueue(deployment.engine, feature, cache=deployment.cache)

    assert first.state.push
    assert enqueue(deployment.engine, feature, cache=deployment.cache).workflow == first.workflow
    with pytest.raises(RefusedError, match="issue 48 is live with --push"):
        enqueue(deployment.engine, feature.model_copy(update={"push": False}), cache=deployment.cache)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("fatal: 'https://bot:s3cret@host/a.git' not found", "fatal: 'https://host/a.git' not found"),
        ("ssh://git@host/a and https://t0ken@host/b", "ssh://host/a and https://host/b"),
        ("https://host/a@b", "https://host/a@b"),
        ("mail me@host", "mail me@host"),
    ],
)
def test_users_and_passwords_are_removed_from_urls(text: str, shown: str) -> None:
    assert without_userinfo(text) == shown


def test_an_ended_workflow_is_changed_only_by_the_push_of_its_branch(deployment: Deployment) -> None:
    workflow = deployment.begin(push=False)
    ended = deployment.fixed(workflow, {"price": "right\n"})
    assert ended.outcome is WorkflowOutcome.SUCCESS

    with pytest.raises(Unexpected, match="was not pushed"):
        deployment.tell(workflow, BranchPushed(branch="", error=""))

    after = deployment.tell(workflow, BranchPushed(branch=deployment.pushed(workflow)))
    assert (after.pushed, after.outcome) == ("fixloop/47", WorkflowOutcome.SUCCESS)


@pytest.mark.parametrize(("is_url", "command"), [(True, "fixloop push 47"), (False, "fixloop apply 47")])
def test_the_suggested_next_command_fits_the_kind_of_source(is_url: bool, command: str) -> None:
    facts: dict[str, object] = {"issue": 47, "outcome": "success", "tip": "b", "pushed": "", "push_error": ""}
    snapshot = json.dumps({"commit": "a", "is_url": is_url})

    assert way_out(SimpleNamespace(**facts, snapshot=snapshot)) == command
    assert way_out(SimpleNamespace(**facts | {"pushed": "fixloop/47"}, snapshot=snapshot)) == ""
