"""What agents leave in the repository: specifications, code, reports (D34)."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final, Literal

from fixloop.profiles.handoff import events as ev
from fixloop.profiles.handoff.outcome import Draft
from fixloop.profiles.handoff.records import Made

MOST_CHARACTERS: Final = 3000
"""Of the paths of one run: every snapshot of the workflow carries them."""
_KINDS: Final[dict[str, Literal["spec", "code", "report"]]] = {
    "planner": "spec",
    "builder": "code",
    "reviewer": "report",
    "fixer": "code",
}


def changed(files: Sequence[str]) -> dict[str, Any]:
    """The paths that a run changed, as the events of its end carry them."""
    within = sum(size <= MOST_CHARACTERS for size in accumulate(map(len, files)))
    return {"files": tuple(files[:within]), "file_count": len(files)}


def keep_made(draft: Draft, event: ev.AgentReturned | ev.AgentEscalated) -> None:
    """Record what the sender's present run left; nothing where it changed no file."""
    if event.file_count:
        made = Made(
            agent=event.sender,
            run=draft.state.agent(event.sender).activations,
            kind=_KINDS[event.sender],
            files=event.files,
            count=event.file_count,
        )
        draft.update(made=(*draft.state.made, made))
