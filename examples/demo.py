"""Runs fixloop on copies of the examples and checks that everything ends as it should.

`make demo` calls this, and `make demo PROFILE=cycle` (or handoff, chat or serve) with the profile's name. It needs
neither a network nor your own Redis server, works in a temporary directory, and leaves neither files nor processes.
Exit code 0: every check below held.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from itertools import pairwise
from pathlib import Path

from demo_serve import decided_on_a_page
from demo_stage import FIXLOOP, LIMIT_SECONDS, Stage, end, left_behind

EXPECTED = tomllib.loads(Path(__file__).with_name("expected.toml").read_text())


def main() -> int:
    """Runs the acts of the named profile, by default `validation`. Exit code 1: a check failed."""
    profile = (sys.argv[1:] or ["validation"])[0]
    if profile not in PROFILES:
        print(f"there is no profile {profile}; there are {', '.join(PROFILES)}", file=sys.stderr)
        return 2
    if not FIXLOOP.exists():
        print(f"there is no {FIXLOOP}; install fixloop for this python first", file=sys.stderr)
        return 2
    started = time.monotonic()
    root = Path(tempfile.mkdtemp(prefix="fixloop-demo-")).resolve()
    stage = Stage(root)
    try:
        for act in PROFILES[profile]:
            act(stage)
        stage.check("processes left behind", list(left_behind(root).values()), [])
    except subprocess.TimeoutExpired as late:
        stage.check("time limit kept", f"{late.cmd[1:]} took more than {LIMIT_SECONDS} s", True)
    finally:
        end(left_behind(root))
        shutil.rmtree(root, ignore_errors=True)
    verdict = f"{len(stage.wrong)} checks failed" if stage.wrong else "all checks passed"
    print(f"\nThe demo took {time.monotonic() - started:.0f} s; {verdict}.")
    return 1 if stage.wrong else 0


def _finished_feature(stage: Stage) -> None:
    _heading("1. Feature #47 of `ledger`: five phases, 3 failing tests, then 1, then 0")
    runs = {"unit-test": 1, "integration-test": 1, "test-runner": 3, "code-quality": 3, "security": 2}
    project = _passed(stage, "ledger", "47", runs)
    stage.check("files changed in the checkout", _changes(stage, project), [])

    stage.run(project, "log", "47")
    statistics = stage.read(project, "log", "47").get("statistics", {})
    # A specialist that passes at run n sends 4n - 2 messages: 2 + 2 + 10 + 10 + 6.
    stage.check("messages in the log", statistics.get("total_messages"), 30)

    stage.run(project, "apply", "47")
    stage.check("changes in the checkout after apply", bool(_changes(stage, project)), True)
    print("\n$ python -m pytest", flush=True)
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q"], cwd=project, env=stage.environment, timeout=LIMIT_SECONDS
    )
    stage.check("exit code of the project's own tests", tests.returncode, 0)


def _coverage_alone(stage: Stage) -> None:
    _heading("2. `inventory`: a command without a report, a coverage gate, findings as plain lines")
    _passed(stage, "inventory", "12", {"integration-test": 2, "test-runner": 2, "code-quality": 2})


def _passed(stage: Stage, example: str, issue: str, runs: dict[str, int]) -> Path:
    project = stage.project(example)
    stage.run(project, "run", ".", "--issue", issue)
    status = stage.read(project, "status", issue)
    stage.check("the verdict", status.get("verdict"), "passed")
    applicable = [each for each in status.get("specialists", []) if each["applicable"]]
    stage.check("runs of each specialist", {each["name"]: each["iteration"] for each in applicable}, runs)
    return project


def _nobody_can_fix_it(stage: Stage) -> None:
    _heading("3. `stuck`: a fixer that only writes comments. Three equal runs, then a person decides")
    project = stage.project("stuck")
    _deadlock(stage, project, "48")
    stage.run(project, "inbox")
    stage.run(project, "decide", "48", "skip", "--reason", "known, will be fixed next week")
    stage.run(project, "resume", "48")
    status = stage.read(project, "status", "48")
    stage.check("the verdict", status.get("verdict"), "passed_with_known_issues")

    _deadlock(stage, project, "49")
    stage.run(project, "decide", "49", "abort", "--reason", "back to design")
    stage.run(project, "resume", "49", expected=1)
    stage.check("the outcome", stage.read(project, "status", "49").get("outcome"), "aborted")


def _deadlock(stage: Stage, project: Path, issue: str) -> None:
    stage.run(project, "run", ".", "--issue", issue, expected=3)
    status = stage.read(project, "status", issue)
    found = [status.get(name) for name in ("status", "specialist", "iteration", "paused")]
    stage.check("where it stopped", found, ["ESCALATED", "test-runner", 3, True])


def _chat(stage: Stage) -> None:
    _heading("Chat 0005: a contract, ten files in turn, a decision; no Redis, only files")
    project = stage.project("gh-sync")
    criteria = ("python -m unittest -q", "python gh_sync.py theory_api/agents/chats --dry-run")
    accepted = [word for criterion in criteria for word in ("--acceptance", criterion)]
    titled = ("--title", "Synchronise issues with chats", "--scope", "gh_sync.py", "--output", "a command")
    stage.run(project, "chat", "new", "dx", "gh-sync", "--id", "0005", *titled, *accepted)
    branch = "feat/dx-gh-sync-0005"
    subprocess.run(["git", "switch", "-q", "-c", branch], cwd=project, env=stage.environment, check=True)

    crew = ("--architect", "python agents/architect.py", "--engineer", "python agents/engineer.py")
    turns = []
    for number in range(1, 11):
        stage.run(project, "chat", "run", "5", *crew, "--messages", "1", "--log", "run.log")
        told = stage.read(project, "chat", "read", "5")
        turns.append((told["messages"][-1]["file"], told["owner"]))
    roles = ["engineer" if number % 2 else "architect" for number in range(1, 11)]
    # The file of each turn, and who has the next one.
    expected = [(f"{number:03}-to-{role}.md", role) for number, role in enumerate(roles, 1)]
    stage.check("the turns", turns, expected)
    before = _files(project)

    stage.run(project, "chat", "run", "5", *crew, "--log", "run.log")
    told = stage.read(project, "chat", "read", "5")
    stage.check("state and last owner", (told["state"], told["owner"]), ("closed", "architect"))
    after = _files(project)
    changed = [name for name in before if after.get(name) != before[name]]
    stage.check("messages changed by closing", changed, [])
    stage.check("what closing added", sorted(set(after) - set(before)), ["DECISION.md", "SUMMARY.md"])
    stage.run(project, "chat", "validate", "theory_api", "--title", "0005 [dx] gh-sync", "--log", "run.log")
    late = ("chat", "post", "5", "--as", "engineer", "--purpose", "One more")
    stage.run(project, *late, "--file", "theory_api/agents/chats/0005-dx-gh-sync/SUMMARY.md", expected=2)


def _files(project: Path) -> dict[str, bytes]:
    chat = project / "theory_api" / "agents" / "chats" / "0005-dx-gh-sync"
    return {file.name: file.read_bytes() for file in chat.glob("*.md")}


def _cycle(stage: Stage) -> None:
    _heading("1. Cycle 7: an unclear requirement, a failing test, and success in iteration 2")
    project = stage.project("cycle")
    stage.run(project, "run", ".", "--profile", "cycle", "--issue", "7", "--name", "OAuth login")
    status = stage.read(project, "status", "7")
    folder = project / status["state_file"].replace(".json", ".progress")
    _timeline(folder / "coordination" / "feedback.md", stage)
    ended = (status["outcome"], status["iteration"], status["version"])
    stage.check("outcome, iteration and version", ended, ("success", 2, "1.1.0"))
    runs = {agent["name"]: (agent["run"], agent["iterations_completed"]) for agent in status["agents"]}
    expected = {"ra": (2, 1), "ep": (1, 1), "cd": (3, 2), "vas": (2, 1)}
    stage.check("runs, and iterations completed", runs, expected)
    archived = sorted(path.name for path in folder.glob("*/history/*"))
    stage.check("documents in the archive", all("-v1.0.0." in name for name in archived), True)
    stage.check("how many", len(archived), 10)
    statistics = stage.read(project, "log", "7").get("statistics", {})
    stage.check("messages", statistics.get("messages_by_type"), EXPECTED["cycle"]["messages"])
    stage.check("files changed in the checkout", _changes(stage, project), [])


def _timeline(log: Path, stage: Stage) -> None:
    """The coordination log's first section, compared with the protocol's own table."""
    lines = log.read_text().split("## Decision Records")[0].splitlines()
    shown = [line for line in lines if line.startswith("- [")]
    print("\n".join(shown), flush=True)
    wanted = EXPECTED["cycle"]["timeline"]
    told = [line.partition("] ")[2] for line in shown]
    stage.check("missing in the timeline", [line for line in wanted if line not in told], [])
    stage.check("extra in the timeline", [line for line in told if line not in wanted], [])
    stage.check("the order of its lines", told == wanted, True)
    times = [line[3:11] for line in shown]
    # Midnight may pass in between.
    turns_back = sum(two < one for one, two in pairwise(times))
    stage.check("the timeline is in order", turns_back < 2, True)


def _guidance(stage: Stage) -> None:
    _heading("2. Cycle 8: a question for a person; the guidance goes to the agent, which continues")
    project = stage.root / "cycle"
    words = ("run", ".", "--profile", "cycle", "--issue", "8", "--name", "Log in with a hardware key")
    stage.run(project, *words, expected=3)
    agents = stage.read(project, "status", "8")["agents"]
    stage.check("who waits", [one["name"] for one in agents if one["status"] == "waiting"], ["cd"])
    stage.run(project, "inbox")
    stage.run(project, "decide", "8", "manual-fix", "--guidance", "take keys of any vendor")
    stage.run(project, "resume", "8")
    statistics = stage.read(project, "log", "8").get("statistics", {})
    stage.check("escalations", statistics.get("escalations"), 1)
    runs = {"ra": 1, "ep": 1, "cd": 2, "vas": 1}
    stage.check("runs of each agent", statistics.get("runs"), runs)


def _gauntlet(stage: Stage) -> None:
    _heading("3. Cycle 9: the same agents, with the validation loop and its specialists as VAS")
    project = stage.root / "cycle"
    shutil.copy(project / "gauntlet.toml", project / "fixloop.toml")
    for words in ("checkout -q -- login.py", "commit -qam Gauntlet"):
        subprocess.run(["git", *words.split()], cwd=project, env=stage.environment, check=True)
    stage.run(project, "run", ".", "--profile", "cycle", "--issue", "9", "--name", "OAuth login")
    status = stage.read(project, "status", "9")
    stage.check("outcome and iteration", (status["outcome"], status["iteration"]), ("success", 2))
    found = stage.read(project, "status")["workflows"]
    loops = [one for one in found if one["profile"] == "validation"]
    stage.check("verdicts of the validation loops", sorted(one["verdict"] for one in loops), _VERDICTS)
    for loop in loops:
        stage.run(project, "log", loop["workflow_id"])
    report = project / status["state_file"].replace(".json", ".progress") / "vas" / "validation.md"
    print(report.read_text(), flush=True)
    stage.check("what VAS says", "2 of 2 specialists passed on the final tree" in report.read_text(), True)


_VERDICTS = ["passed", "passed_with_known_issues"]
"""Of the second iteration, and of the first, whose failures were left to CD."""


def _handoffs(stage: Stage) -> None:
    _heading("1. Handoffs 12: planner, builder, reviewer (two issues), fixer, reviewer (approved)")
    project = stage.project("handoff")
    stage.run(project, "run", ".", "--profile", "handoff", "--issue", "12", "--name", "Add user auth")
    entries = stage.read(project, "log", "12").get("entries", [])
    handed = [[one["sender"], one["message_type"], one["recipient"]] for one in entries]
    expected = EXPECTED["handoff"]
    stage.check("handoffs in order", [one for one in handed if one[1] != "completion"], expected["handed"])
    returned = [one["summary"] for one in entries if one["message_type"] == "completion"]
    for found, wanted in zip(returned, expected["returned"], strict=True):
        stage.check("a result", found[: len(wanted)], wanted)
    status = stage.read(project, "status", "12")
    ended = (status["outcome"], status["iteration"], status["commit"])
    stage.check("outcome, iteration and commit", ended, ("success", 2, "abc123"))
    folders = project / ".claude" / "handoffs"
    files = {folder.name: len(list(folder.iterdir())) for folder in folders.iterdir()}
    stage.check("files in each folder", files, {"pending": 0, "accepted": 0, "completed": 4})
    events = (project / ".claude" / "events.ndjson").read_text().splitlines()
    counts = {name: sum(json.loads(line)["event"] == name for line in events) for name in expected["events"]}
    stage.check("events", counts, expected["events"])
    stage.check("files changed in the checkout", _changes(stage, project), [])


def _question(stage: Stage) -> None:
    _heading("2. Handoffs 13: the builder asks, a person chooses one of three, and it continues")
    project = stage.root / "handoff"
    words = ("run", ".", "--profile", "handoff", "--issue", "13", "--name", "Choose how tokens are made")
    stage.run(project, *words, expected=3)
    stage.run(project, "inbox")
    stage.run(project, "decide", "13", "Basic", expected=2)
    stage.run(project, "decide", "13", "OAuth")
    stage.run(project, "resume", "13")
    stage.check("the outcome", stage.read(project, "status", "13").get("outcome"), "success")
    shown = ["git", "show", "fixloop/13:tokens.py"]
    text = subprocess.check_output(shown, cwd=project, env=stage.environment, text=True)
    stage.check("what was built", '"kind": "OAuth"' in text, True)


def _serve(stage: Stage) -> None:
    _heading("`fixloop serve`: `stuck` is submitted, and a person decides on a page")
    decided_on_a_page(stage)


PROFILES = {
    "validation": (_finished_feature, _coverage_alone, _nobody_can_fix_it),
    "cycle": (_cycle, _guidance, _gauntlet),
    "handoff": (_handoffs, _question),
    "chat": (_chat,),
    "serve": (_serve,),
}
"""The acts of each profile."""


def _heading(text: str) -> None:
    print(f"\n{'=' * len(text)}\n{text}\n{'=' * len(text)}", flush=True)


def _changes(stage: Stage, project: Path) -> list[str]:
    command = ["git", "status", "--porcelain"]
    shown = subprocess.check_output(command, cwd=project, env=stage.environment, text=True)
    return shown.splitlines()


if __name__ == "__main__":
    sys.exit(main())
