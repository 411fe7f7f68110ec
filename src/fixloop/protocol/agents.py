"""The names of the orchestrator and of the person, in profiles whose steps are runs of named agents."""

from typing import Final

ORCHESTRATOR: Final = "orchestrator"
USER: Final = "user"
