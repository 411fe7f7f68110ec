"""Every Redis key of the store, and the assignment of workflows to the 16 shards.

No other module spells a key. All keys of one workflow share the hash tag `{NN}`, so that a script touches only one
shard, on Redis Cluster too. A workflow's id is `{project, 8 hex}-{issue}-{number}`.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from typing import Final, NamedTuple

from fixloop.errors import UsageError

SHARDS: Final = 16
_REMEMBERED: Final = 256
"""How many workflows' parts and shards are cached: a step needs them a dozen times."""
_WORKFLOW: Final = re.compile(r"([0-9a-f]{8})-(\d{1,15})-(\d{1,9})")


class ShardKeys(NamedTuple):
    """The keys that each shard script gets, in the order the scripts unpack them."""

    shard: str
    """Hash: away, turned, swept, sweeper, until, fence, lineage (of the Redis that gave the last fence), and
    `made:{lane}` (tickets offered)."""
    pending: str
    """Sorted set, score 0: `{queue}|{priority}|{number}|{offered at, ms}|{ticket}`, read in name order."""
    leases: str
    """Sorted set: claimed ticket → end of its lease, engine clock."""
    owners: str
    """Hash: claimed ticket → `{fence} {owner}`."""
    due: str
    """Sorted set: workflow → when the sweeper next checks its deadlines, which are in its hash; never too late."""
    delayed: str
    """Sorted set: ticket → earliest time, engine clock."""
    live: str
    """Hash: feature → the number of its live workflow."""
    workflows: str
    """Sorted set: workflow → issue number."""


TOKENS: Final = "fixloop:serve:tokens"
"""Hash: token id → its record, JSON. Keys of `serve` belong to no workflow and have no hash tag."""
TOKENS_USED: Final = "fixloop:serve:used"
"""Hash: token id → when it was last used."""
WEBHOOKS: Final = "fixloop:serve:webhooks"
"""Hash: endpoint id → its record, JSON."""
TRACED: Final = "fixloop:serve:traced"
"""Set: workflows whose traces were sent to a collector."""
CONTACTS: Final = "fixloop:serve:contacts"
"""Hash: contact → role, as last read from the file of contacts."""
CALLS: Final = "fixloop:serve:calls"
"""Hash: workflow and escalation → who was called for it, JSON."""
WAIVERS: Final = "fixloop:waivers"
"""Hash: workflow and a specialist skipped until a date → its record, JSON."""


def served_key(kind: str, name: str) -> str:
    """A temporary key of `serve`: `session`, `code`, `link`, `csrf`, `rate`, `request`, `traced` or `turn`; per
    endpoint `standing` and `sent`."""
    return f"fixloop:serve:{kind}:{name}"


def project_hash(project: str) -> str:
    """The eight hex digits that stand for `project` (any text that names it) in ids."""
    return sha256(project.encode()).hexdigest()[:8]


def workflow_id(project: str, issue: int, number: int) -> str:
    """The id of a feature's `number`-th workflow; `project` is its hash."""
    workflow = f"{project}-{issue}-{number}"
    _parts(workflow)
    return workflow


def is_workflow(text: str) -> bool:
    return _WORKFLOW.fullmatch(text) is not None


def workflow_of(ticket: str) -> str:
    """The workflow that a ticket id belongs to; UsageError if it is no ticket id."""
    workflow, dot, rest = ticket.partition(".")
    if not dot or not rest or _WORKFLOW.fullmatch(workflow) is None:
        raise UsageError(f"{ticket!r} is no ticket id; one begins like 0a1b2c3d-42-1. with its workflow")
    return workflow


def feature_of(workflow: str) -> str:
    """`{project}-{issue}`: shared by all workflows of a feature, which are in the same shard."""
    return "-".join(_parts(workflow)[:2])


def issue_of(workflow: str) -> int:
    return int(_parts(workflow)[1])


def number_of(workflow: str) -> int:
    """The workflow's number within its feature, from 1."""
    return int(_parts(workflow)[2])


