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


def integrity(json: AsJson = False, project: ProjectOption = None) -> None:
    """
    Count how often each rule held a run that passed, and what persons decided.

    Over all workflows of the project, archived ones too. What is accepted was held for nothing: a rule of which
    that is so in more than one case of ten is named, with the setting that switches it off.
    """
    counts: dict[str, Counter[str]] = {}
    with open_session() as session:
        for workflow in session.lookup.stored_of(project):
            try:
                for rules, decision in holds_in(session.store.history(workflow)):
                    for rule in rules:
                        answered = DECISIONS.get(decision, "other")
                        counts.setdefault(rule, Counter()).update(("held", answered))
            except (Damaged, NewerVersion) as error:
                say(str(error))
    listed = sorted(counts.items(), key=lambda each: (-each[1]["held"], each[0]))
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
        decided = n["accepted"] + n["rejected"]
        if decided >= ENOUGH and n["accepted"] * 10 > decided:
            say(
                f"of {decided} decisions on {rule} {n['accepted']} accepted what it held: "
                f'[integrity] off = ["{rule}"] in fixloop.toml switches it off'
            )


def holds_in(entries: Iterable[Entry]) -> Iterator[tuple[tuple[str, ...], str]]:
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
