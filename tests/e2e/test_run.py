"""A whole run on a small project: what a user types, its result, and what is left behind."""

import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest
import redis

from fixloop.store.packing import inflate
from tests.fixtures.project import (
    CALC,
    FIXLOOP,
    MEND,
    RIGHT,
    SECRETS,
    TOML,
    Host,
    Project,
    environment,
    processes_of,
    until,
)

pytestmark = pytest.mark.slow

FIXER = f"[fixer]\ncommand = \"sh -c '{MEND}'\"\n"


def offered(told: str) -> Path:
    """The directory that a message offers to work in."""
    found = re.search(r"work in (/\S+), then", told)
    assert found is not None, told
    return Path(found[1])


def everything_in(project: Project) -> dict[str, object]:
    """HEAD, index, status and files: what a run must leave as it was."""
    files = [path for path in sorted(project.folder.rglob("*")) if path.is_file()]
    inside = [
        path for path in files if not {".git", ".fixloop"} & set(path.relative_to(project.folder).parts)
    ]
    return {
        "HEAD": project.read(".git/HEAD"),
        "index": (project.folder / ".git/index").read_bytes(),
        "config": project.read(".git/config"),
        "refs": project.git(
            "for-each-ref", "--format=%(refname)", "refs/heads/main", "refs/tags", "refs/stash"
        ),
        "status": project.git("status", "--porcelain"),
        "files": {str(path): path.read_bytes() for path in inside},
    }


# With `run`, its own worker and the embedded Redis.


@pytest.mark.proves("A10")
def test_a_correct_project_passes_at_once_and_leaves_only_its_records(tmp_path: Path) -> None:
    project = Project(tmp_path / "shop", calc=RIGHT)
    before = everything_in(project)

    told = project.fixloop("run")

    assert told.code == 0, told.err
    assert told.err.startswith("issue 1: shop")
    assert "#1 shop: passed (1 specialist, 1 run, tree " in told.out
    assert "fixloop apply" not in told.err
    assert everything_in(project) == before
    refs = project.git("for-each-ref", "--format=%(refname)").split()
    assert [ref for ref in refs if ref != "refs/heads/main"] == ["refs/fixloop/1/base"]
    until(lambda: not processes_of(tmp_path), what="the end of every process")


def test_a_failing_project_is_fixed_passes_and_apply_updates_the_checkout(tmp_path: Path) -> None:
    project = Project(tmp_path / "shop", toml=FIXER + TOML)
    project.write("calc.py", CALC + "# not committed yet\n")
    project.write("notes.txt", "untracked\n")
    project.write("staged.txt", "staged\n")
    project.git("add", "staged.txt")
    head, index = project.git("rev-parse", "HEAD"), (project.folder / ".git/index").read_bytes()

    told = project.fixloop("run", "--apply", "--name", "Adding")

    assert told.code == 0, told.err
    assert "#1 Adding: passed" in told.out
    assert told.out.splitlines()[-1] == "calc.py"
    assert project.read("calc.py") == RIGHT + "# not committed yet\n"
    assert project.git("rev-parse", "HEAD") == head
    assert (project.folder / ".git/index").read_bytes() == index
    assert project.git("status", "--porcelain").split() == [
        "M",
        "calc.py",
        "A",
        "staged.txt",
        "??",
        "notes.txt",
    ]
    assert "+    return a + b" in project.git("show", "fixloop/1")
    differs = project.fixloop("report", "1", "--diff").out
    assert differs == project.git("diff", "--no-color", "refs/fixloop/1/base", "refs/fixloop/1/tip")
    assert "return a + b" in project.fixloop("report", "1", "--format", "html", "--output", "-").out
    assert project.git("show", "fixloop/1:notes.txt") == "untracked\n"
    again = project.fixloop("apply", "1")
    assert again.code == 0
    assert "nothing to change" in again.err


