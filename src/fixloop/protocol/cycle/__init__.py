"""The `cycle` profile: requirements, planning, development and validation in gated rounds (C1-C67).

Reading order: `workers.py` (who there is), `state.py`, `events.py`, `decide.py` (what follows from an event), then
`files.py` and `feedback_log.py` (the named files that are made from a state). Nothing here reads a clock or a file.
"""

from fixloop.protocol.cycle.decide import DECIDE_VERSION, decide

__all__ = ["DECIDE_VERSION", "decide"]
