"""A main agent that works offline: applies the patch prepared for (specialist, iteration)."""

import os
import subprocess
import sys
from pathlib import Path


def main() -> int:
    name = f"{os.environ['FIXLOOP_SPECIALIST']}-{os.environ['FIXLOOP_ITERATION']}.patch"
    patch = Path(__file__).resolve().parent / "patches" / name
    if not patch.exists():
        print(f"no fix is prepared: {name}", file=sys.stderr)
        return 1
    # Below a repository's top git would take the patch's paths from there, and skip them silently.
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(Path.cwd().parent)}
    subprocess.run(["git", "apply", str(patch)], check=True, env=environment)
    print(f"applied {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
