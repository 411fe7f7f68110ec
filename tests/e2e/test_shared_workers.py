"""A shared deployment: workers as separate processes on one Redis, callers elsewhere, and Flower."""

import base64
import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.ports import free_port
from tests.fixtures.project import (
    CALC,
    MEND,
    RIGHT,
    TOML,
    Host,
    Project,
    environment,
    processes_of,
    started,
    until,
    worker,
)
from tests.fixtures.redis_server import RedisServer

pytestmark = pytest.mark.slow

FIXER = f'[fixer]\ncommand = "{MEND}"\n'
CALCS = {"first": CALC, "second": RIGHT, "third": CALC, "fourth": RIGHT, "fifth": CALC}


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """Two workers of one process each on one Redis, and Flower."""
    folder = tmp_path_factory.mktemp("farm")
    server = RedisServer().start()
    try:
        with (
            worker(folder / "home", server.url, "-c", "1", log=folder / "worker-1.log"),
            worker(folder / "home", server.url, "-c", "1", log=folder / "worker-2.log"),
        ):
            yield Host(folder, server.url)
    finally:
        server.end()


@pytest.fixture(scope="module")
def flower(farm: Host) -> Iterator[int]:
    """Flower's port."""
    port = free_port()
    variables = environment(
        farm.folder / "home", {"FIXLOOP_STATE_URL": farm.url, "FIXLOOP_FLOWER_AUTH": "me:secret"}
    )
    with started(
        "flower", "--port", str(port), at=farm.folder, variables=variables, log=farm.folder / "flower.log"
    ):
        until(lambda: answer_of(port, "/healthcheck") == 200, what="Flower")
        yield port


@pytest.fixture(scope="module")
def features(farm: Host, flower: int) -> list[Project]:
    """Five features in five repositories, submitted at once, all ended."""
    made = [farm.project(name, toml=FIXER + TOML, calc=calc) for name, calc in CALCS.items()]
    for project in made:
        assert project.fixloop("enqueue", "--issue", "7").code == 0
    for project in made:
        assert project.fixloop("watch", "7").code == 0
    return made


