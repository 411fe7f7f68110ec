"""`status`: the state of one workflow, or of all. It loads little, because prompts and loops call it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from fixloop.commands.lookup import NothingYet, prefix_of, project_of
from fixloop.commands.presenter import Across, across_all, documented, is_away
from fixloop.commands.screen import print_json, print_lines, row, say, short, show, table
from fixloop.commands.session import AsJson, OptionalIssue, ProjectOption, look, open_session
from fixloop.commands.validation_status import WAITS
from fixloop.errors import Damaged, ProtocolError
from fixloop.protocol.durations import iso_stamp
from fixloop.store.contract import Store
from fixloop.store.damage import reading
from fixloop.store.records import DAMAGED

SHOWN_WORKFLOWS: Final = 200
"""A longer table helps nobody; `--json` has all."""
_LOUD: Final = "bold yellow"
_PLAIN_FIELDS: Final = (
    *("name", "project", "profile", "status", "verdict", "outcome"),
    *("owner", "phase", "specialist"),
)


def status(issue: OptionalIssue = None, json: AsJson = False, project: ProjectOption = None) -> None:
    """
    Show one issue, or all workflows.

    Without ISSUE: all workflows, or --project's, live ones first. With --json, an issue has verdict, owner,
    deadline and the specialists with their evidence.
    """
    if issue is not None:
        with open_session() as session:
            seen = look(session, session.workflow_of(issue, project))
            away = is_away(seen.found.moment, session.store.now(seen.found.workflow))
            # An ended workflow has no clocks, and a timekeeper that has just started has not swept yet.
            waits = session.settings.keeps_time and seen.standing.waits_for == "agent"
            away = away and seen.state.outcome is None and not waits
            across = seen.presenter.across(session.store, project_of(seen.found.workflow))
        found, presenter, state = seen
        if json:
            stands = {"deadline": None} if away else {}
            with reading(found.workflow):
                document = documented(presenter.document(found, state), across)
            print_json(document | stands | {"clocks_stand_still": away})
            return
        with reading(found.workflow):
            details, specialists = list(presenter.details(found, state, away)), presenter.table(state)
        from rich.console import Group

        print_lines(f"#{state.issue} {state.name}")
        facts = table("", "")
        facts.show_header = False
        for label, text in details:
            row(facts, label, text, style=_LOUD if label == WAITS else "", most=700)
        if across is not None:
            row(facts, across.label, across.text)
        show(Group(facts, "", specialists))
        return
    counted: Mapping[str, Across] = {}
    try:
        with open_session() as session:
            prefix = prefix_of(project)
            rows = summaries(session.store, prefix)
            counted = across_all({each["profile"] for each in rows}, session.store, prefix)
            if not rows:
                say(session.lookup.nothing_here())
    except NothingYet as nothing:
        say(str(nothing))
        rows = []
    _show_all(rows, counted, json=json)


def summaries(store: Store, prefix: str) -> list[dict[str, Any]]:
    """All workflows: those waiting for a person, then other live ones, each latest first. Reports damaged ones."""
    rows = [summary(*each) for each in store.workflows() if each[0].startswith(prefix)]
    rows.sort(key=lambda each: each["updated_at"], reverse=True)
    rows.sort(key=lambda each: (each["outcome"] is not None, each["owner"] != "person"))
    # Only live workflows that are shown are read in full: ended ones wait for nobody.
    for each in rows[:SHOWN_WORKFLOWS]:
        if not each["damaged"] and not each["outcome"]:
            try:
                store.read(each["workflow_id"])
            except ProtocolError as error:
                each["damaged"] = error.detail if isinstance(error, Damaged) else str(error)
    for each in rows:
        if each["damaged"]:
            say(str(Damaged(each["workflow_id"], each["damaged"])))
    return rows


def summary(workflow: str, fields: Mapping[str, str]) -> dict[str, Any]:
    """One entry of `status --json`, from a workflow's plain fields; if they cannot be read, it is damaged."""
    chosen = {name: fields.get(name) or None for name in _PLAIN_FIELDS}
    try:
        iteration, most = (int(part or 0) for part in fields.get("iteration", "0/0").partition("/")[::2])
        at = fields.get("updated_at", "")
        updated = iso_stamp(datetime.fromisoformat(at)) if at else ""
    except (ValueError, ProtocolError) as error:
        return summary(workflow, {DAMAGED: f"a plain field of it cannot be read ({error})"})
    return {
        "issue": int(workflow.split("-")[1]),
        "workflow_id": workflow,
        **chosen,
        "profile": chosen["profile"] or "validation",
        "paused": bool(fields.get("paused") or fields.get("held")),
        "iteration": iteration,
        "max_iterations": most,
        "tree": fields.get("tree", ""),
        "updated_at": updated,
        "damaged": fields.get(DAMAGED),
    }


def _show_all(rows: Sequence[dict[str, Any]], counted: Mapping[str, Across], *, json: bool) -> None:
    if json:
        metrics = {name: dict(across.document) for name, across in counted.items()}
        print_json({"workflows": rows, "metrics": metrics})
        return
    if rows:
        made = table("issue", "status", "turn", "specialist", "run", "updated", "name", "project")
        for each in rows[:SHOWN_WORKFLOWS]:
            live = f"{each['status']} (paused)" if each["paused"] else str(each["status"])
            row(
                made,
                f"#{each['issue']}",
                DAMAGED if each["damaged"] else each["outcome"] or live,
                "" if each["outcome"] else each["owner"],
                each["specialist"] or "",
                f"{each['iteration']}/{each['max_iterations']}",
                each["updated_at"],
                short(each["name"] or "", 40),
                short(each["project"] or "", 60),
                style="dim" if each["outcome"] else _LOUD if each["owner"] == "person" else "",
            )
        show(made)
    for name, across in counted.items():
        print_lines(f"{name}: {across.text}")
    if len(rows) > SHOWN_WORKFLOWS:
        say(f"{len(rows) - SHOWN_WORKFLOWS} more are not shown; --json lists all")
