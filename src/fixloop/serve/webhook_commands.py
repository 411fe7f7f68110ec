"""`webhook`: the receivers and the sources of events."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Final

import typer
from typer import Argument, Option

from fixloop.commands.screen import note, print_json, print_lines, row, say, show, table
from fixloop.commands.session import AsJson, open_session
from fixloop.errors import UsageError
from fixloop.serve.access import checked_name, checked_projects
from fixloop.serve.commands import Projects
from fixloop.store.webhooks import Endpoint, Webhooks

webhook_group: Final = typer.Typer(
    help="Send events as signed requests from `fixloop serve`.", rich_markup_mode=None
)
Id = Annotated[str, Argument(metavar="ID", help="The id from `fixloop webhook list`.")]


@contextmanager
def _webhooks() -> Iterator[Webhooks]:
    with open_session(create=True) as session:
        yield Webhooks(session.connection)


def _show_secret(endpoint: Endpoint) -> None:
    print_lines(endpoint.secrets[0][0])
    note(f"this is the secret of {endpoint.id}, shown this once; it signs as Standard Webhooks has it")


@webhook_group.command("add")
def add(
    url: Annotated[str, Argument(metavar="URL", help="Where events go.")],
    type: Annotated[
        list[str] | None,
        Option(metavar="PREFIX", help="Only types with this prefix, such as dev.fixloop.escalation."),
    ] = None,
    project: Projects = None,
) -> None:
    """Send future events to a URL, and print the secret that signs them."""
    if not url.startswith(("https://", "http://")):
        raise UsageError(f"{url[:200]!r} is no address for webhooks; use https://host/path")
    with _webhooks() as webhooks:
        _show_secret(webhooks.add("out", url, type or (), checked_projects(project or ())))


@webhook_group.command("source")
def source(
    name: Annotated[str, Argument(metavar="NAME", help="The source; events come to /v1/hooks/NAME.")],
    project: Projects = None,
) -> None:
    """Accept events from a source, and print the secret it must sign them with."""
    with _webhooks() as webhooks:
        if webhooks.source(checked_name(name)) is not None:
            raise UsageError(f"there is a source {name!r}; `fixloop webhook rotate` gives it another secret")
        _show_secret(webhooks.add("in", name, (), checked_projects(project or ())))


@webhook_group.command("list")
def list_webhooks(json: AsJson = False) -> None:
    """List endpoints and sources, with the result of their last deliveries."""
    with _webhooks() as webhooks:
        found = [(each, webhooks.standing(each.id)) for each in webhooks.all()]
    if json:
        print_json({"webhooks": [{**each.shown(), **standing._asdict()} for each, standing in found]})
        return
    made = table("id", "", "address", "types", "projects", "delivered", "last", "state")
    for each, standing in found:
        failing = f"failed {standing.failures} times, again at {standing.due}: {standing.error}"
        state = f"disabled: {each.disabled}" if each.disabled else failing if standing.failures else "ok"
        types, projects = ", ".join(each.types) or "all", ", ".join(each.projects) or "all"
        row(made, each.id, each.kind, each.url, types, projects, standing.delivered, standing.last, state)
    show(made) if found else say("there is no webhook; `fixloop webhook add` makes one")


@webhook_group.command("rotate")
def rotate(webhook: Id) -> None:
    """Give it a new secret; the old one stays valid for a day."""
    with _webhooks() as webhooks:
        _show_secret(webhooks.rotate(webhook))


@webhook_group.command("replay")
def replay(
    webhook: Id,
    since: Annotated[
        datetime | None,
        Option(
            formats=["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d"],
            help="Resend all events since this time, UTC.",
            show_default="undelivered events",
        ),
    ] = None,
) -> None:
    """Resend events, even if it was disabled."""
    at = since.replace(tzinfo=UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ") if since is not None else ""
    with _webhooks() as webhooks:
        webhooks.enable(webhook, at)
    note(f"`fixloop serve` will send to {webhook}")


@webhook_group.command("remove")
def remove(webhook: Id) -> None:
    """Remove it: send nothing more to it, or accept nothing more from it."""
    with _webhooks() as webhooks:
        webhooks.remove(webhook)
