"""Who speaks for the engine and for the person, in the profiles whose steps are runs of named agents."""

from typing import Final

ORCHESTRATOR: Final = "orchestrator"
USER: Final = "user"
