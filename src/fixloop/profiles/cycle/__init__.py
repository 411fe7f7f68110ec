"""The `cycle` profile: requirements, planning, development and validation in gated rounds (C1-C67).

Reading order: `workers.py` (the agents), `records.py`, `state.py`, `events.py`, `decide.py` (the decisions), then
`files.py` (the named files that are rendered from a state). None of these reads a clock or a file.
"""

from typing import Final

from fixloop.profile_table import Registered

REGISTERED: Final = Registered(
    name="cycle",
    summary="requirements, planning, development, validation",
    queues=("cycle",),
    engine="fixloop.profiles.cycle.engine:CYCLE",
    intake="fixloop.profiles.cycle.intake:INTAKE",
    presenter="fixloop.profiles.cycle.presenter:PRESENTER",
    handlers="fixloop.profiles.cycle.handlers:HANDLERS",
    steps="workers.steps.cycle_steps:STEPS",
    following="workflows.cycle:following",
    options=("--task", "--task-file", "--plan"),
    agents=("ra", "ep", "cd", "vas"),
    settings="fixloop.configuration.roles:cycle_settings",
    plural="cycles",
    results="reports",
    outside="fixloop.profiles.cycle.handlers:OUTSIDE",
    requests="fixloop.profiles.cycle.prompt:request",
    agent_runs="fixloop.profiles.cycle.agent_output:AGENT_RUNS",
    files="fixloop.profiles.cycle.files:FILES",
    order="fixloop.profiles.cycle.workers:ORDER",
    scripts="fixloop.profiles.cycle.scripts:SCRIPTS",
)
