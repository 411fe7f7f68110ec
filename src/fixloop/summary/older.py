"""The failures that the base has too, as a report counts them: those of each check's last run."""

from collections.abc import Iterable, Iterator
from typing import Final

from pydantic import ValidationError

from fixloop.protocol.checks import Evidence, OldFailures
from fixloop.protocol.state import FailureRef
from fixloop.summary.clean import one_line
from fixloop.summary.model import OldRow
from fixloop.summary.phases import finding_of
from fixloop.summary.recorded import Artifact, Recorded

SHOWN: Final = 20


def old_rows(entries: Iterable[Recorded], artifact: Artifact) -> Iterator[OldRow]:
    """A row for each check whose last run found what the base has too."""
    last = {run.specialist: run for entry in entries if (run := entry.run) is not None and run.evidence}
    for specialist, run in last.items():
        for evidence in run.evidence:
            if evidence.old:
                yield _row(specialist, evidence, _listed(evidence, artifact))


def _listed(evidence: Evidence, artifact: Artifact) -> OldFailures:
    """The list, or the figures alone where it is gone."""
    data = artifact(evidence.old_failures)
    try:
        return OldFailures.model_validate_json(data or b"")
    except ValidationError:
        return OldFailures(base=evidence.base, count=evidence.old)


def _row(specialist: str, evidence: Evidence, listed: OldFailures) -> OldRow:
    return OldRow(
        specialist=specialist,
        check=one_line(evidence.check),
        base=evidence.base,
        count=evidence.old,
        by_name=_largest(listed.by_name),
        by_file=_largest(listed.by_file),
        first=tuple(map(finding_of, map(FailureRef.of, listed.first[:SHOWN]))),
    )


def _largest(counts: dict[str, int]) -> tuple[tuple[str, int], ...]:
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return tuple((one_line(name) or "no file", count) for name, count in ranked[:SHOWN])
