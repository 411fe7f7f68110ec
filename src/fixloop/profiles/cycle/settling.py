"""What is settled: blockers that are none any more, and decisions with their reasons (C27, C28, C65)."""

from fixloop.profiles.cycle.outcome import Draft
from fixloop.profiles.cycle.records import Blocker, DecisionRecord
from fixloop.profiles.cycle.statuses import BlockerStatus, DecisionStatus


def resolve(
    draft: Draft,
    blocker: Blocker,
    decision: str,
    resolution: str,
    status: BlockerStatus = BlockerStatus.RESOLVED,
) -> None:
    """A blocker is one no longer (C28)."""
    done = blocker.model_copy(
        update={"status": status, "resolution": resolution or decision, "resolved_at": draft.at}
    )
    draft.replace("blockers", [done])


def record_decision(draft: Draft, by: str, question: str, chosen: str, rationale: str, impact: str) -> None:
    """Every decision has its reason (C27, C65)."""
    draft.append(
        decisions=DecisionRecord(
            id=f"DEC-{len(draft.state.decisions) + 1:03}",
            at=draft.at,
            made_by=by,
            description=question,
            chosen_option=chosen,
            rationale=rationale,
            impact=impact,
            status=DecisionStatus.IMPLEMENTED,
        )
    )
