"""Coding agents as their makers ship them, with a scripted model: as fixers, behind their hooks and with MCP tools.

`python -m tests.live_agents [NAME…]` plays those whose programs are on the PATH; nothing leaves this machine.
`--record` keeps what each sent when it wanted to stop in `tests/unit/hook_calls`.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from fixloop.configuration.coding_agents import CODING_AGENTS
from fixloop.outside.hook_dialects import DIALECTS
from tests.live_agents.model import Script, Turn, served

AGENTS: Final[Mapping[str, Mapping[str, Any]]] = tomllib.loads(
    Path(__file__).with_name("agents.toml").read_text()
)
CALLS: Final = Path(__file__).parents[1] / "unit/hook_calls"
PROGRAMS: Final = str(Path(sys.executable).parent)
PROMPT: Final = "mend the cart"
MODULE: Final = "src/shop/cart.py"
RIGHT: Final = "def total(prices):\n    return sum(prices)\n"
WRONG: Final = "def total(prices):\n    return sum(prices[1:])\n"
WORSE: Final = "def total(prices):\n    return sum(prices[2:])\n"
FILES: Final = {
    MODULE: WRONG,
    ".gitignore": ".venv/\n",
    "src/shop/__init__.py": "",
    "tests/test_cart.py": "from shop.cart import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n",
    "pyproject.toml": '[project]\nname = "shop"\nversion = "1"\n\n[tool.pytest.ini_options]\npythonpath = ["src"]\n',
}
PATCH: Final = f"""\
diff --git a/{MODULE} b/{MODULE}
--- a/{MODULE}
+++ b/{MODULE}
@@ -1,2 +1,2 @@
 def total(prices):
