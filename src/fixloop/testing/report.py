"""What a chaos run is asked for, and what came of it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from fixloop.testing.contrast import Contrast
from fixloop.testing.executions import Execution
from fixloop.testing.injuries import AppliedInjury, Takeover
from fixloop.testing.networks import Network
from fixloop.testing.plan import Plan
from fixloop.testing.site import INJURED, Site
from fixloop.testing.verdict import Verdict, resumptions, unexplained

ENOUGH: Final = 0.9
"""So much of the plan has to be done, or the run says nothing."""


class Order(NamedTuple):
    workflows: int
    kills: int
    seed: int
    concurrency: int = 2
    """Work processes of each of the two workers."""
    contrast: bool = False
    """Whether bare Celery chains are injured by the same plan, too."""
    twice: bool = False
    """Whether every message is delivered twice, from the first to the last."""
    profile: str = "validation"
    network: Network = "auto"
    """How workers are cut off: by network namespaces where they can be made, or by the relay."""


class Report(NamedTuple):
    order: Order
    planned: Counter[str]
    """Injuries by kind."""
    done: Counter[str]
    """Those that took effect."""
    executions: int
    repeated: int
    """Executions of a ticket after its first."""
    unexplained: tuple[Execution, ...]
    resumptions: tuple[float, ...]
    """Seconds from each death of a work process until its step began again elsewhere, the shortest first."""
    verdicts: tuple[Verdict, ...] = ()
    """Of the injured workflows."""
    left_alone: tuple[Verdict, ...] = ()
    """Of the undisturbed ones: what is wrong there is no injury's fault."""
    undisturbed_seconds: float = 0.0
    injured_seconds: float = 0.0
    surplus: int = 0
    """Deliveries of tickets that were not to be had."""
    contrast: Contrast | None = None
    """What came of the bare chains, if they were wanted."""
    copies: int = 0
    """Messages that were delivered twice."""
    network: str = ""
    """How workers were cut off, where they have a network."""

    @property
    def lost(self) -> int:
        """Workflows that are not there, or ended otherwise than undisturbed."""
        return sum(bool(one.lost) for one in self.verdicts)

    @property
    def doubled(self) -> int:
        return sum(len(one.doubled) for one in self.verdicts)

    @property
    def stuck(self) -> int:
        return sum(one.stuck for one in self.verdicts)

    @property
    def verified(self) -> int:
        """Histories in which nothing was changed, and whose decisions come out the same again."""
        return sum(not one.problems for one in self.verdicts)

    @property
    def astray(self) -> int:
        return sum(not one.is_well for one in self.left_alone)

    @property
    def is_well(self) -> bool:
        """Whether nothing at all is wrong, and the plan took effect."""
        found = self.lost + self.doubled + self.stuck + len(self.unexplained) + self.astray
        return not found and self.verified == len(self.verdicts) and self.is_injured

    @property
    def is_injured(self) -> bool:
        """Whether injuries of every planned kind took effect, and of all but a few that came too late."""
        every = all(self.done[kind] for kind in self.planned)
        doubled = self.copies > 0 or not self.order.twice
        return every and doubled and self.done.total() >= ENOUGH * self.planned.total()

    def document(self) -> dict[str, object]:
        return {
            "profile": self.order.profile,
            "workflows": self.order.workflows,
            "seed": self.order.seed,
            "injuries": dict(self.done),
            "planned": dict(self.planned),
            "network": self.network,
            "messages_twice": self.copies,
            "lost": self.lost,
            "doubled": self.doubled,
            "effects": sum(one.steps for one in self.verdicts),
            "fixes": sum(one.fixes for one in self.verdicts),
            "executions": self.executions,
            "repeated": self.repeated,
            "unexplained": [one.ticket for one in self.unexplained],
            "stuck": self.stuck,
            "verified": self.verified,
            "histories": len(self.verdicts),
            "astray": self.astray,
            "resumed_seconds": [round(seconds, 3) for seconds in self.resumptions],
            "surplus_deliveries": self.surplus,
            "undisturbed_seconds": round(self.undisturbed_seconds, 3),
            "injured_seconds": round(self.injured_seconds, 3),
            "contrast": self.contrast._asdict() if self.contrast is not None else None,
            "well": self.is_well,
        }


def reported(
    order: Order,
    planned: Plan,
    injuries: Sequence[AppliedInjury],
    executions: Sequence[Execution],
    takeovers: Iterable[Takeover] = (),
    host_of: Mapping[int, str] = MappingProxyType({}),
) -> Report:
    """What was done and what the agents wrote down while it was; verdicts and times are to be added."""
    return Report(
        order=order,
        planned=Counter(injury.value for injury in planned.values()),
        done=Counter(applied.injury.value for applied in injuries if applied.took_effect),
        executions=len(executions),
        repeated=len(executions) - len({execution.ticket for execution in executions}),
        unexplained=tuple(unexplained(executions, injuries, takeovers, host_of)),
        resumptions=tuple(resumptions(executions, injuries)),
    )


def reported_by(place: Site, order: Order, planned: Plan) -> Report:
    """The same, with what the injurer of a site saw pass by."""
    injurer = place.injurer
    executions = [one for one in place.executions() if one.ticket.startswith(INJURED)]
    found = reported(order, planned, injurer.injuries, executions, injurer.takeovers, injurer.host_of)
    return found._replace(
        copies=injurer.doubled,
        network=place.networks.told,
        surplus=injurer.answers.total() - injurer.answers["ok"],
    )