@pytest.mark.proves("K31")
def test_without_a_fixer_a_run_ends_at_once_and_continues_after_a_person_s_fix(tmp_path: Path) -> None:
    project = Project(tmp_path / "shop", is_git=False)

    told = project.run()

    assert told.code == 3
    assert "waits for a fix of 1 failure in test-runner run 1/5" in told.out
    assert "1 + 2 is not 3" in told.out
    acknowledged = project.fixloop("ack", "1")
    assert acknowledged.code == 0, acknowledged.err
    assert "FIXREQ-1-1" in acknowledged.out
    place = offered(acknowledged.err)
    (place / "calc.py").write_text(RIGHT)
    fixed = project.fixloop("fixed", "1")
    assert (fixed.code, fixed.out) == (0, "calc.py\n"), fixed.err
    resumed = project.fixloop("resume", "1")
    assert resumed.code == 0, resumed.err
    assert "passed" in resumed.out
    assert project.read("calc.py") == CALC
    assert project.fixloop("apply", "1").out == "calc.py\n"
    assert project.read("calc.py") == RIGHT


# With the shared worker.


def test_a_subdirectory_is_where_commands_run(host: Host) -> None:
    project = host.project("mono", calc=RIGHT, files={"api/readme.txt": "one of several\n"})
    for name in ("calc.py", "test_calc.py", "check.py", "fixloop.toml"):
        (project.folder / name).rename(project.folder / "api" / name)
    project.write("calc.py", "raise SystemExit('the wrong calc.py')\n")
    project.commit()

    told = project.submit("--repo", "api")

    assert told.code == 0, told.out + told.err
    assert project.status(at=project.folder / "api")["verdict"] == "passed"


def test_only_runs_one_specialist(host: Host) -> None:
    project = host.project("only", toml=TOML + '[specialist.security]\ncommand = "true"\n')

    told = project.submit("--only", "security")

    assert told.code == 0, told.out + told.err
    assert [each["name"] for each in project.status()["specialists"] if each["applicable"]] == ["security"]


@pytest.mark.parametrize("asked", [("SHOP_TOKEN", "OTHER_TOKEN"), ("OTHER_TOKEN",), ()])
def test_a_check_sees_a_variable_that_the_project_requests_and_the_operator_allows(
    host: Host, asked: tuple[str, ...]
) -> None:
    seen = [name for name in asked if name == "SHOP_TOKEN"]
    project = host.project(
        f"asking-{len(asked)}",
        toml=f'[specialist.security]\ncommand = "python env.py"\nenv = {json.dumps(asked)}\n',
        files={
            "env.py": f"import os, sys; sys.exit([name for name in os.environ if 'TOKEN' in name] != {seen})\n"
        },
    )

    assert project.submit().code == 0


@pytest.mark.proves("A33")
def test_a_fix_in_the_checkout_is_taken_with_here(host: Host) -> None:
    project = host.project("here")
    assert project.submit().code == 3
    project.write("calc.py", RIGHT)

    fixed = project.fixloop("fixed", "1", "--here")

    assert (fixed.code, fixed.out) == (0, "calc.py\n"), fixed.err
    assert project.fixloop("watch", "1").code == 0
    assert "nothing to change" in project.fixloop("apply", "1").err


JUNK: Final = """[fixer]\ncommand = "sh -c 'echo junk > agent_junk.py'"\n"""


@pytest.mark.parametrize("merged", [False, True])
def test_submitting_the_checkout_drops_the_stuck_agent_s_work(host: Host, merged: bool) -> None:
    project = host.project(f"junk-{merged}", toml=TOML + JUNK)
    assert project.submit().code == 3
    assert project.fixloop("decide", "1", "manual-fix").code == 0
    project.write("calc.py", RIGHT)

    fixed = project.fixloop("fixed", "1", "--here", *(["--merge"] if merged else []))

    assert (fixed.code, fixed.out) == (0, "calc.py\n"), fixed.err
    assert ("earlier fixes did to agent_junk.py; `fixloop" in fixed.err) is not merged
    assert project.fixloop("watch", "1").code == 0
    applied = project.fixloop("apply", "1")
    assert (applied.out.splitlines() == ["agent_junk.py"]) is merged, applied.err
    assert (project.folder / "agent_junk.py").exists() is merged
    verified = project.git("ls-tree", "-r", "--name-only", "refs/fixloop/1/tip").split()
    assert ("agent_junk.py" in verified) is merged


def test_merge_without_here_is_refused(host: Host) -> None:
    project = host.project("merge-alone")
    assert project.submit().code == 3

    assert "--merge needs --here" in project.fixloop("fixed", "1", "--merge").refusal


