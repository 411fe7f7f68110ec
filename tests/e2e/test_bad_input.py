"""What a user sees if the call, the configuration, the server or a check is wrong: one sentence, one exit code."""

import signal
from pathlib import Path

import pytest

from tests.fixtures.patience import slack
from tests.fixtures.project import CHECK, RIGHT, TOML, Host, Project, Told, processes_of, until
from tests.fixtures.redis_server import RedisServer

pytestmark = pytest.mark.slow

# The answer takes 2 s where Redis is away and 3 s where it is frozen; a busy machine may need as long again.
LONGEST_SECONDS = 6.0


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "shop")


@pytest.fixture(scope="module")
def escalated(host: Host) -> Project:
    """Issue 1 waits for a decision on one failure; issue 2 passed."""
    project = host.project("escalated", toml="max_iterations = 1\n" + TOML)
    assert project.submit().code == 3
    project.write("calc.py", RIGHT)
    assert project.submit(issue=2).code == 0
    return project


def is_one_sentence(told: Told, code: int, *parts: str) -> None:
    """Fails the test unless stderr is one sentence with all `parts`, and the exit code is `code`."""
    sentence = told.refusal
    assert told.code == code, sentence
    for part in parts:
        assert part in sentence
    assert "Traceback" not in told.err


def nothing_was_stored(project: Project) -> bool:
    """True if a refused call made neither a workflow nor a ref."""
    refs = project.git("for-each-ref", "refs/fixloop") if project.is_git else ""
    return refs == "" and not (project.folder / ".fixloop").exists()


def test_a_missing_path_is_refused(project: Project) -> None:
    is_one_sentence(project.fixloop("run", "nowhere"), 2, "nowhere")


def test_a_path_to_a_file_is_refused(project: Project) -> None:
    is_one_sentence(project.fixloop("run", "calc.py"), 2, "calc.py", "folder")


def test_a_file_is_refused_as_the_repository_to_enqueue(project: Project) -> None:
    is_one_sentence(project.fixloop("enqueue", "--issue", "1", "--repo", "calc.py"), 2, "calc.py")


def test_an_unknown_specialist_is_refused(project: Project) -> None:
    told = project.run("--only", "test-runer")

    is_one_sentence(told, 2, "test-runer", "did you mean 'test-runner'?")
    assert nothing_was_stored(project)


@pytest.mark.parametrize(
    ("toml", "parts"),
    [
        ('[specialist.tests]\ncommand = "true"\n', ("fixloop.toml", "unknown specialist 'tests'")),
        ("max_iteration = 3\n" + TOML, ("fixloop.toml", "'max_iteration'", "did you mean 'max_iterations'?")),
        (TOML + "timeout = 3\n", ("fixloop.toml", "'timeout'", "test-runner")),
        ("max_iterations = 0\n" + TOML, ("max_iterations",)),
        (TOML + "[fixer\n", ("fixloop.toml is not valid TOML",)),
        ('[fixer]\ncommand = "sh -c \'"\n' + TOML, ("[fixer]", "command")),
    ],
)
def test_an_invalid_configuration_is_refused(project: Project, toml: str, parts: tuple[str, ...]) -> None:
    project.write("fixloop.toml", toml)

    told = project.run()

    is_one_sentence(told, 2, *parts)
    assert nothing_was_stored(project)


def test_two_configurations_are_refused(project: Project) -> None:
    project.write("pyproject.toml", "[tool.fixloop]\nmax_iterations = 3\n")

    is_one_sentence(project.run(), 2, "both fixloop.toml and [tool.fixloop]")


def test_a_project_with_nothing_to_check_is_refused(project: Project) -> None:
    for name in ("fixloop.toml", "test_calc.py"):
        project.write(name, "")

    is_one_sentence(project.run(), 2, "nothing to check", "fixloop init")


def test_a_broken_repository_is_refused(project: Project) -> None:
    project.write(".git/HEAD", "nonsense\n")

    is_one_sentence(project.run(), 2, "repository")


