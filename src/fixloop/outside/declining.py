"""Makes the event for an answer that declines, with the source of the test if one is called wrong."""

from fixloop.outside.transfer import snapshot_in
from fixloop.protocol.declining import Kind, excerpt, file_of
from fixloop.protocol.events import BlockerSignalled
from fixloop.protocol.state import State
from fixloop.repository.git import Git

SHOWN = 3
"""The number of failing tests shown."""


def signalled(
    state: State, git: Git | None, *, by: str, text: str, kind: Kind | None, artifacts: tuple[str, ...] = ()
) -> BlockerSignalled:
    """The event of declining a fix, with the source of the tests in question at the workflow's tip."""
    shown = []
    if git is not None and kind is Kind.TEST_IS_WRONG:
        top = snapshot_in(state).subdirectory
        for failure in state.failures[:SHOWN]:
            file = file_of(failure.name, failure.file)
            path = f"{top}/{file}" if top else file
            if file and (source := git.found("show", f"{state.tip}:{path}")):
                shown.append(f"{file}\n{excerpt(source, failure.name, failure.line)}")
    return BlockerSignalled(by=by, text=text, artifacts=artifacts, declined=kind, source="\n\n".join(shown))