def latest_of(workflows: Iterable[str]) -> dict[str, str]:
    """Feature → its newest workflow among `workflows`."""
    return {feature_of(workflow): workflow for workflow in sorted(workflows, key=number_of)}


@lru_cache(_REMEMBERED)
def shard_of(workflow: str) -> int:
    """The shard of a workflow id; UsageError if it is no workflow id."""
    return shard_of_feature(feature_of(workflow))


def shard_of_feature(feature: str) -> int:
    """The shard of `{project}-{issue}`."""
    return sha256(feature.encode()).digest()[0] % SHARDS


def shard_keys(shard: int) -> ShardKeys:
    """The shared keys of one shard; UsageError if there is no such shard."""
    if not 0 <= shard < SHARDS:
        raise UsageError(f"there is no shard {shard}; shards are 0 to {SHARDS - 1}")
    return _SHARD_KEYS[shard]


def workflow_key(workflow: str) -> str:
    """The hash of one workflow: version, head, snapshot, plain fields, tickets, deadlines."""
    return f"{workflow_key_prefix(shard_of(workflow))}{workflow}"


def workflow_key_prefix(shard: int) -> str:
    """The part of `workflow_key` before the workflow id, for scripts that find ids in a shard."""
    return f"{_prefix(shard)}workflow:"


def history_key(workflow: str) -> str:
    """The list of a workflow's history entries."""
    return f"{history_key_prefix(shard_of(workflow))}{workflow}"


def history_key_prefix(shard: int) -> str:
    """The part of `history_key` before the workflow id."""
    return f"{_prefix(shard)}history:"


def artifacts_key(workflow: str) -> str:
    """The hash of a workflow's own artifacts, by digest."""
    return f"{_prefix(shard_of(workflow))}artifacts:{workflow}"


def artifact_key(workflow: str, digest: str) -> str:
    """A shared artifact: one per shard for all workflows that stored the same bytes; it stays when they are removed."""
    return f"{_prefix(shard_of(workflow))}artifact:{digest}"


def is_artifact_key(name: str, digest: str) -> bool:
    """Whether it is the key of a shared artifact with this digest, in any shard."""
    return name in {f"{_prefix(shard)}artifact:{digest}" for shard in range(SHARDS)}


def ended_key(shard: int) -> str:
    """Sorted set of a shard: ended workflow → time of its end, wall clock."""
    return f"{_prefix(shard)}ended"


def retired_key(shard: int) -> str:
    """Hash of a shard: feature → `{number} {archived, purged or set-aside} {when}`, newest removed workflow."""
    return f"{_prefix(shard)}retired"


def changes_key(shard: int) -> str:
    """Stream of a shard: the last commits, each a workflow and the version it made."""
    return f"{_prefix(shard)}changes"


def rejected_keys() -> tuple[str, str]:
    """The list of the last broker messages that no worker could take, and the total count of such messages."""
    return f"{_prefix(0)}rejected", f"{_prefix(0)}rejections"


def lock_key(workflow: str, resource: str) -> str:
    """The lock of a resource in a workflow (K10)."""
    return f"{_prefix(shard_of(workflow))}lock:{workflow}:{resource}"


def number_keys(project: str) -> tuple[str, str]:
    """The set of a project's used issue numbers, and the hash with the lowest number not yet checked."""
    prefix = _prefix(shard_of_feature(project))
    return f"{prefix}numbers:{project}", f"{prefix}next:{project}"


def _prefix(shard: int) -> str:
    return f"fixloop:{{{shard:02}}}:"


@lru_cache(_REMEMBERED)
def _parts(workflow: str) -> tuple[str, ...]:
    match = _WORKFLOW.fullmatch(workflow)
    if match is None:
        raise UsageError(f"{workflow!r} is no workflow id; one looks like 0a1b2c3d-42-1")
    return match.groups()


_SHARD_KEYS: Final = tuple(
    ShardKeys(*(f"{_prefix(shard)}{name}" for name in ShardKeys._fields)) for shard in range(SHARDS)
)
