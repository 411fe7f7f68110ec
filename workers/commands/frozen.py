"""The environment of checks must not change after the first request for a fix.

Until a run fails, each run stores a listing of its environment at the end, because the submitted project's checks may
add to it; later runs must match the stored listing. A decision on a specialist's error and a manual fix let the next
run store a new one.
"""

import json
from dataclasses import dataclass
from typing import Final

from fixloop.configuration.model import Configuration
from fixloop.errors import InfrastructureError
from fixloop.machine.owner import machine
from workers.steps.step import Step
from workers.workspaces.frozen_environment import changes, environment_of
from workers.workspaces.ground import Ground

RULE: Final = "environment"
"""If it is in `[integrity] off`, nothing is compared."""
TOLD: Final = 3


@dataclass(frozen=True)
class Frozen:
    """The environment of one run."""

    work: Step
    configuration: Configuration
    ground: Ground

    def problem(self) -> str:
        """The differences from the stored listing, in one sentence; empty if there are none or nothing is stored.
        Raises InfrastructureError if the stored listing is missing."""
        digest = self.work.holding.state.environments.get(self._key, "")
        if not digest or not self._is_frozen():
            return ""
        kept = self.work.store.get_artifact(self.work.holding.state.workflow, digest)
        if kept is None:
            raise InfrastructureError(
                f"the listing {digest[:12]} of the environment is missing from the store"
            )
        found = list(changes(json.loads(kept), self._listing()))
        if not found:
            return ""
        shown = "; ".join((*found[:TOLD], *([f"{len(found) - TOLD} more"] if len(found) > TOLD else ())))
        return self.ground.redaction.text(
            f"the environment changed since the snapshot: {shown}; undo that, as only `[workspace] setup` makes "
            "another one where dependency files change"
        )

    def kept(self) -> dict[str, str]:
        """The digest of the listing that the next run must match, by key; empty if nothing is compared."""
        state = self.work.holding.state
        off = self.configuration.integrity.off
        if not state.trusted or RULE in off or "all" in off:
            return {}
        digest = state.environments.get(self._key, "")
        if not digest or not self._is_frozen():
            data = json.dumps(self._listing()).encode()
            digest = self.work.store.put_artifact(state.workflow, data, shared=True)
        return {self._key: digest}

    @property
    def _key(self) -> str:
        return f"{machine()} {self.ground.setup}".strip()

    def _is_frozen(self) -> bool:
        state = self.work.holding.state
        return any(not run.passed for entry in state.specialists for run in entry.runs)

    def _listing(self) -> dict[str, str]:
        checks = (check for entry in self.configuration.specialists for check in entry.checks)
        return environment_of(self.ground, checks)
