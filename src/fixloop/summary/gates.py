"""The eleven gates (U3), computed from evidence: a gate without a deciding check never passes."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from fixloop.protocol.checks import Evidence
from fixloop.protocol.failures import Failure
from fixloop.protocol.specialists import Status, specialist as slot
from fixloop.protocol.state import SpecialistState, State
from fixloop.summary.history import Recorded
from fixloop.summary.model import Gate, GateState, one_line


class _Judged(NamedTuple):
    """A specialist's last run with a result."""

    passed: bool
    tree: str
    evidence: tuple[Evidence, ...]
    failures: tuple[Failure, ...]


class _Gate(NamedTuple):
    name: str
    specialist: str
    words: frozenset[str] = frozenset()
    """A check with one of these words in its name or command decides the gate; empty: every other check does."""


#: Words of a check's name count before those of its command, and the first one with a meaning decides.
_FORMATTING: Final = frozenset({"format", "formatting", "fmt", "black", "isort", "yapf", "prettier", "gofmt"})
_TYPES: Final = frozenset(
    {"mypy", "pyright", "basedpyright", "pytype", "pyre", "ty", "tsc", "type", "types", "typing", "typecheck"}
)
_LINT: Final = frozenset(
    {"lint", "linting", "linter", "ruff", "flake8", "pylint", "eslint", "clippy", "docstrings", "vet"}
)
_OWASP: Final = frozenset({"owasp", "zap"})
_WCAG: Final = frozenset({"wcag", "axe", "pa11y", "a11y", "accessibility", "lighthouse"})
_COVERAGE: Final = "coverage"

_GATES: Final = (
    _Gate("Unit tests written", "unit-test"),
    _Gate("Integration tests written", "integration-test"),
    _Gate("All tests pass", "test-runner"),
    _Gate(_COVERAGE, "test-runner"),
    _Gate("Linting", "code-quality", _LINT),
    _Gate("Type checking", "code-quality", _TYPES),
    _Gate("Formatting", "code-quality", _FORMATTING),
    _Gate("Security scan", "security"),
    _Gate("OWASP Top 10", "security", _OWASP),
    _Gate("E2E user flows", "e2e-accessibility"),
    _Gate("WCAG 2.1 AA", "e2e-accessibility", _WCAG),
)
_WORD: Final = re.compile(r"[a-z0-9]+")
_USUAL_COVERAGE: Final = 80.0
_MOST_NAMES: Final = 3


def gates(state: State, entries: Iterable[Recorded]) -> tuple[Gate, ...]:
    """The state of each gate, in the order of the phases, by each specialist's last run that passed or failed."""
    judged: dict[str, _Judged] = {}
    for entry in entries:
        run = entry.run
        if run is None or run.outcome == "skipped":
            continue
        # An error that is retried is neither.
        failed = any(change == (run.specialist, Status.FAIL.value) for change in entry.effect.changes)
        if failed or run.outcome == "passed":
            judged[run.specialist] = _Judged(not failed, run.tree, run.evidence, run.failures)
    return tuple(_decided(gate, state, judged.get(gate.specialist)) for gate in _GATES)


