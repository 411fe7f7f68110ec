"""Agents of S19 and S20: a plan that lacks a task, and an agent that oversteps in each of its answers.

Started as a command with the name of its scene, in a workspace that it has to itself.
"""

import json
import os
import sys
from pathlib import Path

STATE = next(Path(".workflow/.cycle").glob("*.json"))
PLAN = [
    {"id": f"TASK-{number:03}", "depends_on": [f"TASK-{number - 1:03}"] if number > 1 else []}
    for number in range(1, 8)
]


def main() -> None:
    """Act as the agent that FIXLOOP_ROLE names, in the scene that the first argument names."""
    role, request = os.environ["FIXLOOP_ROLE"], sys.stdin.read()
    own = next(Path(".workflow/.cycle").glob("*.progress")) / role
    own.mkdir(exist_ok=True)
    lines = {"S19": _incomplete_plan, "S20": _overstepping}[sys.argv[1]](role, request, own)
    said = {"phase": role, "status": "success", "files_written": "[]", "summary": "done", "issues": "[]"}
    print("PHASE_RESULT:")
    for name, value in (said | lines).items():
        print(f"- {name}: {value}")


def _incomplete_plan(role: str, request: str, own: Path) -> dict[str, str]:
    """S19: CD stops after two of seven tasks, EP adds an eighth, CD does what the state says is left."""
    is_second = "CLARIFICATION" in request
    if role == "ep":
        further = [{"id": "TASK-008", "depends_on": ["TASK-003"]}] if is_second else []
        (own / "plan.json").write_text(json.dumps({"tasks": PLAN + further}))
        return {"files_written": "[plan.json]", "decision": "TASK-008 added"} if is_second else {}
    if not is_second:
        return {
            "status": "partial",
            "issues": '["plan: TASK-008 is missing"]',
            "tasks_completed": '["TASK-001", "TASK-002"]',
        }
    tasks = json.loads(STATE.read_text())["tasks"]
    left = [task["id"] for task in tasks if task["status"] != "completed"]
    (own / "implementation.md").write_text("".join(f"{task}\n" for task in left))
    return {"files_written": "[implementation.md]", "tasks_completed": json.dumps(left)}


def _overstepping(role: str, request: str, own: Path) -> dict[str, str]:
    """S20: another's field, another's phase, no status, another's file; the request tells how often it was refused."""
    number = request.count("## Your last answer was none")
    if number == 3:
        document = json.loads(STATE.read_text())
        document["agents"]["cd"]["status"] = "completed"
        STATE.write_text(json.dumps(document))
    lies = ({"plan": "[mine]"}, {"phase": "vas"}, {"status": "done"}, {"summary": "done behind its back"})
    return lies[number]


if __name__ == "__main__":
    main()
