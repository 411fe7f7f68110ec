"""What was found and does not run here, in the words of every command that says so."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fixloop.commands.screen import short
from fixloop.protocol.checks import Unverified


def blocking(found: Iterable[Unverified]) -> list[Unverified]:
    """Those without which nothing counts as verified."""
    return [each for each in found if each.blocks]


def passed_over(found: Sequence[Unverified]) -> Iterator[str]:
    """`not verified here: ruff (not installed in .venv)`, of those that do not block; nothing where there are none."""
    named = [f"{each.name} ({short(each.reason)})" for each in found if not each.blocks]
    if named:
        yield f"not verified here: {', '.join(named)}"


def missing_lines(found: Iterable[Unverified]) -> Iterator[str]:
    """Of each what is missing, and how to add it or to leave it out."""
    for each in found:
        yield f"  {each.name} of {each.specialist} does not run here: {short(each.reason, 300)}"
        if each.remedy:
            yield f"    {short(each.remedy, 300)}"
        optional = f"optional = true in its [specialist.{each.specialist}]"
        yield f"    or leave it out: name in fixloop.toml what is to run (`fixloop init` does), with {optional}"


def documents(found: Iterable[Unverified]) -> list[dict[str, Any]]:
    """The same for programs."""
    return [each.model_dump() for each in found]