def answer_of(port: int, path: str, login: str = "") -> int:
    """The status of an HTTP answer, 0 where there is none."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
    if login:
        request.add_header("Authorization", f"Basic {base64.b64encode(login.encode()).decode()}")
    try:
        with urllib.request.urlopen(request, timeout=90) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def tasks_of(port: int) -> list[dict[str, Any]]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/tasks")
    request.add_header("Authorization", f"Basic {base64.b64encode(b'me:secret').decode()}")
    with urllib.request.urlopen(request, timeout=90) as answer:
        return list(json.load(answer).values())


def test_five_features_at_once_all_end(features: list[Project]) -> None:
    outcomes = {project.folder.name: project.status(7) for project in features}

    assert {each["outcome"] for each in outcomes.values()} == {"success"}
    assert {name: each["iteration"] for name, each in outcomes.items()} == {
        name: 1 if calc == RIGHT else 2 for name, calc in CALCS.items()
    }


def test_every_user_sees_all_workflows_from_any_directory(features: list[Project], tmp_path: Path) -> None:
    listed = features[0].fixloop("status", "--json", at=tmp_path).document["workflows"]

    assert {each["name"] for each in listed} >= set(CALCS)
    workflow = features[0].status(7)["workflow_id"]
    assert features[0].fixloop("status", workflow, "--json", at=tmp_path).document["name"] == "first"
    assert features[0].fixloop("watch", workflow, at=tmp_path).code == 0
    assert "nothing is waiting for you" in features[0].fixloop("inbox", at=tmp_path).err


def test_a_number_that_several_projects_have_is_refused_with_the_candidates(
    features: list[Project], tmp_path: Path
) -> None:
    told = features[0].fixloop("status", "7", at=tmp_path)

    assert told.code == 2
    assert "issue 7 is in 5 projects" in told.refusal
    for project in features:
        assert str(project.folder) in told.refusal
    named = features[0].fixloop("status", "7", "--json", "--project", str(features[1].folder), at=tmp_path)
    assert named.document["name"] == "second"


def test_the_same_call_twice_is_one_workflow(farm: Host) -> None:
    project = farm.project("twice")

    first, second = (project.fixloop("enqueue", "--issue", "3") for _ in range(2))

    assert first.out == second.out
    assert "was already submitted" in second.err
    assert project.fixloop("watch", "3").code == 3
    [item] = project.fixloop("inbox", "--json", at=farm.folder).document["items"]
    assert (item["issue"], item["waits_for"]) == (3, "fix")


def test_several_callers_at_once_get_one_workflow(farm: Host) -> None:
    project = farm.project("crowded")
    callers = [project.start("enqueue", "--issue", "3") for _ in range(4)]

    told = [caller.communicate(timeout=90) for caller in callers]

    assert [caller.returncode for caller in callers] == [0] * 4, told
    assert len({out for out, _ in told}) == 1
    assert project.fixloop("watch", "3").code == 3


def test_a_repository_is_taken_from_its_address_at_a_ref(farm: Host, tmp_path: Path) -> None:
    project = farm.project("remote")
    project.git("checkout", "--quiet", "-b", "right")
    project.write("calc.py", RIGHT)
    project.commit()
    project.git("checkout", "--quiet", "main")
    address = f"file://{project.folder}"

    unknown = project.fixloop("enqueue", "--issue", "4", "--repo", address, "--ref", "wrong", at=tmp_path)
    told = project.fixloop("enqueue", "--issue", "4", "--repo", address, "--ref", "right", at=tmp_path)

    assert "wrong" in unknown.refusal
    assert told.code == 0, told.err
    assert project.fixloop("watch", told.out.strip(), at=tmp_path).code == 0


def test_the_verified_branch_is_pushed_to_the_address_and_a_later_command_repairs_it(
    farm: Host, tmp_path: Path
) -> None:
    project = farm.project("pushing", toml=FIXER + TOML)
    address = f"file://{project.folder}"

    assert "--apply needs a checkout" in project.fixloop("run", address, "--apply", at=tmp_path).refusal
    told = project.fixloop("enqueue", "--issue", "5", "--repo", address, "--push", at=tmp_path)
    watched = project.fixloop("watch", told.out.strip(), at=tmp_path)

    assert (watched.code, "pushed as fixloop/5" in watched.out) == (0, True), watched.out + watched.err
    assert project.git("show", "fixloop/5:calc.py") == RIGHT
    project.git("branch", "--delete", "--force", "fixloop/5")
    assert project.fixloop("push", told.out.strip(), at=tmp_path).out == "fixloop/5\n"
    assert project.git("show", "fixloop/5:calc.py") == RIGHT
    assert project.git("show", "main:calc.py") == CALC


@pytest.mark.proves("R12")
def test_flower_shows_tasks_with_readable_names_and_arguments(features: list[Project], flower: int) -> None:
    wanted = {
        "fixloop.validation.validate",
        "fixloop.validation.report",
        "fixloop.validation.fix",
        "fixloop.validation.recheck",
    }
    tasks = until(lambda: wanted <= {task["name"] for task in tasks_of(flower)} and tasks_of(flower))
    assert tasks

    shown = [task["kwargs"] for task in tasks if task["name"] == "fixloop.validation.recheck"]

    assert any("'issue': 7" in kwargs for kwargs in shown)
    assert all("'specialist': 'test-runner'" in kwargs and "'iteration': 2" in kwargs for kwargs in shown)


@pytest.mark.parametrize("path", ["/", "/api/tasks", "/tasks", "/workers"])
def test_flower_refuses_access_without_the_password(flower: int, path: str) -> None:
    assert answer_of(flower, path) == 401
    assert answer_of(flower, path, "me:wrong") == 401
    assert answer_of(flower, path, "me:secret") == 200


def test_a_worker_answers_health_queries(farm: Host, tmp_path: Path) -> None:
    project = farm.project("asking")

    def well() -> int:
        """How many workers say so; one that was started only just now is not known yet, or does not serve."""
        told = project.fixloop("worker", "--check")
        return told.err.count("is well: supervisor") if told.code == 0 else 0

    until(lambda: well() == 2, what="two well workers")
    server = RedisServer().start()
    try:
        alone = project.fixloop("worker", "--check", FIXLOOP_STATE_URL=server.url)
    finally:
        server.end()
    assert alone.code == 1
    assert "no worker on" in alone.refusal


def test_sigterm_in_the_middle_of_a_check_hands_it_to_the_next_worker(tmp_path: Path) -> None:
    """No attempt is spent, and nothing has to wait for a lease to expire."""
    slow = "import os, time\nif not os.path.exists(os.environ['HOME'] + '/go'): time.sleep(60)\n"
    server = RedisServer().start()
    project = Project(tmp_path / "shop", calc=RIGHT, variables={"FIXLOOP_STATE_URL": server.url})
    project.write("check.py", slow + project.read("check.py"))
    try:
        with worker(project.home, server.url, "-c", "1", log=tmp_path / "log") as process:
            project.fixloop("enqueue", "--issue", "1")
            until(lambda: any("check.py" in each for each in processes_of(tmp_path)), what="the check")
            process.send_signal(signal.SIGTERM)
            assert process.wait(90) == 0
        until(lambda: not processes_of(tmp_path), what="the end of its processes")
        assert "Traceback" not in (tmp_path / "log").read_text()
        (project.home / "go").touch()
        with worker(project.home, server.url, "-c", "1", log=tmp_path / "log"):
            assert project.fixloop("watch", "1").code == 0
        assert "attempt 2" not in project.log()
    finally:
        server.end()


PROGRAM = """
import fixloop
first = fixloop.enqueue(issue=9, repo={folder!r}, name="From Python")
again = fixloop.enqueue(issue=9, repo={folder!r}, name="From Python")
found = fixloop.status(9, directory={folder!r})
assert isinstance(found, fixloop.FeatureStatus)
assert first.workflow_id == again.workflow_id == found.workflow_id
print(found.name, found.issue, found.specialists[2].name, found.specialists[2].max_iterations)
try:
    fixloop.status(10, directory={folder!r})
