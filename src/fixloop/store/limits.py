"""The numbers both stores and the Lua scripts go by."""

from typing import Final

LEASE_SECONDS: Final = 9.0
"""Three heartbeats of three seconds: one lost is noise."""
SHARD_LEASE_SECONDS: Final = 2.0
"""How long a sweeper has a shard to itself; well under AWAY_AFTER, so that the next one comes in time."""
HORIZON_SECONDS: Final = 30.0
"""Deadlines are handed out this long before they are due."""
MOST_PER_SWEEP: Final = 200
"""Of each kind, so that a script never holds Redis for long."""
MOST_REJECTED: Final = 100
"""So many broker messages that no worker could take are kept for a look."""
AWAY_AFTER: Final = 5
"""Seconds without a sweep after which the engine counts as away (K34)."""
SEND_AGAIN: Final = 5
"""Seconds after which a due deadline nobody acted on is handed out again."""
DAMAGED_AGAIN: Final = 60
"""Seconds after which something of a damaged workflow is looked at again."""
OVERTAKEN_BY: Final = 10
"""So many younger tickets of its queue were claimed: this one's hint was lost."""
UNHEARD_AFTER: Final = 1
"""Seconds a ticket may be pending although its lane is empty."""
FIRST: Final = 0
"""The priority that is served before all others: of tickets that were offered before, regardless of theirs."""
DONE_KEPT: Final = 16
"""Committed and withdrawn tickets a workflow remembers, for late and repeated answers."""
FORGOTTEN_AT_MOST: Final = 1_000_000
"""Fencing numbers that were given out and that nobody remembers; `fence.lua` has the same."""
CHANGES_KEPT: Final = 1000
"""Of each shard, at least: a reader who was away for a few seconds of 50 busy workers misses none."""

SCRIPT_LIMITS: Final = {
    "AWAY_AFTER": AWAY_AFTER,
    "SEND_AGAIN": SEND_AGAIN,
    "DAMAGED_AGAIN": DAMAGED_AGAIN,
    "OVERTAKEN_BY": OVERTAKEN_BY,
    "UNHEARD_AFTER": UNHEARD_AFTER,
    "FIRST": FIRST,
    "DONE_KEPT": DONE_KEPT,
    "CHANGES_KEPT": CHANGES_KEPT,
}
