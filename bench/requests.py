"""How long requests are, and how much of them is facts: for 1, 10, 271 and 2,000 failures of real pytest runs.

    python -m bench.requests            the table
    python -m bench.requests --show 10  one request, as an agent reads it

Facts are what would be otherwise in another request: everything inside fences, and outside of them names, places,
command lines and the numbers of the request. The frame is every other character.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.configuration.model import Check
from fixloop.engine.engine import Engine
from fixloop.engine.history import open_report
from fixloop.protocol.checks import Evidence
from fixloop.protocol.events import ReportDelivered, RunFinished, WorkflowStarted
from fixloop.protocol.markdown import line
from fixloop.protocol.messages import FailureReport, FixRequest, Message
from fixloop.protocol.rendering import render_delivery
from fixloop.reports.examples import with_examples, without_reports
from fixloop.reports.verdict import judge
from tests.fixtures.memory_store import MemoryStore

WORKFLOW: Final = "0a1b2c3d-47-1"
COMMAND: Final = ("python", "-m", "pytest", "--junitxml={junit}")


class Size(NamedTuple):
    """A project with so many failures, and what its request may come to."""

    failures: int
    files: Mapping[str, str]
    most_characters: int


def request_of(files: Mapping[str, str], folder: Path) -> Message:
    """The failure report, with its request, of a project's tests."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    report = folder.parent / "junit.xml"
    argv = (sys.executable, *COMMAND[1:-1], f"--junitxml={report}", "-q", "-p", "no:cacheprovider")
    done = subprocess.run(
        argv, cwd=folder, env={"PYTHONPATH": "src"}, capture_output=True, text=True, check=False
    )
    result = judge(
        Check(name="pytest", command=COMMAND),
        exit_code=done.returncode,
        output=done.stdout + done.stderr,
        reports={"junit": report},
        workspace=folder,
        evidence=Evidence(
            check="pytest", command=" ".join(COMMAND), reproduce=" ".join(without_reports(COMMAND))
        ),
    )
    result = with_examples(result, without_reports(COMMAND), folder, str)
    store = MemoryStore(lambda: datetime.now(UTC))
    engine = Engine(store)
    started = WorkflowStarted(
        workflow=WORKFLOW, issue=47, name="checkout", specialists=("test-runner",), tree="t", tip="c"
    )
    engine.start(started)
    finished = RunFinished(
        step="validate",
        specialist="test-runner",
        iteration=1,
        outcome="failed",
        tree="t",
        failures=result.failures,
        evidence=(result.evidence,),
    )
    engine.apply(WORKFLOW, finished, operation="run")
    engine.apply(WORKFLOW, ReportDelivered(specialist="test-runner", iteration=1), operation="report")
    found = store.read(WORKFLOW)
    return open_report(store, WORKFLOW, found.version if found is not None else 0).message


def facts_in(report: Message, text: str) -> int:
    """How many characters of a delivery are facts."""
    inside, outside, opened = 0, [], ""
    for row in text.split("\n"):
        ticks = row[: len(row) - len(row.lstrip("`"))]
        if not opened and len(ticks) >= 3:
            opened = ticks
        elif opened and row == opened:
            opened = ""
        elif opened:
            inside += len(row) + 1
        else:
            outside.append(row)
    rest = "\n".join(outside)
    for fact in sorted(_inline(report), key=len, reverse=True):
        shown = line(fact)
        inside += len(shown) * rest.count(shown)
        rest = rest.replace(shown, "")
    return inside


