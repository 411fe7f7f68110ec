"""The time that fixloop adds to a project's own commands: `check`, `run`, a fix, and commands that only read.

It alternates, on a small project whose `.venv` has only pytest, ruff and mypy, between the project's commands and the
same through fixloop. Seconds are medians; the difference is what fixloop adds. `run` does not take over the results of
`check`, except in the line that says so. The last table shows where the time of a `run` goes if its checks run one
after the other.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from bench.checkout import developer_environment, install, timed

FIXLOOP: Final = Path(sys.executable).with_name("fixloop")
COMMANDS: Final = {
    "test-runner": "python -m pytest -q --junitxml={junit}",
    "code-quality": "ruff check calc.py",
    "security": "mypy --strict calc.py",
}
CALC: Final = "def add(a: int, b: int) -> int:\n    return a {} b\n"
TEST: Final = "from calc import add\n\n\ndef test_add() -> None:\n    assert add(1, 2) == 3\n"
SPINS: Final = "python -c 'import time\nwhile time.process_time() < 4: pass'"
SPECIALISTS: Final = ("test-runner", "code-quality", "security", "e2e-accessibility")
ANEW: Final = {"FIXLOOP_TAKE_OVER_SECONDS": "0"}
READING: Final = (("status",), ("inbox",), ("log", "1"), ("check", "--help"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    python = [sys.executable, "-c", "pass"]
    startup = statistics.median(seconds(python, Path(), {}) for _ in range(options.turns))
    print(f"python -c pass: {startup * 1000:.0f} ms")
    with tempfile.TemporaryDirectory(prefix="loop-") as folder:
        on_small_project(Path(folder), options.turns)


def on_small_project(folder: Path, turns: int) -> None:
    """Print the time of each way through the loop, and of its own commands."""
    project = made(folder / "calc", COMMANDS)
    install(project, "pytest", "ruff", "mypy")
    variables = {"XDG_CACHE_HOME": str(folder / "cache"), "HOME": str(folder)}
    raw = [command.format(junit=folder / "report.xml") for command in COMMANDS.values()]
    calc, numbers = project / "calc.py", iter(range(1, 1000))

    def own() -> float:
        return sum(seconds(["sh", "-c", command], project, variables) for command in raw)

    def called(*words: str, where: Path = project, more: Mapping[str, str] = variables) -> float:
        return seconds([str(FIXLOOP), *words], where, {**variables, **more})

    def run(*words: str, where: Path = project, more: Mapping[str, str] = ANEW) -> float:
        return called("run", ".", "--issue", str(next(numbers)), *words, where=where, more=more)

    def mended(red: Callable[[], float]) -> float:
        calc.write_text(CALC.format("-"))
        took = red()
        calc.write_text(CALC.format("+"))
        return took

    ways: Mapping[str, Callable[[], float]] = {
        "own commands": own,
        "check": lambda: called("check", "--again"),
        "check, same tree": lambda: called("check"),
        "run": run,
        "run, taken over from check": lambda: run(more={}),
        "own commands, red and mended": lambda: (
            mended(lambda: seconds(["sh", "-c", raw[0]], project, variables)) + own()
        ),
        "run, red and mended": lambda: mended(lambda: run("--fixer", "sed -i s/-.b/+\\ b/ calc.py")),
    }
    found = by_turns(ways, turns)
    mending = {name: took for name, took in found.items() if name.endswith("mended")}
    report("loop", {name: took for name, took in found.items() if name not in mending})
    report("loop with a fix", mending)
    four = made(folder / "four", dict.fromkeys(SPECIALISTS, SPINS))
    install(four)
    parallel = {
        "four commands": lambda: sum(seconds(["sh", "-c", SPINS], four, variables) for _ in range(4)),
        "check": lambda: seconds([str(FIXLOOP), "check", "--again"], four, variables),
        "run": lambda: run(where=four),
    }
    report("four specialists", by_turns(parallel, turns))
    imports = [sys.executable, "-c", "import redis, pydantic, typer, rich"]
    reading = {"the imports": lambda: seconds(imports, project, variables)}
    for words in READING:
        reading[" ".join(words)] = lambda words=words: called(*words)  # type: ignore[misc]
    report("reading", by_turns(reading, turns))
    spent = [parts_of_run(folder / f"parts{number}", variables) for number in range(turns)]
    print(f"\n{'where a run spends its time':<28} {'s':>7}")
    for name in spent[0]:
        print(f"{name:<28} {statistics.median(each[name] for each in spent):>7.2f}")


def parts_of_run(folder: Path, variables: Mapping[str, str]) -> dict[str, float]:
    """The seconds of each part of a run, from its trace and from the times at which its commands begin and end;
    without mypy, whose cache is not kept for a script."""
    stamps = folder.with_suffix(".stamps")
    stamps.touch()
    stamp = f"date +%s.%N >> {stamps}"
    commands = {
        name: f"sh -c '{stamp}; {each}; code=$?; {stamp}; exit $code'"
        for name, each in COMMANDS.items()
        if "mypy" not in each
    }
    project = made(folder, commands, f"[sandbox]\nwritable = [{json.dumps(str(stamps))}]\n")
    install(project, "pytest", "ruff")
    one_by_one = {**variables, **ANEW, "FIXLOOP_AHEAD": "0"}
    for issue in ("1", "2"):
        # The first run fills the caches.
        stamps.write_text("")
        began = time.time()
        seconds([str(FIXLOOP), "run", ".", "--issue", issue], project, one_by_one)
        ended = time.time()
    environment = {**developer_environment(project), **variables}
    said = subprocess.run(
        [FIXLOOP, "trace", "2"], cwd=project, env=environment, capture_output=True, check=True
    ).stdout
    runs = [span for span in json.loads(said)["spans"] if "fixloop.iteration" in span["attributes"]]
    begun, done = ([datetime.fromisoformat(run[key]).timestamp() for run in runs] for key in ("start", "end"))
    marks = list(map(float, stamps.read_text().split()))
    return {
        "start and snapshot": begun[0] - began,
        "workspaces and bytecode": sum(marks[::2]) - sum(begun),
        "the commands": sum(marks[1::2]) - sum(marks[::2]),
        "judging and commits": sum(done) - sum(marks[1::2]),
        "end": ended - done[-1],
    }


def made(folder: Path, commands: Mapping[str, str], settings: str = "") -> Path:
    """A correct project in a git repository; `settings`: more of its configuration."""
    folder.mkdir(parents=True)
    # JSON strings are valid TOML.
    text = "".join(f"[specialist.{name}]\ncommand = {json.dumps(each)}\n" for name, each in commands.items())
    files = {
        "calc.py": CALC.format("+"),
        "test_calc.py": TEST,
        "fixloop.toml": text + settings,
        ".gitignore": ".fixloop/\n.venv/\n__pycache__/\n.*_cache/\n",
    }
    for name, content in files.items():
        (folder / name).write_text(content)
    person = ("-c", "user.name=bench", "-c", "user.email=bench@example.invalid")
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), (*person, "commit", "-q", "-m", "first")):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


def seconds(command: Sequence[str], folder: Path, variables: Mapping[str, str]) -> float:
    return timed(command, folder, {**developer_environment(folder), **variables}, 300)[0]


def by_turns(ways: Mapping[str, Callable[[], float]], turns: int) -> dict[str, float]:
    """The median of each, measured alternately, `turns` times."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(turns):
        for name, measure in ways.items():
            taken[name].append(measure())
    return {name: statistics.median(each) for name, each in taken.items()}


def report(title: str, found: Mapping[str, float]) -> None:
    base = next(iter(found.values()))
    print(f"\n{title:<28} {'s':>7} {'more, s':>8} {'ratio':>6}")
    for name, each in found.items():
        print(f"{name:<28} {each:>7.2f} {each - base:>+8.2f} {each / base:>6.2f}")


if __name__ == "__main__":
    main()
