"""The chats of S29: each has one defect that the validator has to find, and two have no error."""

from pathlib import Path
from typing import Final

from tests.fixtures.chat_stage import ENGINEER, Stage, body, message, meta

TITLE: Final = "5 [dx] gh-sync"
LOG: Final = """\
engineer/tool: $ pytest -q
engineer/error: no such file
architect/to_user: TO USER:
architect/to_user: STATUS: the plan is ready
architect/to_user: ACTION NEEDED: look at it
architect/to_user: CONTEXT: theory_api/agents/chats/0005-dx-gh-sync/
engineer/agent: I am done
architect/to_user: TO USER:
architect/to_user: STATUS: the plan is ready
architect/to_user: ACTION NEEDED: look at it
"""
"""Its lines 7 and 8 are wrong: an engineer that talks, and a block without CONTEXT."""
_SECOND: Final = message("engineer", "architect", "002")
_SWAPPED: Final = (
    body(ENGINEER)
    .replace("## OBSERVATIONS", "## X")
    .replace("## STATUS", "## OBSERVATIONS")
    .replace("## X", "## STATUS")
)
_MESSAGES: Final = {
    "no-front-matter": {"002-to-architect.md": "A plain text.\n"},
    "no-purpose": {"002-to-architect.md": message("engineer", "architect", "002", purpose="absent")},
    "other-seq": {"002-to-architect.md": message("engineer", "architect", "003")},
    "other-header": {
        "002-to-architect.md": message("engineer", "architect", "002", header="-- TO ENGINEER:")
    },
    "gap": {"002-to-architect.md": _SECOND, "004-to-architect.md": message("engineer", "architect", "004")},
    "no-time": {"002-to-architect.md": message("engineer", "architect", "002", ts="yesterday")},
    "from-user": {"002-to-architect.md": message("user", "architect", "002")},
    "short-number": {"002-to-architect.md": _SECOND, "4-to-engineer.md": message(seq="004")},
    "sections-out-of-order": {"002-to-architect.md": message("engineer", "architect", "002", body=_SWAPPED)},
}
_CONTRACTS: Final = {
    "no-acceptance": {"acceptance": "absent"},
    "unknown-area": {"area": "zz"},
    "other-branch": {"branch": "feature/x"},
}
ERRORS: Final = (*_MESSAGES, *_CONTRACTS, "first-to-architect", "legacy")
"""The folders of all that have exactly one error."""
WARNED: Final = ("legacy", "closed-legacy")
"""The folders of those with two messages that are older than the protocol."""


def make_chats(root: Path) -> None:
    """Write them all, each into its own folder below `root`."""
    for name, files in _MESSAGES.items():
        _chat(root / name, {"001-to-engineer.md": message()} | files)
    for name, contract in _CONTRACTS.items():
        files = {"001-to-engineer.md": message(), "002-to-architect.md": _SECOND}
        _chat(root / name, files, **contract)
    first = {"001-to-architect.md": message("engineer", "architect")}
    _chat(root / "first-to-architect", first)
    _chat(root / "flawless", {"001-to-engineer.md": message(), "002-to-architect.md": _SECOND})
    old = {"001-to-engineer.md": "Hello.\n", "002-to-architect.md": "Hello yourself.\n"}
    _chat(root / "legacy", old).adopt().put("003-to-engineer.md", "Neither have I.\n")
    _chat(root / "closed-legacy", old).adopt().close(status="Deferred")


def _chat(folder: Path, files: dict[str, str], **contract: str) -> Stage:
    stage = Stage(folder).put("meta.yaml", meta(**contract))
    for name, text in files.items():
        stage.put(name, text)
    return stage
