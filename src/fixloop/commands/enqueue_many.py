"""`enqueue --from`: many features, one JSON object per line."""

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import typer

from fixloop.commands.screen import counted, note, print_lines, say
from fixloop.commands.session import open_session
from fixloop.errors import ExitCode, UsageError
from fixloop.intake.bulk import enqueue_many
from fixloop.intake.feature import Feature


def hand_in_many(file: Path, usual: Feature, directory: Path) -> None:
    """Print each line's workflow or why it was refused, then the totals. Exit code 2: some were refused."""
    if usual.issue is not None:
        raise UsageError("--issue and --from exclude each other; each line names its own")
    made = joined = refused = 0
    with ExitStack() as opened:
        try:
            lines = sys.stdin.buffer if str(file) == "-" else opened.enter_context(file.open("rb"))
        except OSError as error:
            raise UsageError(f"cannot read the features {file}: {error.strerror or error}") from None
        session = opened.enter_context(open_session(directory, create=True))
        opened.enter_context(session.hints.together())
        cache = session.settings.cache_dir
        for each in counted(enqueue_many(session.engine, _features(lines, usual), cache=cache), "submitted"):
            if each.error:
                refused += 1
                say(f"line {each.number}{f', issue {each.issue}' if each.issue else ''}: {each.error}")
                continue
            made += each.created
            joined += not each.created
            print_lines(each.workflow)
    note(f"{made} submitted, {joined} already submitted, {refused} refused")
    if refused:
        raise typer.Exit(ExitCode.USAGE)


def _features(lines: Iterable[bytes], usual: Feature) -> Iterator[Feature | UsageError]:
    for line in lines:
        try:
            given = json.loads(line.decode("utf-8-sig"))
            if not isinstance(given, dict):
                raise UsageError('each line must be an object such as {"issue": 47}')
            yield usual.with_given(given)
        except UsageError as error:
            yield error
        except (ValueError, RecursionError) as error:
            yield UsageError(f"the line is not valid JSON: {' '.join(str(error).split())}")
