"""Calls from a program that has only celery: one message with a name and plain values."""

import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fixloop.chat.events import ChatRead
from fixloop.chat.validation import examine_all
from fixloop.engine.hints import START_TASK, producer, send_hint
from fixloop.repository.identity import project_of
from fixloop.servers.broker_url import celery_url
from tests.e2e.chat_defects import ERRORS, TITLE, WARNED, make_chats
from tests.fixtures.chat_stage import ARCHITECT, Stage, body
from tests.fixtures.deployment import Deployment, deployed

pytestmark = pytest.mark.slow

CALL = """
import sys
sys.path.append(sys.argv[1])
from celery import Celery
app = Celery(broker=sys.argv[2])
for _ in range({times}):
    app.send_task({task!r}, kwargs={kwargs!r})
assert not [name for name in sys.modules if name.partition(".")[0] == "fixloop"]
"""
CONFIGURATION = """
[fixer]
command = ["sh", "-c", "echo ready > state.txt"]

[[specialist.code-quality.check]]
name = "state"
command = "grep -q ready state.txt"
"""


@pytest.fixture(scope="module")
def deployment(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("door")
    with deployed(redis_url, folder, FIXLOOP_CREW="workers.commands.crew:commands") as running:
        yield running


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A real repository whose one check fails until its fixer has run."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "fixloop.toml").write_text(CONFIGURATION)
    (folder / "state.txt").write_text("broken\n")
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", ".")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "-m", "begin")
    return folder


@pytest.mark.proves("R2")
def test_a_caller_with_only_celery_starts_a_workflow(deployment: Deployment, repository: Path) -> None:
    call(deployment, repository.parent, issue=7, repo=str(repository))

    found = started(deployment, repository, 7)
    deployment.finished(found)
    state = deployment.state(found)
    assert (state.outcome, state.verdict) == ("success", "passed")
    assert [line.message_id for line in deployment.messages(found)] == [
        "DETECT-7-code-quality-1",
        "VFR-7-code-quality-1",
        "FIXDONE-7-1",
        "REVAL-7-code-quality-2",
        "REVALRES-7-code-quality-2",
        "SUCCESS-7-code-quality-2",
    ]
    assert deployment.store.verify(found) == []
    assert (repository / "state.txt").read_text() == "broken\n"
    assert git(repository, "show", "fixloop/7:state.txt") == "ready\n"


@pytest.mark.proves("R2", "R8")
def test_the_same_call_twice_is_one_workflow(deployment: Deployment, repository: Path) -> None:
    call(deployment, repository.parent, times=2, issue=8, repo=str(repository))

    found = started(deployment, repository, 8)
    deployment.finished(found)
    deployment.until(lambda: deployment.broker_holds() == [])
    assert deployment.store.latest(project_of(repository).hash8, 8) == found
    assert sum(event["kind"] == "workflow-started" for event in deployment.events(found)) == 1


@pytest.mark.parametrize(
    ("kwargs", "sentence"),
    [
        ({"issue": 9, "repo": "/nowhere/at/all"}, "no such path: /nowhere/at/all"),
        ({"issue": 9, "repos": "/a"}, "repos: Extra inputs are not permitted"),
        ({"issue": "many", "repo": "/a"}, "issue: Input should be a valid integer"),
        ({"issue": 9, "repo": "a"}, "repo: Value error, a is neither an absolute path nor a URL"),
        ({"issue": 9}, "repo: Field required"),
        ({"issue": 9, "repo": "/a", "queue": "fixloop.validation"}, "queue: Input should be ''"),
        ({"issue": 9, "repo": "/a", "runs_here": True}, "runs_here: Input should be False"),
    ],
)
def test_an_invalid_call_is_one_sentence_in_the_log(
    deployment: Deployment, tmp_path: Path, kwargs: dict[str, Any], sentence: str
) -> None:
    call(deployment, tmp_path, **kwargs)

    deployment.until(lambda: sentence in deployment.log())
    assert "Traceback" not in deployment.log()
    assert deployment.store.search(9) == []


@pytest.mark.proves("S29", "E33")
def test_a_caller_with_only_celery_validates_chats(deployment: Deployment, tmp_path: Path) -> None:
    chats = tmp_path / "chats"
    make_chats(chats)
    found = [str(finding) for finding in examine_all([chats], title=TITLE).findings]

    call(deployment, tmp_path, task="fixloop.chat.validate", path=str(chats), title=TITLE)

    deployment.until(lambda: all(finding in deployment.log() for finding in found))
    assert len(found) == len(ERRORS) + 2 * len(WARNED) + 1


@pytest.mark.proves("R2", "R8")
def test_a_caller_with_only_celery_posts_to_a_chat_once(deployment: Deployment, tmp_path: Path) -> None:
    stage = Stage(tmp_path).open()
    stage.let(ChatRead(ARCHITECT))
    said: dict[str, Any] = {"by": "architect", "to": "engineer", "purpose": "Work", "body": body(ARCHITECT)}

    call(deployment, tmp_path, task="fixloop.chat.post", times=2, path=str(stage.path), seq=1, **said)
    call(
        deployment,
        tmp_path,
        task="fixloop.chat.post",
        path=str(stage.path),
        seq=1,
        **said | {"purpose": "More"},
    )

    deployment.until(lambda: "nothing was posted: number 001 is taken" in deployment.log())
    assert [name for name in stage.files() if name[0].isdigit()] == ["001-to-engineer.md"]


def call(
    deployment: Deployment, folder: Path, *, task: str = START_TASK, times: int = 1, **kwargs: Any
) -> None:
    """Send it from a Python without fixloop: no site, so no editable install either."""
    words = [sysconfig.get_path("purelib"), celery_url(deployment.url)]
    program = CALL.format(task=task, kwargs=kwargs, times=times)
    subprocess.run([sys.executable, "-S", "-c", program, *words], cwd=folder, check=True, timeout=60)


def started(deployment: Deployment, repository: Path, issue: int) -> str:
    """The workflow, as soon as it exists."""
    project = project_of(repository).hash8
    deployment.until(lambda: deployment.store.latest(project, issue) is not None)
    found = deployment.store.latest(project, issue)
    assert found is not None
    return found


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.mark.proves("R12")
def test_a_forged_message_moves_no_step_to_a_queue_that_is_not_its_own(deployment: Deployment) -> None:
    own = deployment.begin("-", hinted=False, queue="fixloop.run-of-a-person")
    found = deployment.store.read(own.workflow)
    assert found is not None
    ticket = found.tickets[0].ticket
    with producer(deployment.broker) as app:
        send_hint(app, ticket.model_copy(update={"queue": "fixloop.test-runner"}), "validation")

    deployment.until(lambda: "is not for this worker" in deployment.log(), about=own.workflow)
    found = deployment.store.read(own.workflow)
    assert found is not None
    assert (found.version, [each.ticket.id for each in found.tickets]) == (1, [ticket.id])