def test_a_fix_that_is_committed_is_taken_by_its_revision(host: Host) -> None:
    project = host.project("revision")
    assert project.submit().code == 3
    project.write("calc.py", RIGHT)
    project.commit()

    refused = project.fixloop("fixed", "1", "--rev", "no-such-branch")
    fixed = project.fixloop("fixed", "1", "--rev", "HEAD")

    assert "no-such-branch" in refused.refusal
    assert (fixed.code, fixed.out) == (0, "calc.py\n"), fixed.err
    assert project.fixloop("watch", "1").code == 0


@pytest.mark.proves("G8", "A13", "K20")
@pytest.mark.parametrize(
    ("decision", "code", "outcome"),
    [("abort", 1, "aborted"), ("skip", 0, "skipped"), ("extend", 3, None), ("manual-fix", 0, "success")],
)
def test_an_agent_that_is_blocked_gets_a_decision(
    host: Host, decision: str, code: int, outcome: str | None
) -> None:
    project = host.project(f"blocked-{decision}")
    assert project.submit().code == 3

    blocked = project.fixloop("fixed", "1", "--blocked", "the specification is missing")
    [item] = [
        each
        for each in project.fixloop("inbox", "--json").document["items"]
        if each["project"] == str(project.folder)
    ]
    decided = project.fixloop("decide", "1", decision, "--reason", "because")
    if decision == "manual-fix":
        (Path(re.findall(r"in (/\S+), then", decided.err)[0]) / "calc.py").write_text(RIGHT)
        assert project.fixloop("fixed", "1").out == "calc.py\n"
    watched = project.fixloop("watch", "1")

    assert blocked.code == 0, blocked.err
    assert "the specification is missing" in item["detail"]
    assert decided.code == 0, decided.err
    assert (watched.code, project.status()["outcome"]) == (code, outcome), watched.out
    assert "because" in project.log()


@pytest.mark.proves("A71")
def test_an_answer_in_a_file_is_read_and_an_invalid_one_refused_with_its_gaps(host: Host) -> None:
    project = host.project("answered")
    assert project.submit().code == 3
    place = offered(project.fixloop("ack", "1").err)
    (place / "calc.py").write_text(RIGHT)

    refused = project.fixloop("fixed", "1", "--file", "-", stdin="I am done\n")
    fixed = project.fixloop("fixed", "1", "--file", "-", stdin=ANSWER)

    assert refused.code == 2
    assert "Fix Completion" in refused.err
    assert fixed.code == 0, fixed.err
    assert project.fixloop("watch", "1").code == 0
    said = project.fixloop("log", "1", "--json").document["entries"]
    assert any("PVN-1-" in each["message_id"] for each in said)
    assert any("added instead of subtracting" in each["rendered"] for each in said)


ANSWER = """\
## Fix Completion

**Message ID**: FIXDONE-1-1
**From**: @feature-implementer-main
**To**: @validation-orchestrator
**Timestamp**: 2030-01-01 00:00:00
**Priority**: High

---

### Completion Summary

Feature #1, iteration 1.

### Fixes Applied

1. added instead of subtracting

### Files Modified

- calc.py

### Ready for Re-validation

Yes, re-run test-runner

---

**Sent by**: Feature Implementer Main Agent
"""


def test_a_fix_that_weakens_a_test_is_marked_and_held(host: Host) -> None:
    weaken = "[fixer]\ncommand = \"sh -c 'sed -i s/==.3/==-1/ test_calc.py'\"\n"
    project = host.project("weakened", toml=weaken + TOML)

    told = project.submit()

    assert told.code == 3
    assert "is held by apart" in project.log()
    assert "fixes touched tests or gates: test_calc.py" in project.fixloop("status", "1").out


@pytest.mark.proves("A73", "K5")
def test_a_fixer_that_fails_three_times_is_unresponsive(host: Host) -> None:
    failing = "[fixer]\ncommand = \"sh -c 'echo tried >> $HOME/said/tries; echo out of credit; rm calc.py; exit 1'\"\n"
    notify = "notify = \"sh -c 'cat > $HOME/told'\"\n"
    project = host.project("failing", toml=notify + failing + TOML)
    (project.home / "said").mkdir(exist_ok=True)

    told = project.submit()

    assert told.code == 3
    assert "No fix was made: the fixer ended with exit code 1; it said last: out of credit" in told.out
    assert (project.home / "said" / "tries").read_text().count("tried") == 3
    assert "it said last: out of credit" in project.log()
    assert "out of credit" in project.fixloop("log", "1", "--format", "markdown").out
    escalation = until(lambda: (project.home / "told").exists() and (project.home / "told").read_text())
    assert "## Escalation: Unresolvable Issue" in str(escalation)
    until(lambda: "notified: sh ended with exit code 0" in project.log(), what="the record of the notice")