@pytest.mark.parametrize("issue", ["0", "-3", "x", "99999999999999999999"])
def test_an_issue_that_is_no_number_is_refused(project: Project, issue: str) -> None:
    is_one_sentence(project.fixloop("run", ".", "--issue", issue), 2, "issue")


@pytest.mark.parametrize(
    "command",
    [
        ("status", "9"),
        ("log", "9"),
        ("decide", "9", "skip"),
        ("cancel", "9"),
        ("fixed", "9"),
        ("apply", "9"),
        ("audit", "verify", "9"),
    ],
)
def test_an_issue_that_was_never_submitted_is_refused(escalated: Project, command: tuple[str, ...]) -> None:
    is_one_sentence(escalated.fixloop(*command), 2, "issue 9")


def test_an_unreachable_redis_is_one_sentence(project: Project) -> None:
    told = project.run(FIXLOOP_STATE_URL="redis://localhost:1/0")

    is_one_sentence(told, 4, "cannot reach Redis at redis://localhost:1/0", "refused")
    assert told.seconds < slack(LONGEST_SECONDS)


def test_a_frozen_redis_is_one_sentence(project: Project) -> None:
    server = RedisServer().start()
    try:
        server.signal(signal.SIGSTOP)
        told = project.run(FIXLOOP_STATE_URL=server.url)
    finally:
        server.signal(signal.SIGCONT)
        server.end()

    is_one_sentence(told, 4, "cannot reach Redis", "no answer")
    assert told.seconds < slack(LONGEST_SECONDS)


@pytest.mark.parametrize(
    "url", ["http://me:secret@localhost", "localhost:6379", "redis://me:secret@localhost:port/0"]
)
def test_an_invalid_url_is_refused(project: Project, url: str) -> None:
    told = project.run(FIXLOOP_STATE_URL=url)

    is_one_sentence(told, 2, "FIXLOOP_STATE_URL")
    assert "secret" not in told.err


def test_an_unwritable_cache_is_refused(project: Project) -> None:
    told = project.run(FIXLOOP_CACHE_DIR="/proc/nowhere")

    is_one_sentence(told, 4, "/proc/nowhere")


@pytest.mark.parametrize("command", ["no-such-agent --yes", "./no-such-script", "./calc.py", "/etc"])
def test_a_fixer_that_is_not_installed_is_reported(project: Project, command: str) -> None:
    told = project.run("--fixer", command)

    is_one_sentence(told, 2, f"{command.split()[0]!r}", "not found")
    assert nothing_was_stored(project)


def test_a_decision_without_an_escalation_is_refused(escalated: Project) -> None:
    is_one_sentence(escalated.fixloop("decide", "2", "skip"), 2, "ended already (success)")
    is_one_sentence(escalated.fixloop("fixed", "2"), 2, "awaits no fix")
    is_one_sentence(escalated.fixloop("ack", "2"), 2, "ended already")
    is_one_sentence(escalated.fixloop("cancel", "2"), 2, "ended already")


def test_an_unknown_decision_is_refused(escalated: Project) -> None:
    is_one_sentence(escalated.fixloop("decide", "1", "ignore"), 2, "'ignore'", "manual-fix")
    is_one_sentence(escalated.fixloop("decide", "1", "skip", "--minutes", "3"), 2, "--minutes", "extend")


def test_a_second_decision_is_refused(host: Host) -> None:
    project = host.project("decided", toml="max_iterations = 1\n" + TOML)
    assert project.submit().code == 3
    assert project.fixloop("decide", "1", "manual-fix").code == 0

    told = project.fixloop("decide", "1", "skip")

    is_one_sentence(told, 2, "decided already", "manual-fix")
    assert project.status()["paused"]


