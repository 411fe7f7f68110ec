"""Every agent of the seeds' two examples: reads its request, looks at the code, leaves files, prints its answer.

Started as a command, in a workspace that it has to itself. What it finds there is all it knows: that it sees the work
and the documents of those before it shows that both are carried.
"""

import json
import os
import sys
from pathlib import Path
from typing import NamedTuple

CODE = Path("auth.py")
SPEC = Path("specs/20260122-user-auth.md")


def main() -> None:
    """Act as the agent that FIXLOOP_ROLE names."""
    role, request = os.environ["FIXLOOP_ROLE"], sys.stdin.read()
    print(f"{role} talks beside its answer", file=sys.stderr)
    if role in ("ra", "ep", "cd", "vas"):
        own = next(Path(".workflow/.cycle").glob("*.progress")) / role
        own.mkdir(exist_ok=True)
        _print(role, {"ra": _ra, "ep": _ep, "cd": _cd, "vas": _vas}[role](own, request))
    else:
        print(json.dumps({"planner": _plan, "builder": _build, "reviewer": _review, "fixer": _fix}[role]()))


class Report(NamedTuple):
    """The content of a PHASE_RESULT."""

    status: str
    files: tuple[str, ...]
    issues: tuple[str, ...] = ()
    further: str = ""


def _print(role: str, report: Report) -> None:
    lines = [f"- phase: {role}", f"- status: {report.status}", f"- files_written: {json.dumps(report.files)}"]
    lines += [f"- summary: {role} is done", f"- issues: {json.dumps(report.issues)}", report.further]
    print("PHASE_RESULT:\n" + "\n".join(lines))


def _ra(own: Path, request: str) -> Report:
    decision = "OAuth is optional" if "CLARIFICATION" in request else "OAuth?"
    (own / "requirements.md").write_text(f"FR-003: {decision}\n")
    with (own / "changes.log").open("a") as log:
        log.write(json.dumps({"timestamp": "2026-01-22T02:00:00Z", "action": "update"}) + "\n")
    return Report("success", ("requirements.md",), further=f"- decision: {decision}")


def _ep(own: Path, request: str) -> Report:
    assert (own.parent / "ra" / "requirements.md").is_file()
    for name in ("exploration.md", "architecture.md"):
        (own / name).write_text(f"# {name}\n")
    (own / "plan.json").write_text(json.dumps({"tasks": [{"id": "TASK-001", "description": "log in"}]}))
    return Report("success", ("exploration.md", "architecture.md", "plan.json"))


def _cd(own: Path, request: str) -> Report:
    requirements = (own.parent / "ra" / "requirements.md").read_text()
    if "optional" not in requirements:
        (own / "issues.md").write_text("FR-003 is unclear\n")
        return Report("partial", ("issues.md",), ("FR-003: OAuth optional vs required?",))
    CODE.write_text(f"def login():\n    return {'FEEDBACK FROM VAS' in request}\n")
    (own / "implementation.md").write_text(CODE.read_text())
    return Report("success", ("implementation.md",))


def _vas(own: Path, request: str) -> Report:
    works = "True" in CODE.read_text()
    (own / "validation.md").write_text(f"login works: {works}\n")
    (own / "test-results.json").write_text(json.dumps({"passed": works}))
    return Report("success", ("validation.md",)) if works else Report("failed", (), ("login fails",))


def _plan() -> dict[str, object]:
    SPEC.parent.mkdir()
    SPEC.write_text("Users log in.\n")
    return {"status": "completed", "spec": str(SPEC)}


def _build() -> dict[str, object]:
    assert SPEC.is_file()
    CODE.write_text("def login():\n    return False\n")
    return {"status": "completed", "commit": "abc123", "files_changed": [str(CODE)]}


def _review() -> dict[str, object]:
    if "True" in CODE.read_text():
        return {"status": "approved"}
    return {"status": "needs_fixes", "issues": [{"id": "ISS-001"}, {"id": "ISS-002"}]}


def _fix() -> dict[str, object]:
    shared = Path(".claude/state.json")
    state = json.loads(shared.read_text())
    assert state["current_agent"] == "fixer"
    shared.write_text(json.dumps(state | {"coverage": 81, "status": "completed"}))
    CODE.write_text("def login():\n    return True\n")
    return {"status": "fixes_applied", "issues_fixed": ["ISS-001", "ISS-002"], "commits": ["def456"]}


if __name__ == "__main__":
    main()
