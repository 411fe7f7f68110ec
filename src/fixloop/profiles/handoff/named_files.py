"""The named files of a workflow of handoffs as they are written, and what an agent wrote into them."""

import json
from pathlib import PurePosixPath
from typing import Any, Final

from fixloop.files.atomic import File, Folders
from fixloop.profiles.handoff.engine import HANDOFF
from fixloop.profiles.handoff.events import HandoffsRestored
from fixloop.profiles.handoff.files import FOLDERS, HANDOFFS, named_files, state_document
from fixloop.profiles.handoff.writing import MOST_OF_A_FIELD, MOST_OF_A_VALUE
from fixloop.statefiles.named_files import Files
from fixloop.statefiles.rendering import Artifacts, ProfileFiles


def _drawn(snapshot: bytes, artifacts: Artifacts) -> Files:
    files, inside = [], {}
    for named in named_files(HANDOFF.load(snapshot)):
        path = PurePosixPath(named.path)
        if path.is_relative_to(HANDOFFS):
            inside[path.relative_to(HANDOFFS).as_posix()] = named.text.encode()
        else:
            files.append(File.of(named.path, named.text.encode()))
    return Files(files, {HANDOFFS: Folders(FOLDERS, inside)})


FILES: Final = ProfileFiles(
    drawn=_drawn,
    ignored={".claude/.gitignore": "/handoffs\n/.handoffs.*\n/events.ndjson\n/state.json\n/.gitignore\n"},
    restored=HandoffsRestored,
    place="handoff",
    swapped=HANDOFFS,
)


def fields_written(snapshot: bytes, content: bytes) -> dict[str, Any]:
    """
    What an agent of handoffs wrote into the `state.json` that `lay` gave it, by field (D19, D45).

    Args:
        content: as it stands there now; what cannot be read says nothing.
    """
    laid = state_document(HANDOFF.load(snapshot))
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        name: value
        for name, value in found.items()
        if 0 < len(name) <= MOST_OF_A_FIELD
        and (name not in laid or laid[name] != value)
        and len(json.dumps(value)) <= MOST_OF_A_VALUE
    }
