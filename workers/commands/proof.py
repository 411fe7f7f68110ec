"""Formerly failing tests once more: again, in other conditions, and with what they expect changed.

One more start of pytest, in a fresh workspace, for at most `MOST_TESTS` tests; further ones only where a test failed
there. Where the tests could not be run so, nothing is found.
"""

import json
import posixpath
import re
import tempfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from fixloop.configuration.model import Check
from fixloop.integrity.flip import Flip, flipped
from fixloop.integrity.tool_call import call_of
from fixloop.protocol.checks import Finding
from workers.commands.check_run import Ran
from workers.commands.claim import Claim
from workers.workspaces.ground import Ground, site_of

RULES: Final = frozenset({"flaky", "other-conditions", "flip"})
MOST_TESTS: Final = 20
SHARE: Final = 0.25
"""Of the check's own duration, which its tests may take once more; at least `LEAST_SECONDS`."""
LEAST_SECONDS: Final = 1.0
PLUGIN: Final = "fixloop_proof"
# Read and never imported: pytest is the project's, not ours.
_SOURCE: Final = resources.files("fixloop.integrity") / "proof_plugin.py"
_CASE: Final = re.compile(r"<testcase\b[^>]*")
_NAME: Final = re.compile(r'\bname="([^"]*)"')
_TIME: Final = re.compile(r'\btime="(\d+\.?\d*)"')
SHOWN: Final = "PYTEST_CURRENT_TEST"
Outcomes = Mapping[str, Mapping[str, str]]
"""What became of each test, in each of the runs of a process."""
_OUTCOMES: Final = TypeAdapter(dict[str, dict[str, str]])


def proof(claim: Claim) -> Iterator[Finding]:
    """Tests that failed before the fix and do not pass in all conditions, or pass whatever they expect."""
    is_off = RULES.issubset(claim.configuration.integrity.off)
    if is_off or not any(delta.path.endswith(b".py") for delta in claim.changed):
        return
    failed = {ref.name for run in claim.work.holding.state.active.runs for ref in run.failures}
    for check, ran in zip(claim.checks, claim.ran, strict=True):
        # In the order of its report, which is the usual one.
        tests = [name for name in dict.fromkeys(ran.result.passed_names) if name in failed & ran.result.cases]
        seconds = max(LEAST_SECONDS, SHARE * ran.result.evidence.duration_seconds)
        is_pytest = "junit" in check.report_kinds() and call_of(check.command, {"pytest": 1, "py.test": 1})
        if is_pytest and 0 < len(tests) <= MOST_TESTS and _took(ran, tests) <= seconds:
            yield from _proved(claim, check, tests, seconds)


def _took(ran: Ran, tests: Collection[str]) -> float:
    """How many seconds these tests took, by the check's own report; those of the same name count, too."""
    names = {test.partition("[")[0].rpartition("::")[2] for test in tests}
    reports = (
        path.read_text(errors="replace") for path in ran.reports if path.suffix == ".xml" and path.is_file()
    )
    cases = [(_NAME.search(tag), _TIME.search(tag)) for tag in _CASE.findall("".join(reports))]
    return sum(float(took[1]) for name, took in cases if name and took and name[1].partition("[")[0] in names)


def _proved(claim: Claim, check: Check, tests: list[str], seconds: float) -> Iterator[Finding]:
    site, tip = site_of(claim.work, claim.configuration, claim.cache), claim.work.holding.state.tip
    with replace(site, name=f"{site.name}.2").ground(tip) as ground:
        if ground.problem:
            return
        bases = list(dict.fromkeys(name.partition("[")[0] for name in tests))
        flips = _write_flips(ground.workspace.directory, bases)
        plain = {"name": "plain", "args": bases, "only": tests, "varied": False}
        varied = plain | {"name": "varied", "varied": True}
        flip = plain | {"name": "flipped", "args": sorted(flips), "only": []}
        found = _played(claim, check, ground, [varied, plain, flip], seconds, elsewhere=True)
        again: Outcomes = {}
        if "failed" in {*found.get("varied", {}).values(), *found.get("plain", {}).values()}:
            usual = _played(claim, check, ground, [plain], seconds)
            again = {**usual, **_played(claim, check, ground, [varied], seconds, elsewhere=True)}
    has_failed = "failed" in again.get("plain", {}).values()
    beside = _played(claim, check, claim.ground, [plain], seconds) if has_failed else {}
    flaky, depends = told_apart(found, again, beside)
    for name in flaky:
        text = f"{name} passed, and failed when it ran again on the same tree"
        yield _finding("flaky", text, check, name)
    git = claim.ground.workspace.mirror.git
    # A project that has always read the variable may go on to.
    is_read = depends and git.found("grep", "-l", "-F", "-e", SHOWN, claim.trusted)
    for name in depends if not is_read else []:
        text = f"{name} fails in another order, with another hash seed or where no variable tells of a test"
        yield _finding("other-conditions", text, check, name)
    for copy in sorted(flips.keys() & {name.partition("[")[0] for name in _with(found, "flipped", "passed")}):
        base, changed = flips[copy]
        text = f"{base} passes with another expected value, too: what it looks at equals everything"
        yield _finding("flip", text, check, base, changed)


