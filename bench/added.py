"""The time that the integrity rules add to a loop with an honest fix, on the public projects of `projects.toml`.

Each project gets one of its bugs, and a fixer that puts the original file back. The same `fixloop run` goes with all
rules and with none, by turns. A project's figure is the median over its bugs, the last line the median over projects.
Exit code 1 if a fix did not pass.
"""

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from shlex import quote
from typing import Final, NamedTuple

from bench.checkout import Edit, developer_environment, prepared, public_projects, restore, timed
from fixloop.servers.settings import load_settings

FIXLOOP: Final = Path(sys.executable).with_name("fixloop")
ANEW: Final = {"FIXLOOP_TAKE_OVER_SECONDS": "0"}
"""A run takes no results over from an earlier check."""
MOST_SECONDS: Final = 900
RULES: Final = {"on": "[integrity]\n", "off": '[integrity]\noff = ["all"]\n'}


class Loop(NamedTuple):
    has_passed: bool
    seconds: float
    verdict: str


def main() -> int:
    """Print a line for each project; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="*", help="only these projects")
    parser.add_argument("--bugs", type=int, default=3, help="how many of each project's bugs")
    options = parser.parse_args()
    added, are_passed = list[float](), True
    print(f"{'project':<22} {'without, s':>10} {'with, s':>8} {'added':>6}")
    for project in [each for each in public_projects() if each.name in options.name or not options.name]:
        folder = load_settings().cache_dir.parent / "fixloop-projects" / project.name
        try:
            checkout, pairs = prepared(project, folder), list[tuple[float, float]]()
        except (ValueError, subprocess.SubprocessError) as error:
            print(f"{project.name}: {error}", flush=True)
            continue
        for number, bug in enumerate(project.bugs[: options.bugs]):
            order = reversed(RULES) if number % 2 else RULES
            pair = {rules: loop(checkout, bug, RULES[rules]) for rules in order}
            for rules, done in pair.items():
                if not done.has_passed:
                    print(f"{project.name}, rules {rules}, {bug.new!r}: {done.verdict}", flush=True)
                    are_passed = False
            if all(done.has_passed for done in pair.values()):
                pairs.append((pair["off"].seconds, pair["on"].seconds))
        if pairs:
            off, on = (statistics.median(side) for side in zip(*pairs, strict=True))
            added.append(statistics.median(with_rules / without for without, with_rules in pairs) - 1)
            print(f"{project.name:<22} {off:>10.1f} {on:>8.1f} {added[-1]:>+6.0%}", flush=True)
    print(f"median of {len(added)} projects: {statistics.median(added or [0]):+.0%}")
    return 0 if are_passed else 1


def loop(checkout: Path, bug: Edit, configuration: str) -> Loop:
    """Run the checks, the fix and the checks again, in a new cache that one `fixloop check` has filled."""
    restore(checkout)
    (checkout / "fixloop.toml").write_text(configuration)
    with tempfile.TemporaryDirectory(prefix="fixloop-added-", ignore_cleanup_errors=True) as folder:
        cache, original = Path(folder, "cache"), Path(folder, "original")
        environment = developer_environment() | {"FIXLOOP_CACHE_DIR": str(cache), **ANEW}
        timed([str(FIXLOOP), "check", "--again"], checkout, environment, MOST_SECONDS)
        shutil.copy(checkout / bug.file, original)
        bug.apply(checkout)
        command = [str(FIXLOOP), "run", ".", "--issue", "1"]
        command += ["--fixer", f"cp {quote(str(original))} {quote(bug.file)}"]
        seconds, ended = timed(command, checkout, environment, MOST_SECONDS)
    restore(checkout)
    return Loop(ended.returncode == 0, seconds, ended.stdout.decode(errors="replace").strip()[-200:])


if __name__ == "__main__":
    sys.exit(main())
