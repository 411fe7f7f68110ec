"""Scripts in the feature's name for the agents of a cycle or of handoffs: a clause per agent, a word per run.

The last word repeats forever; an agent without a clause always says `ok`:

    cd: unclear ok; vas: no ok         CD's first run finds an unclear requirement, VAS' first one a failing test
    reviewer: no ok                    the first review finds two issues, the second approves
    ra: !ok                            the first attempt of the first run raises
    ra: #ok                            the first run kills its own process once; `#` kills it always
    ra: ok~2                           the first run takes 2 seconds, or until it is cancelled
    ra: $ok~2                          the same, as a separate command that runs under guard

In a cycle: `ok`; `unclear`, `plan`, `stuck` end partial with an issue for RA, for EP, for a person; `no` ends failed;
`bad` reports nothing. In handoffs: `ok`; `no` finds two issues; `ask` and `note` ask a person, with and without
waiting; `bad` returns nothing; `fatal` says that a retry is useless. `silent` never answers.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fixloop.profile_table import loaded, registered
from fixloop.protocol.event import Event, Start
from fixloop.protocol.ticket import Ticket
from fixloop.testing.plan import Places
from fixloop.testing.script import Word, read_word


class Scripts(NamedTuple):
    """What a profile contributes to scripts."""

    agents: tuple[str, ...]
    scripts: tuple[str, ...]
    """See `fixloop.testing.parts`; the first is the seed's own example."""
    places: Places
    results: str
    """The kind of event that carries an agent's result."""
    given_up: Event
    answers: Mapping[str, Event]
    """The person's answer, by the word of a script that asks."""
    words: re.Pattern[str]
    """The words of a script."""
    answer: Callable[[str, str], str]
    """The output of a command, given a word and the agent."""
    begun: Callable[[dict[str, Any]], Start]
    """The event that begins a workflow, given the fields common to all profiles."""
    left: Callable[[Any, Ticket, int], Any] = lambda store, ticket, run: None
    """An agent's changes to the named files, given the store, its ticket and the number of its run."""


def scripts_of(profile: str) -> Scripts:
    found: Scripts = loaded(registered(profile).scripts)
    return found


def part_of(name: str, profile: str, agent: str, run: int) -> Word:
    """The action of an agent in its `run`-th run, counted from 1. Raises UsageError for an unknown word."""
    for clause in name.split(";"):
        target, _, words = clause.rpartition(":")
        if target.strip().lower() == agent and words.split():
            run_words = words.split()
            where = f"an agent of a {profile}; see fixloop.testing.parts"
            return read_word(run_words[min(run, len(run_words)) - 1], scripts_of(profile).words, "ok", where)
    return Word("ok")