def _inline(report: Message) -> set[str]:
    body, request = report.body, report.attached.body if report.attached is not None else None
    assert isinstance(body, FailureReport)
    assert isinstance(request, FixRequest)
    found = {body.feature, body.phase, *request.commands}
    found |= {f"#{report.issue}", f"{report.iteration} of {report.max_iterations}"}
    found |= {f"FIXREQ-{report.issue}-{report.iteration}", f"fixloop fixed {report.issue} --blocked WHY"}
    for failure in body.failures:
        found |= {failure.name, failure.frame, failure.location, failure.rerun}
        for other in failure.others:
            number, _, name = other.partition(" ")
            # The beginning that all names of a list share may end anywhere behind a part of a name.
            ends = [place + 1 for place, letter in enumerate(name) if letter in "/:"]
            found |= {f"{number} {name[end:]}" for end in (0, *ends)}
    return {fact for fact in found if len(fact) > 1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", type=int, choices=[size.failures for size in SIZES])
    shown = parser.parse_args().show
    if shown is None:
        print("failures  characters  at most  frame  facts")
    for size in SIZES:
        if shown in (None, size.failures):
            with tempfile.TemporaryDirectory() as folder:
                report = request_of(size.files, Path(folder) / "project")
            text = render_delivery(report)
            facts = facts_in(report, text)
            frame, share = len(text) - facts, facts / len(text)
            row = f"{size.failures:8}  {len(text):10}  {size.most_characters:7}  {frame:5}  {share:5.0%}"
            print(row if shown is None else text)


_SIGNER: Final = '''"""Signing values."""

import hashlib


def derive(secret, kind):
    """The key for a kind of derivation."""
    if kind == "concat":
        return hashlib.sha256(secret).digest()
    raise TypeError("Unknown key derivation method")


def sign(secret, value, kind="django-concat"):
    return derive(secret, kind).hex() + "." + value


def parse(text):
    head, tail = text.split(":")
    return head, int(tail)
'''


def _shop() -> dict[str, str]:
    test = (
        "from shop.signer import sign\n\n\n"
        "def test_a_value_is_signed():\n    assert sign(b'k', 'v').endswith('.v')\n"
    )
    return {"src/shop/__init__.py": "", "src/shop/signer.py": _SIGNER, "tests/test_signer.py": test}


def _several_causes() -> dict[str, str]:
    test = (
        "import pytest\n\nfrom shop.signer import parse, sign\n\n\n"
        "@pytest.mark.parametrize('value', ['a', 'b', 'c', 'd', 'e', 'f'])\n"
        "def test_a_value_is_signed(value):\n    assert sign(b'k', value)\n\n\n"
        "@pytest.mark.parametrize('text', ['a', 'b:c:d'])\n"
        "def test_text_is_parsed(text):\n    assert parse(text)\n\n\n"
        "def test_numbers():\n    print('reading 3')\n    assert parse('a:3') == ('a', 4)\n\n\n"
        "def test_head():\n    assert parse('a:x')[0] == 'a'\n"
    )
    return _shop() | {"tests/test_signer.py": test}


def _two_causes() -> dict[str, str]:
    test = (
        "import pytest\n\nfrom shop.signer import parse, sign\n\n\n"
        "@pytest.mark.parametrize('number', range(218))\n"
        "def test_signed(number):\n    assert sign(b'k', str(number))\n\n\n"
        "@pytest.mark.parametrize('number', range(53))\n"
        "def test_parsed(number):\n    assert parse(f'a{number}')\n"
    )
    return _shop() | {"tests/test_signer.py": test}


def _many_causes(modules: int = 20, functions: int = 5, cases: int = 20) -> dict[str, str]:
    """Each function fails by itself, for each of its cases. Small files: pytest parses one for each failure in it."""
    files = {"src/shop/__init__.py": ""}
    for module in range(modules):
        numbers = range(module * functions, (module + 1) * functions)
        files[f"src/shop/steps_{module}.py"] = "\n\n".join(
            f"def step_{n}(value):\n    total = value * {n}\n    if total >= 0:\n"
            f"        raise ValueError(f'step {n} of {{value}}')\n"
            for n in numbers
        )
        files[f"tests/test_steps_{module}.py"] = (
            f"import pytest\n\nfrom shop import steps_{module}\n\n\n"
            + "\n\n".join(
                f"@pytest.mark.parametrize('value', range({cases}))\n"
                f"def test_step_{n}(value):\n    assert steps_{module}.step_{n}(value) == value\n"
                for n in numbers
            )
        )
    return files


SIZES: Final = (
    Size(1, _shop(), 1500),
    Size(10, _several_causes(), 6000),
    Size(271, _two_causes(), 40_000),
    Size(2000, _many_causes(), 40_000),
)

if __name__ == "__main__":
    main()
