"""The named files of a cycle as they are written: each made of text and artifacts when it is asked for."""

from hashlib import sha256
from typing import Final

from fixloop.errors import InfrastructureError
from fixloop.files.atomic import File
from fixloop.profiles.cycle.documents import progress_path
from fixloop.profiles.cycle.engine import CYCLE
from fixloop.profiles.cycle.events import CycleRestored
from fixloop.profiles.cycle.files import named_files
from fixloop.statefiles.named_files import Files
from fixloop.statefiles.rendering import ARTIFACT, Artifacts, ProfileFiles


def _drawn(snapshot: bytes, artifacts: Artifacts) -> Files:
    state = CYCLE.load(snapshot)

    def content(part: str) -> bytes:
        found = artifacts(part.removeprefix(ARTIFACT)) if part.startswith(ARTIFACT) else part.encode()
        if found is None:
            raise InfrastructureError(f"document {part} of {state.workflow} is missing from the store")
        return found

    def file(path: str, parts: tuple[str, ...]) -> File:
        return File(path, sha256("\0".join(parts).encode()).hexdigest(), lambda: tuple(map(content, parts)))

    own = [progress_path(state.cycle_id, agent.key, "").rstrip("/") for agent in state.agents]
    return Files([file(*named) for named in named_files(state)], folders=own)


FILES: Final = ProfileFiles(
    drawn=_drawn,
    ignored={".workflow/.cycle/.gitignore": "*\n"},
    restored=CycleRestored,
    parts=named_files,
)