@pytest.mark.proves("A71", "G2")
def test_a_fixer_that_answers_is_believed_when_the_answer_is_valid(host: Host) -> None:
    agent = (
        "import json, os, pathlib, sys\n"
        "request = json.loads(pathlib.Path(os.environ['FIXLOOP_REQUEST']).read_text())\n"
        "assert request['workspace'] == os.getcwd(), request\n"
        "assert (os.environ['FIXLOOP_ISSUE'], os.environ['FIXLOOP_ITERATION']) == ('1', '1')\n"
        "assert 'FIXREQ-1-1' in sys.stdin.read()\n"
        "tries = pathlib.Path(os.environ['HOME'], 'said', 'answers')\n"
        "text = pathlib.Path('answer.md').read_text() if tries.exists() else 'done'\n"
        "tries.touch()\n"
        "pathlib.Path(os.environ['FIXLOOP_ANSWER']).write_text(text)\n"
        "calc = pathlib.Path('calc.py')\n"
        "calc.write_text(calc.read_text().replace('-', '+'))\n"
    )
    project = host.project(
        "answering",
        toml='[fixer]\ncommand = "python agent.py"\n' + TOML,
        files={"agent.py": agent, "answer.md": ANSWER},
    )
    (project.home / "said").mkdir(exist_ok=True)

    told = project.submit()

    assert told.code == 0, told.out
    said = project.fixloop("log", "1", "--json").document["entries"]
    kinds = [each["message_id"].split("-")[0] for each in said]
    assert kinds == ["DETECT", "VFR", "PVN", "FIXDONE", "REVAL", "REVALRES", "SUCCESS"]
    assert "added instead of subtracting" in said[3]["rendered"]


def test_a_fixer_cannot_change_its_own_gates(host: Host) -> None:
    cheat = "sed -i s/check.py.*/true.py/ fixloop.toml"
    project = host.project(
        "cheated", toml=f'max_iterations = 2\n[fixer]\ncommand = "{cheat}"\n' + TOML, files={"true.py": "\n"}
    )

    told = project.submit()

    assert told.code == 3
    assert "Max iterations" in told.out
    assert "fixes touched tests or gates: fixloop.toml" in told.out


def test_the_environment_that_setup_makes_is_the_interpreter(host: Host) -> None:
    setup = f'[workspace]\nsetup = "{sys.executable} -m venv --without-pip .venv"\n'
    check = "import sys; print(sys.prefix); sys.exit('setups' not in sys.prefix)\n"
    project = host.project(
        "prepared",
        toml=setup + '[specialist.security]\ncommand = "python where.py"\n',
        files={"where.py": check, ".gitignore": ".venv\n"},
    )

    told = project.submit()

    assert told.code == 0, told.out
    [evidence] = project.status()["specialists"][4]["evidence"]
    assert "/setups/" in evidence["interpreter"]
    assert not (project.folder / ".venv").exists()


def test_the_same_issue_joins_a_live_workflow_and_begins_another_after_its_end(host: Host) -> None:
    project = host.project("again")
    first = project.fixloop("enqueue", "--issue", "5")
    assert project.fixloop("watch", "5").code == 3

    joined = project.fixloop("enqueue", "--issue", "5")
    base = project.git("rev-parse", "refs/fixloop/5/base")
    project.write("calc.py", RIGHT)
    refused = project.fixloop("enqueue", "--issue", "5")
    assert base == project.git("rev-parse", "refs/fixloop/5/base")
    restarted = project.fixloop("enqueue", "--issue", "5", "--restart")
    assert project.fixloop("watch", "5").code == 0
    anew = project.fixloop("enqueue", "--issue", "5")

    assert joined.out == first.out
    assert "live on another tree" in refused.refusal
    assert "--restart" in refused.refusal
    assert [told.out.strip()[-4:] for told in (first, restarted, anew)] == ["-5-1", "-5-2", "-5-3"]


