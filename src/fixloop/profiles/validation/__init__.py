"""The `validation` profile: specialists check a feature in turn, and failures are fixed until all have passed."""

from typing import Final

from fixloop.profile_table import Registered
from fixloop.protocol.specialists import NAMES

REGISTERED: Final = Registered(
    name="validation",
    summary="check and get fixes",
    queues=("fix", *NAMES),
    engine="fixloop.profiles.validation.engine:VALIDATION",
    intake="fixloop.profiles.validation.intake:INTAKE",
    presenter="fixloop.profiles.validation.presenter:PRESENTER",
    handlers="fixloop.profiles.validation.handlers:HANDLERS",
    steps="workers.steps.validation_steps:STEPS",
    following="workflows.validation:following",
    options=("--fixer", "--only", "--dry", "--base", "--all"),
)
