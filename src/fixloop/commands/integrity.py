"""`integrity`: how often each rule held a run that passed, and what persons decided."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from fixloop.commands.screen import print_json, row, say, show, table
from fixloop.commands.session import AsJson, ProjectOption, open_session
from fixloop.errors import Damaged, NewerVersion
from fixloop.store.records import Entry

DECISIONS: Final = {"accept": "accepted", "reject": "rejected", "": "open"}
"""What answered a hold, as it is counted; whatever else did is `other`."""
COLUMNS: Final = ("held", "accepted", "rejected", "other", "open")
ENOUGH: Final = 10
"""After so many decisions a rule that is wrong in one of ten is told."""
Hold = tuple[tuple[str, ...], str]
"""The rules of a hold, and the decision that answered it."""


def integrity(json: AsJson = False, project: ProjectOption = None) -> None:
    """
    Count how often each rule held a run that passed, and what persons decided.

    Over all workflows of the project, archived ones too. What is accepted was held for nothing: a rule of which
    that is so in more than one case of ten is named, with the setting that switches it off.
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
        say("nothing was held yet")
        return
    made = table("rule", *COLUMNS)
    for rule, n in listed:
        row(made, rule, *(n[each] for each in COLUMNS))
    show(made)
    for rule, n in listed:
        if remark := too_often(rule, n):
            say(remark)


def counted(holds: Iterable[Hold]) -> list[tuple[str, Counter[str]]]:
    """Each rule with how often it held and what was decided, as COLUMNS has it; the most frequent first."""
    counts: dict[str, Counter[str]] = {}
    for rules, decision in holds:
        for rule in rules:
            counts.setdefault(rule, Counter()).update(("held", DECISIONS.get(decision, "other")))
    return sorted(counts.items(), key=lambda each: (-each[1]["held"], each[0]))


def too_often(rule: str, n: Counter[str]) -> str:
    """What to do about a rule that holds for nothing in more than one of ten cases; empty for all others."""
    decided = n["accepted"] + n["rejected"]
    if decided < ENOUGH or n["accepted"] * 10 <= decided:
        return ""
    return (
        f"of {decided} decisions on {rule} {n['accepted']} accepted what it held: "
        f'[integrity] off = ["{rule}"] in fixloop.toml switches it off'
    )


def holds_in(entries: Iterable[Entry]) -> Iterator[Hold]:
    """Each hold of a history: its rules, and the decision that answered it; empty while it is open."""
    rules: tuple[str, ...] = ()
    for entry in entries:
        event = entry.body.get("event", {})
        if rules and event.get("kind") in ("decision-made", "cancelled"):
            yield rules, str(event.get("decision", event["kind"]))
            rules = ()
        for message in entry.body.get("messages", ()):
            body = message.get("body")
            # Messages of other profiles have a body of another kind, or a text.
            found = body.get("findings", ()) if isinstance(body, dict) else ()
            rules = tuple(dict.fromkeys(str(each["rule"]) for each in found)) or rules
    if rules:
        yield rules, ""
