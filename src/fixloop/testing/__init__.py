"""Runs the engine without a tool, an agent or a repository, for tests, benchmarks and chaos runs, including yours.

`FIXLOOP_CREW=fixloop.testing:scripted_crew` makes a worker use the scripted crew. The feature's name scripts its
actions: see `fixloop.testing.script` for the words, `AGENTS` for agents by name. `rehearse` plays a workflow in memory
on a virtual clock, and `fixloop chaos` compares real, injured workflows with that.
"""

from fixloop.testing.crew import ScriptedCrew, ScriptedError, scripted_crew
from fixloop.testing.rehearsal import Answer, Rehearsal, Story, rehearse, told, undisturbed
from fixloop.testing.script import AGENTS, Agent, Script, Word, script_of

__all__ = [
    "AGENTS",
    "Agent",
    "Answer",
    "Rehearsal",
    "Script",
    "ScriptedCrew",
    "ScriptedError",
    "Story",
    "Word",
    "rehearse",
    "script_of",
    "scripted_crew",
    "told",
    "undisturbed",
]