-    return sum(prices[1:])
+    return sum(prices)
"""
DONE: Final = Turn("I am done.")
SECONDS: Final = 180.0
WORKSPACE: Final = re.compile(r"/[\w./-]+/tree/[\w.-]+")
PROJECT: Final = re.compile(r"/[\w./-]+/\.fixloop-live-\w+/shop")
RECORDER: Final = """\
#!/bin/sh
[ "$1" = hook ] && [ "$2" != install ] || exec {program} "$@"
call={folder}/$(date +%s%N)
cat > $call.sent
{program} "$@" < $call.sent | tee $call.told
"""


class Place:
    """A home folder with a project in which one test fails, and an agent set up for a model at `url`."""

    def __init__(self, home: Path, name: str, url: str) -> None:
        self.home, self.agent, self.folder = home, AGENTS[name], home / "shop"
        self.calls = home / "calls"
        self.values = {"url": url, "folder": str(self.folder), "prompt": PROMPT}
        recorder = home / "bin/fixloop"
        for file, text in FILES.items():
            self._write(self.folder / file, text)
        for file, text in self.agent.get("files", {}).items():
            self._write(home / file, self._filled(text))
        self._write(recorder, RECORDER.format(program=Path(PROGRAMS, "fixloop"), folder=self.calls))
        recorder.chmod(0o755)
        self.calls.mkdir()
        self.run(sys.executable, "-m", "venv", "--without-pip", ".venv")
        (site,) = self.folder.glob(".venv/lib/*/site-packages")
        (site / "pytest.pth").write_text(sysconfig.get_path("purelib"))
        self.run("git", "init", "-qb", "main")
        self.commit()

    def env(self) -> dict[str, str]:
        kept = {key: os.environ[key] for key in ("LANG", "PATH", "TERM") if key in os.environ}
        path = f"{self.home / 'bin'}:{PROGRAMS}:{kept['PATH']}"
        named = {key: self._filled(value) for key, value in self.agent.get("env", {}).items()}
        return {**kept, **named, "HOME": str(self.home), "PATH": path}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """One command in the project, without a terminal."""
        return subprocess.run(
            words,
            cwd=self.folder,
            env=self.env(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def commit(self) -> None:
        self.run("git", "add", "-A")
        self.run(
            "git", "-c", "user.name=me", "-c", "user.email=me@shop.example", "commit", "-qm", "all of it"
        )

    def works(self) -> None:
        """The agent does what a person asks of it."""
        self.run(*(self._filled(word) for word in self.agent["works"]))

    def told(self) -> list[str]:
        """The answer of each call of its hooks, in order."""
        return [file.read_text() for file in sorted(self.calls.glob("*.told"))]

    def _filled(self, text: str) -> str:
        for key, value in self.values.items():
            text = text.replace(f"{{{key}}}", value)
        return text

    def _write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def script_of(name: str, *turns: str, into: str = MODULE) -> Script:
    """What the model does in turn: writes each text into a file, or says that it is done; in the end only that."""

    def script(sent: str, before: int) -> Turn:
        found = WORKSPACE.search(sent) or PROJECT.search(sent)
        file = f"{found.group() if found else ''}/{into}"
        planned: list[Turn] = []
        for text in turns:
            values = {"file": file, "text": text}
            calls = AGENTS[name]["edit"]
            planned += [Turn(tool=tool, arguments=_set_in(how, values)) for tool, how in calls if text]
            # Aider has no tools: it reads the text, and asks again if an unread file was named.
            planned += [DONE] if not text else [] if calls else [Turn(f"{into}\n```\n{text}```\n")] * 2
        return planned[before] if before < len(planned) else DONE

    return script


def _set_in(arguments: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    return {
        key: text.replace("{file}", values["file"]).replace("{text}", values["text"])
        for key, text in arguments.items()
    }


@contextmanager
def place_of(name: str, script: Script) -> Iterator[Place]:
    # Not below /tmp: there a workspace cannot have a /tmp of its own, and some agents write nowhere else.
    with (
        tempfile.TemporaryDirectory(prefix=".fixloop-live-", dir=Path.home()) as home,
        served(script, f"{PROMPT}|test_total") as url,
    ):
        yield Place(Path(home), name, url)


def as_fixer(name: str, script: Script, ends: str) -> str:
    """The result of `fixloop run` with the fixer that `fixloop init --agent` writes; empty if it is `ends`."""
    with place_of(name, script) as place:
        place.run("fixloop", "init", "--agent", name)
        written = place.folder / "fixloop.toml"
        names = json.dumps([*place.agent.get("env", ())])
        written.write_text(re.sub(r"(?m)^env = \[.*?\]", f"env = {names}", written.read_text()))
        place.commit()
        done = place.run("fixloop", "run")
        return "" if ends in done.stdout else f"exit code {done.returncode}\n{done.stdout}{done.stderr}"


def behind_its_hook(name: str, recorded: Path | None) -> str:
    """Faults of its hook, which makes it continue until it fixes the test, and lets it stop if it never does."""
    with place_of(name, script_of(name, WORSE, "", RIGHT, "")) as place:
        place.run("fixloop", "hook", "install", "--agent", name)
        place.works()
        blocks = [*map(_blocks, place.told())]
        if blocks != [False, True, False] or (place.folder / MODULE).read_text() != RIGHT:
            return f"an agent that mends was answered {place.told()}"
        if recorded is not None:
            _record(place, name, recorded)
    with place_of(name, script_of(name, WORSE, "")) as place:
        place.run("fixloop", "hook", "install", "--agent", name)
        place.works()
        blocks = [*map(_blocks, place.told())]
        return (
            "" if blocks == [False, True, True, False] else f"one that never does was answered {place.told()}"
        )


def by_mcp(name: str) -> str:
    """The result of a run whose request the agent claims and answers with the tools of `fixloop mcp`."""

    def script(sent: str, before: int) -> Turn:
        plain = sent.replace("\\", "")
        tools = {
            word: re.search(rf'"name": ?"([\w-]*{word})"', plain) for word in ("claim_work", "submit_fix")
        }
        claim, fence = re.search(r'"claim": ?"([^"]+)"', plain), re.search(r'"fence": ?(\d+)', plain)
        if before == 0 and (tool := tools["claim_work"]):
            return Turn(tool=tool[1], arguments={"wait_seconds": 5})
        if before == 1 and claim and fence and (tool := tools["submit_fix"]):
            return Turn(tool=tool[1], arguments={"claim": claim[1], "fence": int(fence[1]), "patch": PATCH})
        return DONE

    with place_of(name, script) as place:
        place.run("fixloop", "init")
        with (place.folder / "fixloop.toml").open("a") as written:
            written.write('[fixer]\nagent = "coder"\n\n[agent.coder]\n')
        place.commit()
        for file, more in place.agent["mcp"].items():
            path = place.home / file
            settings = json.loads(path.read_text()) if path.exists() else {}
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(settings | more))
        place.run("fixloop", "run")
        place.works()
        done = place.run("fixloop", "resume")
        return "" if done.returncode == 0 else f"exit code {done.returncode}\n{done.stdout}{done.stderr}"


def _blocks(told: str) -> bool:
    return '"deny"' in told or '"block"' in told


def _record(place: Place, name: str, folder: Path) -> None:
    version = version_of(name)
    sent = [file.read_text() for file in sorted(place.calls.glob("*.sent"))]
    today = datetime.now(UTC).date()
    for text, event in ((sent[0], "start"), (sent[1], "stop")):
        plain = text.replace(str(place.home), "/home/me").replace(
            str(place.home).replace("/", "-"), "-home-me"
        )
        (folder / f"{name}-{version}-{event}.json").write_text(plain.strip() + "\n")
        print(f'["{name}-{version}-{event}"]\ndialect = "{name}"\nsource = "recorded on {today}"')


def version_of(name: str) -> str:
    told = subprocess.run(
        [CODING_AGENTS[name].program, "--version"],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    found = re.search(r"\d+(\.\d+)+", told.stdout + told.stderr)
    return found.group() if found else "?"


def main() -> int:
    """Print a line for each agent; 1 if one of them did not finish."""
    parser = argparse.ArgumentParser(prog="python -m tests.live_agents")
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*AGENTS, []], help="of agents.toml")
    parser.add_argument("--record", action="store_true", help="keep what they send")
    asked = parser.parse_args()
    wrong = 0
    for name in asked.names or AGENTS:
        if not shutil.which(CODING_AGENTS[name].program):
            print(f"{name}: its program {CODING_AGENTS[name].program} is not on the PATH")
            continue
        began = time.monotonic()
        declines = script_of(name, "DECLINED test-is-wrong: no\n", into=".fixloop/answer")
        ends = {
            "fixer": as_fixer(name, script_of(name, RIGHT, ""), "#1 shop: passed"),
            "declining": as_fixer(name, declines, "fixer declines, test-is-wrong: no"),
        }
        if name in DIALECTS:
            ends["hook"] = behind_its_hook(name, CALLS if asked.record else None)
        if "mcp" in AGENTS[name]:
            ends["mcp"] = by_mcp(name)
        said = ", ".join(f"{end} {'FAILED' if why else 'held'}" for end, why in ends.items())
        print(f"{name} {version_of(name)}: {said} ({time.monotonic() - began:.0f} s)", flush=True)
        print("".join(f"{end}: {why}\n" for end, why in ends.items() if why), end="")
        wrong += any(ends.values())
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
