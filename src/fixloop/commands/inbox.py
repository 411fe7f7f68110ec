"""`inbox`: what waits for somebody outside the engine, all profiles in one list, longest wait first."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from fixloop.chat.channels import TO_USER
from fixloop.chat.directory import read_chat
from fixloop.chat.tree import chats_below, default_chats
from fixloop.commands.choices import Choice, choice_lines, finding_lines
from fixloop.commands.lookup import NothingYet, prefix_of
from fixloop.commands.presenter import deadline_of
from fixloop.commands.screen import print_json, print_lines, say
from fixloop.commands.session import AsJson, OnlyProject, Seen, Session, here, open_session
from fixloop.errors import Damaged, NewerVersion
from fixloop.intake.hook_files import let_go
from fixloop.protocol.checks import Finding
from fixloop.protocol.durations import iso_stamp
from fixloop.repository.identity import top_of
from fixloop.servers.settings import load_settings
from fixloop.store.contract import Store
from fixloop.store.damage import reading
from fixloop.store.keys import project_hash
from fixloop.store.records import DAMAGED
from fixloop.store.waivers import due_waivers
from fixloop.store.webhooks import Webhooks

_WHAT: Final = {
    "decision": "a decision",
    "answer": "an answer",
    "manual-fix": "a manual fix",
    "fix": "a fix",
    "work": "an outside agent",
    "continue": "whoever paused it",
    "user": "you",
}


def inbox(json: AsJson = False, project: OnlyProject = None) -> None:
    """
    List everything that waits for a person, in all profiles.

    Shows escalations and questions with the commands that answer them, work for outside agents and people, and
    what the project's chats ask of you. --project leaves out chats, which belong to a directory.
    """
    try:
        with open_session() as session:
            items = list(_waiting(session.store, session.settings.cache_dir, prefix_of(project)))
            items += _to_look_after(session, prefix_of(project))
    except NothingYet as nothing:
        say(str(nothing))
        items = []
    if project is None:
        items += _asked_in_chats(here())
        items += _let_go(load_settings().cache_dir, top_of(here())[0], here())
    items.sort(key=lambda item: str(item["since"]))
    if json:
        print_json({"items": items})
        return
    for item in items:
        who = f"#{item['issue']}" if item["issue"] is not None else item["profile"]
        print_lines(f"{who} {item['name']} waits for {_WHAT[item['waits_for']]} since {item['since']}")
        detail = f": {item['detail']}" if item["detail"] else ""
        print_lines(f"  {item['reason']}{detail}")
        print_lines(*finding_lines([Finding(**each) for each in item.get("findings", ())]))
        if item["waits_for"] != "work" and item["profile"] != "notice":
            most = f"/{item['max_iterations']}" if item["max_iterations"] is not None else ""
            print_lines(f"  {item['specialist']}, run {item['iteration']}{most}; to {item['target']}")
        if item["escalation_id"]:
            print_lines(f"  {item['escalation_id']}")
        made_later = "made by the first of these commands" if item["waits_for"] == "fix" else ""
        if directory := item["directory"] or made_later:
            print_lines(f"  directory: {directory}")
        if item.get("hint"):
            print_lines(f"  {item['hint']}")
        told = [Choice(**each) for each in item.get("choices", ())]
        print_lines(*(f"  {line}" for line in (choice_lines(told) if told else item["commands"])))
    if not items:
        say("nothing is waiting for you")


def _waiting(store: Store, cache: Path, prefix: str) -> Iterator[dict[str, Any]]:
    for workflow, fields in store.workflows(live_only=True):
        # A workflow that works for another has another kind of id, and the project's name.
        if workflow.startswith(prefix) or prefix == f"{project_hash(fields.get('project', ''))}-":
            try:
                yield from items_of(store, workflow, fields, cache)
            except (Damaged, NewerVersion) as error:
                # The rest is still shown.
                say(str(error))


def items_of(store: Store, workflow: str, fields: Mapping[str, str], cache: Path) -> Sequence[dict[str, Any]]:
    """What in a workflow waits for somebody outside, as in `inbox --json`; `fields` are its plain ones. Raises Damaged
    and NewerVersion for what cannot be read."""
    if DAMAGED in fields:
        raise Damaged(workflow, fields[DAMAGED])
    # The plain fields rule out most; only the rest need their snapshot read.
    if fields.get("owner") not in ("person", "agent"):
        return ()
    with reading(workflow):
        found = store.read(workflow)
        if found is None:
            return ()
        _, presenter, state = Seen.of(found)
        common = {
            "issue": state.issue,
            "name": state.name,
            "workflow_id": found.workflow,
            "project": state.project,
            "profile": state.profile,
            "deadline": iso_stamp(due) if (due := deadline_of(found)) is not None else None,
        }
        return [common | dict(item) for item in presenter.items(found, state, cache)]


def _to_look_after(session: Session, prefix: str) -> Iterator[dict[str, Any]]:
    """What `fixloop serve` could not deliver, and waivers about to expire."""
    notices = [each.notice for each in Webhooks(session.connection).disabled()]
    notices += [each.notice for each in due_waivers(session.store, session.connection, prefix)]
    for notice in notices:
        yield _item(
            profile="notice",
            name="",
            specialist="",
            iteration=0,
            reason=notice["text"],
            detail="",
            since=notice["since"],
            directory=None,
            commands=[notice["command"]],
        )


def _let_go(cache: Path, *folders: Path) -> Iterator[dict[str, Any]]:
    """Agents whose stop hook let them stop with failing checks; until the checks pass there."""
    for session in (each for folder in dict.fromkeys(folders) for each in let_go(cache, folder)):
        yield _item(
            profile="hook",
            name=session.agent,
            specialist=session.agent,
            iteration=session.blocks,
            reason=session.verdict,
            detail=f"it was allowed to stop because {session.let_go}",
            since=iso_stamp(session.since) if session.since else "",
            directory=session.folder,
            commands=["fixloop check"],
        )


def _asked_in_chats(here: Path) -> Iterator[dict[str, Any]]:
    """What the chats of the project around `here` ask of a person: TO USER blocks with no later message (E20)."""
    folder = default_chats(here)
    for path in chats_below(here / folder) if (here / folder).is_dir() else ():
        chat = read_chat(path) if isinstance(path, Path) else None
        if chat is None or chat.journal.asked is None or chat.is_closed:
            continue
        asked = chat.journal.asked
        lines = [line.strip() for line in asked.text.splitlines() if line.strip() != TO_USER[0]]
        yield _item(
            profile="chat",
            name=chat.name,
            specialist="architect",
            iteration=chat.next_seq - 1,
            reason="TO USER",
            detail="; ".join(lines),
            since=asked.at,
            directory=chat.path,
            commands=[f"fixloop chat read {chat.name}"],
        )


def _item(**facts: Any) -> dict[str, Any]:
    """An item outside any workflow."""
    absent = ("issue", "workflow_id", "project", "deadline", "max_iterations", "escalation_id")
    return {**dict.fromkeys(absent), "waits_for": "user", "target": "user", "options": [], **facts}