@pytest.mark.proves("K38")
def test_checks_may_leave_files_for_each_other_and_all_name_the_tree_they_ran_on(host: Host) -> None:
    writing = "import time\nopen('summary.txt', 'a').write(str(time.time()))\n"
    toml = "".join(
        f'[[specialist.security.check]]\nname = "{name}"\ncommand = "python look.py"\n'
        for name in ("one", "two")
    )
    project = host.project("untidy", toml=toml, files={"look.py": writing})

    told = project.submit()

    assert told.code == 0, told.out
    status = project.status()
    assert {each["tree"] for each in status["specialists"][4]["evidence"]} == {status["tree"]}


@pytest.mark.proves("K38")
def test_a_report_is_never_that_of_another_check(host: Host) -> None:
    toml = "".join(
        f'[[specialist.test-runner.check]]\nname = "{name}"\ncommand = "python {program} {{junit}}"\n'
        for name, program in (("all tests", "check.py"), ("all_tests", "silent.py"))
    )
    project = host.project("similar", toml=toml, calc=RIGHT, files={"silent.py": "\n"})

    told = project.submit()

    assert told.code == 3
    assert "is missing; the command did not write it" in told.out


def test_a_printed_secret_is_stored_nowhere(host: Host) -> None:
    """Neither a check's nor a fixer's, in output, report or answer."""
    leaking = (
        "import os, sys\n"
        "sys.exit('cannot log in with ' + os.environ['SHOP_TOKEN'] + ' at ' + os.environ['SHOP_URL'])\n"
    )
    toml = (
        "max_iterations = 2\n"
        '[fixer]\ncommand = "python leak.py"\nenv = ["SHOP_TOKEN", "SHOP_URL"]\n'
        '[specialist.security]\ncommand = "python leak.py"\nenv = ["SHOP_TOKEN", "SHOP_URL"]\n'
    )
    project = host.project("leaking", toml=toml, files={"leak.py": leaking})

    told = project.submit()

    assert told.code == 3
    said = told.out + told.err + project.log() + project.fixloop("log", "1", "--json").out
    kept = [inflate(each) or each for each in values_in(host.url)]
    assert "cannot log in with ***" in said
    assert any(b"cannot log in with ***" in each for each in kept)
    for secret in (SECRETS["SHOP_TOKEN"], "hunter22"):
        assert secret not in said
        assert not any(secret.encode() in each for each in kept)


def values_in(url: str) -> list[bytes]:
    """All values of a Redis, as stored."""
    client: Any = redis.Redis.from_url(url)
    found: list[bytes] = []
    for key in client.scan_iter("fixloop:*"):
        kind = client.type(key)
        if kind == b"list":
            found += client.lrange(key, 0, -1)
        elif kind == b"string":
            found.append(client.get(key))
        elif kind == b"hash":
            found += client.hvals(key)
    client.close()
    return found


def test_a_live_feature_is_not_joined_with_other_gates_or_another_fixer(host: Host) -> None:
    project = host.project("other-fixer")
    assert project.submit().code == 3

    told = project.fixloop("enqueue", "--issue", "1", "--fixer", "true")

    assert told.code == 2
    assert "--restart" in told.refusal
    assert project.fixloop("enqueue", "--issue", "1").code == 0


def test_run_does_the_work_that_was_enqueued_without_a_worker(tmp_path: Path) -> None:
    project = Project(tmp_path / "shop", calc=RIGHT)
    assert project.fixloop("enqueue", "--issue", "1").code == 0

    told = project.run()

    assert told.code == 0, told.err
    assert "passed" in told.out


@pytest.mark.proves("K37", "S31")
def test_a_later_fix_that_breaks_an_earlier_phase_does_not_pass(host: Host) -> None:
    """The scanner's first fix breaks the tests; confirming them on the final tree shows it."""
    agent = (
        "import os, pathlib\n"
        "calc, step = pathlib.Path('calc.py'), (os.environ['FIXLOOP_SPECIALIST'], os.environ['FIXLOOP_ITERATION'])\n"
        "text = calc.read_text()\n"
        "if step == ('security', '1'):\n"
        "    text = text.replace('eval', 'str').replace('a + b', 'a - b')\n"
        "else:\n"
        "    text = text.replace('a - b', 'a + b')\n"
        "calc.write_text(text)\n"
    )
    project = host.project(
        "undone",
        toml='[fixer]\ncommand = "python agent.py"\n'
        + TOML
        + '[specialist.security]\ncommand = "python scan.py"\n',
        calc=RIGHT + "unsafe = eval\n",
        files={"agent.py": agent, "scan.py": "import sys; sys.exit('eval' in open('calc.py').read())\n"},
    )

    told = project.submit()

    assert told.code == 0, told.out
    status = project.status()
    runs = {each["name"]: each["iteration"] for each in status["specialists"] if each["applicable"]}
    assert runs == {"test-runner": 3, "security": 2}
    trees = {proof["tree"] for each in status["specialists"] for proof in each["evidence"]}
    assert trees == {status["tree"]}
    assert "return a + b" in project.git("show", "fixloop/1:calc.py")