@pytest.mark.proves("A72", "K20")
def test_a_check_that_is_not_installed_escalates_and_continues_after_a_manual_fix(tmp_path: Path) -> None:
    project = Project(
        tmp_path / "shop",
        toml=TOML.replace("python check.py", "sh run.sh"),
        calc="def add(a, b):\n    return a + b\n",
        files={"run.sh": "exec no-such-tool\n"},
    )

    told = project.run()

    assert told.code == 3
    assert "exit code 127" in told.out
    assert "fixloop decide 1 manual-fix" in told.out
    log = project.log()
    assert ("attempt 1: " in log, "attempt 2: " in log) == (True, False)
    assert "ERR-1-specialist-failure-" in project.fixloop("log", "1", "--json").out
    [item] = project.fixloop("inbox", "--json").document["items"]
    assert item["target"] == "@feature-implementer-main"
    project.write("fixloop.toml", TOML)
    decided = project.fixloop("decide", "1", "manual-fix")
    assert decided.code == 0, decided.err
    resumed = project.fixloop("resume", "1")
    assert resumed.code == 0, resumed.err
    assert "passed" in resumed.out
    assert "configuration re-read" in project.log()


@pytest.fixture(scope="module")
def unfit(host: Host) -> dict[str, Project]:
    """A project for each way in which a check can prove nothing, all submitted at once."""
    made = {name: host.project(name, files={"check.py": text}) for name, text in UNFIT.items()}
    for project in made.values():
        assert project.fixloop("enqueue", "--issue", "1").code == 0
    return made


UNFIT = {
    "silent": "import sys; sys.exit(0)\n",
    "huge": "import sys; f = open(sys.argv[1], 'w'); f.truncate(100_000_000)\n",
    "bomb": (
        "import sys\n"
        "text = '<!DOCTYPE b [<!ENTITY a0 \"ha\">'\n"
        "text += ''.join('<!ENTITY a%d \"%s\">' % (n, ('&a%d;' % (n - 1)) * 20) for n in range(1, 12))\n"
        'text += \']><testsuite name="s" tests="1"><testcase name="&a11;"/></testsuite>\'\n'
        "open(sys.argv[1], 'w').write(text)\n"
    ),
    "pipe": "import os, sys; os.mkfifo(sys.argv[1])\n",
    "changing": CHECK.replace(
        "import sys, test_calc", "import sys, test_calc; open('calc.py', 'a').write('#')"
    ),
    "unexplained": CHECK.replace("sys.exit(wrong > 0)", "sys.exit(1)").replace("test()\n", "pass\n"),
    "crashing": "import os; os.abort()\n",
    "binary": (
        "import os, sys\n"
        "os.write(1, bytes(range(256)) * 4000)\n"
        "open(sys.argv[1], 'wb').write(bytes(range(256)))\n"
    ),
}


@pytest.mark.proves("K38", "A72")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("silent", "is missing; the command did not write it"),
        ("huge", "limit"),
        ("bomb", "junit report"),
        ("pipe", "is a pipe, not a regular file"),
        ("changing", "changed tracked files (calc.py)"),
        ("unexplained", "exit code 1, which no result in its report explains"),
        ("crashing", "SIGABRT"),
        ("binary", "junit report"),
    ],
)
def test_a_check_that_proves_nothing_never_passes(unfit: dict[str, Project], name: str, reason: str) -> None:
    assert unfit[name].fixloop("watch", "1").code == 3

    status = unfit[name].status()
    assert status["outcome"] is None
    assert status["status"] == "ESCALATED"
    assert status["specialists"][2]["evidence"] == []
    log = unfit[name].log()
    assert reason in log
    assert "Specialist error" in log
    assert "Traceback" not in log


@pytest.mark.proves("A56")
def test_a_check_that_hangs_is_reminded_and_cancel_ends_it_with_all_it_started(host: Host) -> None:
    hanging = "import subprocess; subprocess.run(['sleep', '617'])\n"
    limit = "timeout_minutes = 0.02\n"
    project = host.project("hanging", toml=TOML + limit, files={"check.py": hanging})

    def is_running() -> bool:
        return any("sleep 617" in each for each in processes_of(host.folder))

    project.fixloop("enqueue", "--issue", "1")
    until(lambda: "TIMEOUT-1-specialist-validation-" in project.log(), what="the reminder")
    until(is_running, what="the check")

    assert project.fixloop("cancel", "1").code == 0

    until(lambda: not is_running(), what="the end of the check")
    assert project.fixloop("watch", "1").code == 1
