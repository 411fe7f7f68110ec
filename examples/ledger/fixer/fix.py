"""A main agent that works offline: one prepared answer for each (specialist, iteration).

fixloop starts it in the workspace, with the request on stdin and FIXLOOP_* in the environment.
A real agent would read the request; this one only proves that it came, and applies a patch.
"""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

PATCHES = Path(__file__).resolve().parent / "patches"


def main() -> int:
    """Exit code 0 when there was an answer for this request, 1 otherwise."""
    specialist, iteration = os.environ["FIXLOOP_SPECIALIST"], os.environ["FIXLOOP_ITERATION"]
    request = sys.stdin.read()
    if f"FIXREQ-{os.environ['FIXLOOP_ISSUE']}-{iteration}" not in request:
        print("there is no fix request on stdin", file=sys.stderr)
        return 1
    patch = PATCHES / f"{specialist}-{iteration}.patch"
    if patch.exists():
        apply(patch)
    elif (specialist, iteration) == ("code-quality", "1"):
        tidy()
    else:
        print(f"no fix is prepared for {specialist}, iteration {iteration}", file=sys.stderr)
        return 1
    if specialist == "security":
        answer(iteration)
    return 0


def apply(patch: Path) -> None:
    """Apply a patch to the working directory, be it a repository's top, below it or elsewhere."""
    # Below a repository's top git would take the patch's paths from there, and skip them silently.
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(Path.cwd().parent)}
    subprocess.run(["git", "apply", str(patch)], check=True, env=environment)
    print(f"applied {patch.name}")


def tidy() -> None:
    """What the linter can mend by itself; the rest is left for the next iteration."""
    ruff = [sys.executable, "-m", "ruff"]
    subprocess.run([*ruff, "check", "--fix", "--exit-zero", "--no-cache"], check=True)
    subprocess.run([*ruff, "format", "--no-cache"], check=True)


def answer(iteration: str) -> None:
    """Write the Fix Completion ourselves; without this file fixloop makes one from the diff."""
    with open(os.environ["FIXLOOP_REQUEST"], encoding="utf-8") as stream:
        path = json.load(stream)["answer"]
    template = (PATCHES.parent / "answer.md").read_text(encoding="utf-8")
    timestamp = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
    issue = os.environ["FIXLOOP_ISSUE"]
    text = template.format(issue=issue, iteration=iteration, timestamp=timestamp)
    Path(path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