except Exception as error:
    print(type(error).__name__, error)
"""


def test_a_feature_is_submitted_and_asked_for_from_python(farm: Host, tmp_path: Path) -> None:
    # It fails and waits for a fix: however quick the workers are, it is live when it is submitted again.
    project = farm.project("called")

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(folder=str(project.folder))],
        cwd=tmp_path,
        env=environment(project.home, project.variables),
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "From Python 9 test-runner 5", done.stderr
    assert done.stdout.splitlines()[1].startswith("UsageError no workflow of issue 10")
    assert project.fixloop("watch", "9").code == 3


def test_the_python_calls_are_typed(tmp_path: Path) -> None:
    program = tmp_path / "caller.py"
    program.write_text(
        "import fixloop\n"
        "found = fixloop.enqueue(issue=9, repo='.')\n"
        "reveal_type(found.specialists[0].iteration)\n"
        "reveal_type(fixloop.status(9).verdict)\n"
        "fixloop.enqueue(isue=9)\n"
    )

    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", str(program)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )

    assert 'Revealed type is "builtins.int"' in done.stdout or 'Revealed type is "int"' in done.stdout, (
        done.stdout
    )
    assert "str | None" in done.stdout
    assert 'Unexpected keyword argument "isue"' in done.stdout
    assert "Found 1 error" in done.stdout


START = """
import sys
from celery import Celery
app = Celery(broker=sys.argv[1])
app.send_task("fixloop.validation.start", kwargs={"issue": 11, "repo": sys.argv[2]})
"""


def test_a_client_with_only_celery_submits_a_feature(farm: Host, tmp_path: Path) -> None:
    project = farm.project("celery-only", calc=RIGHT)
    broker = farm.url.replace("unix://", "redis+socket://")

    subprocess.run(
        [sys.executable, "-c", START, broker, str(project.folder)],
        cwd=tmp_path,
        env=environment(project.home),
        check=True,
    )

    until(lambda: project.fixloop("status", "11").code == 0, what="the workflow")
    assert project.fixloop("watch", "11").code == 0