def told_apart(found: Outcomes, again: Outcomes, beside: Outcomes) -> tuple[list[str], list[str]]:
    """
    The tests that are flaky, and those that depend on conditions.

    `found`: first in other conditions, then in the usual ones; `again`: the same, each in a process of its own;
    `beside`: where the check ran, with the files that no commit has. What fails only without these is neither.
    """
    varied, plain = _with(found, "varied", "failed"), _with(found, "plain", "failed")
    usually = _with(again, "plain", "passed")
    seldom = (varied | plain) & _with(again, "plain", "failed") & _with(beside, "plain", "failed")
    flaky = seldom | (varied & usually & _with(again, "varied", "passed"))
    return sorted(flaky), sorted(varied & usually & _with(again, "varied", "failed"))


def _finding(rule: str, text: str, check: Check, test: str, flip: Flip | None = None) -> Finding:
    more: dict[str, Any] = (
        {} if flip is None else {"line": flip.line, "old": flip.old[:1000], "new": flip.new[:1000]}
    )
    return Finding(rule=rule, text=text, check=check.name, file=test.partition("::")[0], **more)


def _with(found: Outcomes, run: str, outcome: str) -> set[str]:
    return {name for name, ended in found.get(run, {}).items() if ended == outcome}


def _write_flips(directory: Path, bases: Collection[str]) -> dict[str, tuple[str, Flip]]:
    """Copies of the tests' files with one constant of each test changed; the test and its change by the copy's name."""
    found: dict[str, tuple[str, Flip]] = {}
    for file in sorted({base.partition("::")[0] for base in bases}):
        folder, name = posixpath.split(file)
        copy = posixpath.join(folder, f"{name.removesuffix('.py')}_flipped.py")
        try:
            text = (directory / file).read_text(encoding="utf-8")
            within = [base.partition("::")[2] for base in bases if base.startswith(f"{file}::")]
            changed = flipped(text, within)
            if not changed.flips or (directory / copy).exists():
                continue
            (directory / copy).write_text(changed.text, encoding="utf-8")
        except (OSError, UnicodeError):
            continue
        found |= {f"{copy}::{test}": (f"{file}::{test}", flip) for test, flip in changed.flips.items()}
    return found


def _played(
    claim: Claim,
    check: Check,
    ground: Ground,
    runs: list[dict[str, Any]],
    seconds: float,
    *,
    elsewhere: bool = False,
) -> Outcomes:
    """What became of the tests of each run, in one process; nothing where they could not be run so. `elsewhere`: with
    another folder for temporary files and another hash seed."""
    directory, environment = ground.workspace.directory, ground.check_environment(check.env)
    own, argv = Path(tempfile.mkdtemp(prefix="proof-", dir=ground.workspace.scratch)), list(check.command)
    for kind in check.report_kinds():
        argv = [part.replace("{" + kind + "}", str(ground.report_path(check.name, kind))) for part in argv]
    (own / "plugin").mkdir()
    (own / "plugin" / f"{PLUGIN}.py").write_bytes(_SOURCE.read_bytes())
    addopts = environment.get("PYTEST_ADDOPTS", "")
    at = [run | {"args": [f"{directory}/{name}" for name in run["args"]]} for run in runs if run["args"]]
    told = {"root": str(directory), "seconds": seconds, "results": str(own / "results"), "addopts": addopts}
    (own / "told").write_text(json.dumps(told | {"runs": at}))
    environment |= {
        "FIXLOOP_PROOF": str(own / "told"),
        "PYTEST_ADDOPTS": f"{addopts} -p {PLUGIN}",
        "PYTHONPATH": f"{own / 'plugin'}:{environment.get('PYTHONPATH', '')}",
    }
    # Short: a socket's path has at most 108 characters.
    with tempfile.TemporaryDirectory(prefix="t") as temporary:
        if elsewhere:
            environment = {"PYTHONHASHSEED": "4241", **environment, "TMPDIR": temporary}
        if claim.run(argv, directory, environment) is None:
            return {}
    try:
        # The code that is tested could have written there, too.
        return _OUTCOMES.validate_json((own / "results").read_bytes())
    except (OSError, ValueError):
        return {}