def test_apply_keeps_or_names_changes_made_meanwhile(host: Host) -> None:
    project = host.project("edited", toml=FIXER + TOML, calc="# first\n\n\n" + CALC)
    assert project.submit().code == 0
    theirs = "# mine\n\n\n" + CALC
    project.write("calc.py", theirs.replace("a - b", "a * b"))

    refused = project.fixloop("apply", "1")
    unchanged = project.read("calc.py")
    project.write("calc.py", theirs)
    applied = project.fixloop("apply", "1")

    assert refused.code == 2
    assert "calc.py" in refused.refusal
    assert unchanged == theirs.replace("a - b", "a * b")
    assert (applied.code, applied.out) == (0, "calc.py\n"), applied.err
    assert project.read("calc.py") == theirs.replace("a - b", "a + b")


def test_a_closed_pipe_ends_the_run_quietly(tmp_path: Path) -> None:
    project = Project(tmp_path / "shop", toml=FIXER + TOML)
    with project.start("run") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()

    assert process.returncode == 141
    assert "Traceback" not in said
    until(lambda: not processes_of(tmp_path), what="the end of every process")


def test_on_a_terminal_it_waits_for_a_fix_and_continues(tmp_path: Path) -> None:
    project = Project(tmp_path / "shop")
    with on_terminal(project, "run", str(project.folder), "--issue", "1") as (child, said):
        place = until(lambda: re.search(r"work in (\S+), then", said()), what="the offer")
        assert place is not None
        (Path(place[1]) / "calc.py").write_text(RIGHT)
        fixed = project.fixloop("fixed", "1")
        shown = until(lambda: ": passed (" in said() and said(), what="the result")
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert fixed.out == "calc.py\n", fixed.err
    assert code == 0, shown
    assert "fixloop apply 1" in str(shown)


@contextmanager
def on_terminal(project: Project, *words: str) -> Iterator[tuple[int, Callable[[], str]]]:
    """`fixloop WORDS` on a pseudo-terminal, in any directory: its id, and its output so far."""
    ours, theirs = os.openpty()
    variables = environment(project.home, {"TERM": "xterm", "COLUMNS": "300", "LINES": "40"})
    child = os.posix_spawn(
        str(FIXLOOP),
        ["fixloop", *words],
        variables,
        file_actions=[(os.POSIX_SPAWN_DUP2, theirs, number) for number in (0, 1, 2)],
        setsid=True,
    )
    os.close(theirs)
    os.set_blocking(ours, False)
    shown = bytearray()

    def said() -> str:
        with suppress(OSError):
            while data := os.read(ours, 65_536):
                shown.extend(data)
        return shown.decode(errors="replace")

    try:
        yield child, said
    finally:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.close(ours)


@pytest.mark.proves("K20", "K37")
def test_a_manual_fix_that_drops_a_gate_is_reported(host: Host) -> None:
    """The person fixes the fault in the offered directory and takes a specialist out that had passed before."""
    limit, unit = "max_iterations = 1\n", '[specialist.unit-test]\ncommand = "true"\n'
    project = host.project("dropped", toml=limit + unit + TOML)
    assert project.submit().code == 3
    decided = project.fixloop("decide", "1", "manual-fix")
    place = Path(re.findall(r"in (/\S+), then", decided.err)[0])
    assert "## Escalation: Unresolvable Issue" in (place.parent / "request.md").read_text()
    assert f"directory: {place}\n" in project.fixloop("inbox").out
    (place / "calc.py").write_text(RIGHT)
    (place / "fixloop.toml").write_text(limit + TOML)

    fixed = project.fixloop("fixed", "1")
    watched = project.fixloop("watch", "1")

    assert fixed.out.split() == ["calc.py", "fixloop.toml"], fixed.err
    assert watched.code == 3
    assert "unit-test is configured no more" in watched.out
    assert "fixes touched tests or gates: fixloop.toml" in watched.out
