"""`integrity`: how often each rule held a passing run, and what people decided."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from fixloop.commands.screen import print_json, row, say, show, table
from fixloop.commands.session import AsJson, ProjectOption, open_session
from fixloop.errors import Damaged, NewerVersion
from fixloop.store.records import Entry

DECISIONS: Final = {"accept": "accepted", "reject": "rejected", "": "open"}
"""How answers to a hold are counted; anything else is `other`."""
COLUMNS: Final = ("held", "accepted", "rejected", "other", "open")
ENOUGH: Final = 10
"""How many decisions before a rule that is wrong once in ten is reported."""
Hold = tuple[tuple[str, ...], str]
"""The rules of a hold, and its answer."""


def integrity(json: AsJson = False, project: ProjectOption = None) -> None:
    """
    Count the holds of each integrity rule, and people's decisions.

    Counts all workflows of the project, including archived ones. An accepted hold was needless: a rule with
    more than one needless hold in ten is reported, with the setting that turns it off.
    """
    holds: list[Hold] = []
    with open_session() as session:
        for workflow in session.lookup.stored_of(project):
            try:
                holds += holds_in(session.store.history(workflow))
            except (Damaged, NewerVersion) as error:
                say(str(error))
    listed = counted(holds)
    if json:
        print_json({"rules": [{"rule": rule} | {each: n[each] for each in COLUMNS} for rule, n in listed]})
        return
    if not listed:
        say("nothing has been held yet")
        return
    made = table("rule", *COLUMNS)
    for rule, n in listed:
        row(made, rule, *(n[each] for each in COLUMNS))
    show(made)
    for rule, n in listed:
        if remark := too_often(rule, n):
            say(remark)


def counted(holds: Iterable[Hold]) -> list[tuple[str, Counter[str]]]:
    """Each rule with its holds and decisions, as in COLUMNS; most frequent first."""
    counts: dict[str, Counter[str]] = {}
    for rules, decision in holds:
        for rule in rules:
            counts.setdefault(rule, Counter()).update(("held", DECISIONS.get(decision, "other")))
    return sorted(counts.items(), key=lambda each: (-each[1]["held"], each[0]))


def too_often(rule: str, n: Counter[str]) -> str:
    """What to do about a rule with more than one needless hold in ten; empty for all others."""
    decided = n["accepted"] + n["rejected"]
    if decided < ENOUGH or n["accepted"] * 10 <= decided:
        return ""
    return (
        f"of {decided} decisions on {rule}, {n['accepted']} accepted what it held: "
        f'[integrity] off = ["{rule}"] in fixloop.toml turns it off'
    )


def holds_in(entries: Iterable[Entry]) -> Iterator[Hold]:
    """Each hold of a history: its rules and its answer, empty while it is open."""
    rules: tuple[str, ...] = ()
    for entry in entries:
        event = entry.body.get("event", {})
        if rules and event.get("kind") in ("decision-made", "cancelled"):
            yield rules, str(event.get("decision", event["kind"]))
            rules = ()
        for message in entry.body.get("messages", ()):
            body = message.get("body")
            # Messages of other profiles have another kind of body, or text.
            found = body.get("findings", ()) if isinstance(body, dict) else ()
            rules = tuple(dict.fromkeys(str(each["rule"]) for each in found)) or rules
    if rules:
        yield rules, ""
