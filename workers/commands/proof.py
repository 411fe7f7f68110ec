"""Formerly failing tests once more: again, in other conditions, and with what they expect changed.

One more start of pytest, in a fresh workspace, for at most `MOST_TESTS` tests; a second one only where a test failed
there. Where the tests could not be run so, nothing is found.
"""

import json
import posixpath
import re
import tempfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

from fixloop.configuration.model import Check
from fixloop.integrity import proof_plugin
from fixloop.integrity.flip import Flip, flipped
from fixloop.protocol.checks import Finding
from workers.commands.check_run import Ran
from workers.commands.claim import Claim
from workers.workspaces.ground import Ground, site_of

MOST_TESTS: Final = 20
SHARE: Final = 0.25
"""Of the check's own duration, which its tests may take once more; at least `LEAST_SECONDS`."""
LEAST_SECONDS: Final = 1.0
PLUGIN: Final = "fixloop_proof"
_CASE: Final = re.compile(r"<testcase\b[^>]*")
_NAME: Final = re.compile(r'\bname="([^"]*)"')
_TIME: Final = re.compile(r'\btime="(\d+\.?\d*)"')
Outcomes = Mapping[str, Mapping[str, str]]


def proof(claim: Claim) -> Iterator[Finding]:
    """Tests that failed before the fix and do not pass in all conditions, or pass whatever they expect."""
    if not any(delta.path.endswith(b".py") for delta in claim.changed):
        return
    failed = {ref.name for run in claim.work.holding.state.active.runs for ref in run.failures}
    for check, ran in zip(claim.checks, claim.ran, strict=True):
        tests = sorted(failed & ran.result.cases)
        seconds = max(LEAST_SECONDS, SHARE * ran.result.evidence.duration_seconds)
        if 0 < len(tests) <= MOST_TESTS and _is_pytest(check) and _took(ran, tests) <= seconds:
            yield from _proved(claim, check, tests, seconds)


def _is_pytest(check: Check) -> bool:
    words = {PurePosixPath(word).name for part in check.command for word in part.split()}
    return "junit" in check.report_kinds() and not words.isdisjoint({"pytest", "py.test"})


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
    with replace(site, name=f"{site.name}.proof").ground(tip) as ground:
        if ground.problem:
            return
        bases = sorted({name.partition("[")[0] for name in tests})
        flips = _write_flips(ground.workspace.directory, bases)
        again = {"name": "again", "args": bases, "only": tests, "varied": False}
        runs = [again | {"name": "varied", "varied": True}, again]
        if flips:
            runs.append({"name": "flipped", "args": sorted(flips), "only": [], "varied": False})
        found = _played(claim, check, ground, runs, seconds)
    red = _with(found, "varied", "failed") | _with(found, "again", "failed")
    if red:
        plain = _played(claim, check, claim.ground, [again | {"name": "plain"}], seconds)
        flaky = red & _with(plain, "plain", "failed")
        for name in sorted(flaky):
            yield _finding(
                "flaky", f"{name} passed, and failed when it ran again on the same tree", check, name
            )
        varied = _with(found, "varied", "failed") & _with(plain, "plain", "passed")
        for name in sorted(varied):
            text = f"{name} fails in another order, folder or hash seed, or where no variable tells of a test"
            yield _finding("other-conditions", text, check, name)
    for name in sorted(_with(found, "flipped", "passed")):
        base, flip = flips[name.partition("[")[0]]
        text = f"{base} passes with another expected value, too: what it looks at equals everything"
        yield _finding("flip", text, check, base, flip)


def _finding(rule: str, text: str, check: Check, test: str, flip: Flip | None = None) -> Finding:
    more = {} if flip is None else {"line": flip.line, "old": flip.old[:1000], "new": flip.new[:1000]}
    return Finding(rule=rule, text=text, check=check.name, file=test.partition("::")[0], **more)


def _with(found: Outcomes, run: str, outcome: str) -> set[str]:
    return {name for name, ended in found.get(run, {}).items() if ended == outcome}


def _write_flips(directory: Path, bases: Collection[str]) -> dict[str, tuple[str, Flip]]:
    """Copies of the tests' files with one constant of each test changed; the test and its change by the copy's name."""
    found = {}
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
    claim: Claim, check: Check, ground: Ground, runs: list[dict[str, Any]], seconds: float
) -> Outcomes:
    """What became of the tests of each run; nothing where they could not be run so."""
    directory, environment = ground.workspace.directory, ground.check_environment(check.env)
    own, argv = Path(tempfile.mkdtemp(prefix="proof-", dir=ground.workspace.scratch)), list(check.command)
    for kind in check.report_kinds():
        argv = [part.replace("{" + kind + "}", str(ground.report_path(check.name, kind))) for part in argv]
    (own / "plugin").mkdir()
    (own / "plugin" / f"{PLUGIN}.py").write_bytes(Path(proof_plugin.__file__).read_bytes())
    addopts = environment.get("PYTEST_ADDOPTS", "")
    at = [run | {"args": [f"{directory}/{name}" for name in run["args"]]} for run in runs]
    told = {"root": str(directory), "seconds": seconds, "results": str(own / "results"), "addopts": addopts}
    (own / "told").write_text(json.dumps(told | {"runs": at}))
    environment |= {
        "FIXLOOP_PROOF": str(own / "told"),
        "PYTEST_ADDOPTS": f"{addopts} -p {PLUGIN}",
        "PYTHONPATH": f"{own / 'plugin'}:{environment.get('PYTHONPATH', '')}",
    }
    # Short: a socket's path has at most 108 characters.
    with tempfile.TemporaryDirectory(prefix="t") as temporary:
        if any(run["varied"] for run in runs):
            environment = {"PYTHONHASHSEED": "4241", **environment, "TMPDIR": temporary}
        if claim.run(argv, directory, environment) is None:
            return {}
    try:
        found: Outcomes = json.loads((own / "results").read_bytes())
    except (OSError, ValueError):
        return {}
    return found