def _decided(gate: _Gate, state: State, run: _Judged | None) -> Gate:
    entry, name = state.specialist(gate.specialist), gate.name
    if gate.name == _COVERAGE:
        demanded = [e.coverage_gate for e in run.evidence if e.coverage_gate is not None] if run else []
        name = f"Coverage ≥ {max(demanded, default=_USUAL_COVERAGE):g}%"
    phase = slot(entry.name).phase
    if not entry.applicable:
        skipped = f"every check was skipped: {', '.join(entry.skipped_checks)}"
        found, why = GateState.NOT_APPLICABLE, skipped if entry.skipped_checks else f"{phase} does not apply"
    elif run is not None and gate.name == _COVERAGE:
        measured = [e for e in run.evidence if e.coverage_percent is not None and e.coverage_gate is not None]
        found, why = GateState.NOT_APPLICABLE, "no check measures it against a gate"
        if measured:
            reached = all((e.coverage_percent or 0.0) >= (e.coverage_gate or 0.0) for e in measured)
            found = GateState.PASS if reached else GateState.FAIL
            why = ", ".join(f"{e.coverage_percent:.1f}% by {e.check}" for e in measured)
    elif run is not None:
        found, why = _by_checks(gate, entry, run)
    elif entry.skipped:
        found, why = GateState.NOT_APPLICABLE, "skipped by a person before any check decided it"
    else:
        begun = entry.status is not Status.PENDING
        found, why = GateState.PENDING, f"{phase} has {'no result yet' if begun else 'not begun'}"
    if found is GateState.PASS and run is not None and run.tree != state.tree and not entry.skipped:
        found, why = GateState.PENDING, f"{why}, but on an earlier tree: to be confirmed"
    elif found is GateState.FAIL and entry.skipped:
        why = f"{why}; skipped by a person"
    return Gate(name=name, specialist=gate.specialist, state=found, why=one_line(why, 500))


def _by_checks(gate: _Gate, entry: SpecialistState, run: _Judged) -> tuple[GateState, str]:
    deciding = [e for e in run.evidence if _family(gate.specialist, e.check, e.command) == gate.words]
    unnamed = {failure.check for failure in run.failures} - {e.check for e in run.evidence}
    if unnamed or (not run.evidence and not run.passed):
        names = [failure.name for failure in run.failures]
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        broken = f"fails: {', '.join(names[:_MOST_NAMES])}{more}"
        return GateState.FAIL, broken if names else "it failed and named no failure"
    if not deciding:
        skipped = [name for name in entry.skipped_checks if _family(gate.specialist, name, "") == gate.words]
        why = f"skipped: {', '.join(skipped)}" if skipped else "no check decides it"
        return GateState.NOT_APPLICABLE, why
    failed = [e for e in deciding if _failures(gate, e, run)]
    if failed:
        return GateState.FAIL, "; ".join(_shown(e, len(_failures(gate, e, run))) for e in failed)
    return GateState.PASS, "; ".join(_shown(e) for e in deciding)


def _family(specialist: str, name: str, command: str) -> frozenset[str]:
    """The words of the gate that a check decides; none for the specialist's general one."""
    # Options define the output (`--format`) and folders the scope; neither shows what is checked.
    parts = command.replace(specialist, "").split()
    arguments = (part.rpartition("/")[2] for part in parts if part[0] != "-" and "=" not in part)
    named = "" if name in (specialist, "ruff") else name  # ruff lints and formats: its command tells which
    for words in (_WORD.findall(named.casefold()), _WORD.findall(" ".join(arguments).casefold())):
        for word, following in pairwise([*words, ""]):
            told = following if (word, following) == ("ruff", "format") else word
            for gate in _GATES:
                if gate.specialist == specialist and told in gate.words:
                    return gate.words
    return frozenset()


def _failures(gate: _Gate, evidence: Evidence, run: _Judged) -> Sequence[Failure]:
    """The check's failures; measured coverage belongs to another gate (G24)."""
    if run.passed:
        return ()
    of_check = [failure for failure in run.failures if failure.check == evidence.check]
    if gate.specialist == "test-runner" and evidence.coverage_percent is not None:
        return [failure for failure in of_check if not failure.measure]
    return of_check


def _shown(evidence: Evidence, failed: int = 0) -> str:
    counts = evidence.counts
    if failed:
        return f"{evidence.check}: {failed} failure{'s' * (failed != 1)}"
    if evidence.old:
        return f"{evidence.check}: {evidence.compared(failed)}"
    if counts.total:
        skipped = f", {counts.skipped} skipped" if counts.skipped else ""
        return f"{evidence.check}: {counts.passed} of {counts.total} passed{skipped}"
    return f"{evidence.check}: exit code {evidence.exit_code}"
