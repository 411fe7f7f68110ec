"""The `handoff` profile: planner → builder → reviewer ⇄ fixer, each task passed on in a handoff (D1-D56).

Reading order: `routes.py` (who passes what to whom), `records.py`, `state.py`, `events.py`, `decide.py` (what follows
from an event), then `files.py` and `metrics.py`. Nothing here reads a clock or a file.
"""

from fixloop.protocol.handoff.decide import DECIDE_VERSION, decide

__all__ = ["DECIDE_VERSION", "decide"]
