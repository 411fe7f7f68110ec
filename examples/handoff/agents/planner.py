"""Plays the planner offline: writes a specification for the request."""

import json
import sys
from pathlib import Path

SPEC = Path("specs/20260122-user-auth.md")


def main():
    name = sys.stdin.readline().partition(": ")[2].strip()
    SPEC.parent.mkdir(exist_ok=True)
    SPEC.write_text(
        f"# {name}\n\n- A token names its user.\n- A token ends after an hour.\n- No name, no token.\n"
    )
    print(json.dumps({"status": "completed", "spec": str(SPEC), "context": {"module": "tokens.py"}}))


if __name__ == "__main__":
    main()
