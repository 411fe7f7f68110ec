"""The limits that both stores and the Lua scripts use."""

from typing import Final

LEASE_SECONDS: Final = 9.0
"""Three heartbeats of three seconds: losing one is normal."""
SHARD_LEASE_SECONDS: Final = 2.0
"""How long a sweeper keeps a shard; well under AWAY_AFTER, so that the next sweeper is in time."""
HORIZON_SECONDS: Final = 30.0
"""How long before they are due deadlines are handed out."""
MOST_PER_SWEEP: Final = 200
"""The most items of each kind, so that a script never blocks Redis for long."""
MOST_REJECTED: Final = 100
"""How many broker messages that no worker could take are kept for inspection."""
AWAY_AFTER: Final = 5
"""Seconds without a sweep after which the engine counts as away (K34)."""
SEND_AGAIN: Final = 5
"""Seconds after which a due deadline that nobody acted on is handed out again."""
DAMAGED_AGAIN: Final = 60
"""Seconds after which an item of a damaged workflow is checked again."""
OVERTAKEN_BY: Final = 10
"""If so many younger tickets of its lane were claimed, a ticket's hint was lost."""
UNHEARD_AFTER: Final = 1
"""Seconds a ticket may be pending although the broker has no message in its lane."""
FIRST: Final = 0
"""The priority served before all others: for tickets that are offered again, whatever their own."""
DONE_KEPT: Final = 16
"""How many committed and withdrawn tickets a workflow remembers, to answer late and repeated commits."""
FORGOTTEN_AT_MOST: Final = 1_000_000
"""The most fencing numbers that a restarted Redis may have given out and lost; `fence.lua` has the same."""
CHANGES_KEPT: Final = 1000
"""Per shard, at least: enough for a reader that was away for a few seconds of 50 busy workers."""
