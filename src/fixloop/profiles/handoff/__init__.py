"""The `handoff` profile: planner → builder → reviewer ⇄ fixer, each task passed on in a handoff (D1-D56).

Reading order: `routes.py` (who passes what to whom), `records.py`, `state.py`, `events.py`, `decide.py` (the
decisions), then `files.py`. Nothing here reads a clock or a file.
"""

from typing import Final

from fixloop.profile_table import Registered

REGISTERED: Final = Registered(
    name="handoff",
    summary="planner, builder, reviewer, fixer",
    queues=("handoff",),
    engine="fixloop.profiles.handoff.engine:HANDOFF",
    intake="fixloop.profiles.handoff.intake:INTAKE",
    presenter="fixloop.profiles.handoff.presenter:PRESENTER",
    handlers="fixloop.profiles.handoff.handlers:HANDLERS",
    steps="workers.steps.handoff_steps:STEPS",
    following="workflows.handoff:following",
    options=("--task", "--task-file", "--type", "--priority"),
    agents=("planner", "builder", "reviewer", "fixer"),
    settings="fixloop.configuration.roles:handoff_settings",
    plural="workflows of handoffs",
    results="results",
    outside="fixloop.profiles.handoff.handlers:OUTSIDE",
    requests="fixloop.profiles.handoff.prompt:request",
    agent_runs="fixloop.profiles.handoff.agent_output:AGENT_RUNS",
    files="fixloop.profiles.handoff.files:FILES",
    scripts="fixloop.profiles.handoff.scripts:SCRIPTS",
    is_counted=True,
)
