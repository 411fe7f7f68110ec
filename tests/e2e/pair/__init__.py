"""A profile for one test, as small as one can be: the first agent passes something to the second."""

from typing import Final

from fixloop.profile_table import Registered

REGISTERED: Final = Registered(
    name="pair",
    summary="one agent passes something to another",
    queues=("pair",),
    engine="tests.e2e.pair.protocol:PAIR",
    intake="tests.e2e.pair.commands:INTAKE",
    presenter="tests.e2e.pair.commands:PRESENTER",
    handlers="tests.e2e.pair.commands:HANDLERS",
    steps="tests.e2e.pair.steps:STEPS",
    following="tests.e2e.pair.steps:following",
)
