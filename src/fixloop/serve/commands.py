"""`serve`, its users (`token` and `person`), and `trace`: a workflow as spans of OpenTelemetry."""

import getpass
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlsplit

import typer
from typer import Argument, Option

from fixloop.commands.screen import note, print_json, print_lines, row, say, show, table
from fixloop.commands.session import AsJson, Issue, ProjectOption, Session, open_session, open_workflow
from fixloop.commands.worker import working
from fixloop.errors import InfrastructureError, UsageError
from fixloop.protocol.tracing import trace_id
from fixloop.serve.access import ROLES, TERMINAL, Caller, checked_name, checked_projects, scopes_of
from fixloop.serve.tokens import Tokens
from fixloop.store.webhooks import Webhooks
from fixloop.summary.spans import as_json, spans_of

if TYPE_CHECKING:
    from fixloop.serve.notifier import Notifier
    from fixloop.serve.service import Service

Role = Annotated[str, Option("--role", help=f"{', '.join(ROLES)}.")]
Projects = Annotated[
    list[str] | None,
    Option("--project", metavar="HASH", help="Only this project, by its eight hex digits; repeatable."),
]
_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")
_EVERYWHERE: Final = ("0.0.0.0", "::")  # nosec B104: only compared with

token_group: Final = typer.Typer(
    help="Make, list and revoke the tokens of `fixloop serve`.", rich_markup_mode=None
)


def serve(
    host: Annotated[str, Option(envvar="FIXLOOP_SERVE_HOST", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="The port; 0: any free port.")] = 8470,
    url: Annotated[
        str, Option(envvar="FIXLOOP_SERVE_URL", help="Its public URL, such as https://fix.example.")
    ] = "",
    people: Annotated[
        Path | None, Option(envvar="FIXLOOP_SERVE_PEOPLE", help="The file written by `fixloop person`.")
    ] = None,
    proxy: Annotated[
        list[str] | None,
        Option(metavar="ADDRESS", help="A proxy that signs people in: an address or a network."),
    ] = None,
    proxy_header: Annotated[str, Option(help="The header with the person's name.")] = "X-Forwarded-User",
    secret: Annotated[
        str, Option("--proxy-secret", envvar="FIXLOOP_SERVE_PROXY_SECRET", help="Sent as X-Fixloop-Proxy.")
    ] = "",
    repository: Annotated[
        list[str] | None,
        Option(metavar="URL|PATH", help="Let the API submit this repository and any below it."),
    ] = None,
    contacts: Annotated[
        Path | None,
        Option(
            envvar="FIXLOOP_SERVE_CONTACTS",
            help="A file of people to notify when something waits for a decision.",
        ),
    ] = None,
    otlp: Annotated[
        str,
        Option(
            metavar="URL",
            envvar="FIXLOOP_OTLP_ENDPOINT",
            help="Send each ended workflow to this trace collector, such as http://localhost:4318.",
        ),
    ] = "",
    webhook_target: Annotated[
        list[str] | None,
        Option(
            metavar="HOST|NETWORK", help="Also allow webhooks to this non-public target, such as 10.0.0.0/8."
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        Option(
            "--concurrency",
            "-c",
            min=0,
            help="How many checks and fixes run at once.",
            show_default="2 with an embedded Redis, else 0",
        ),
    ] = None,
) -> None:
    """
    Serve the inbox, the API and live pages.

    Listens on this machine's loopback and prints a link that signs you in. For others, put a TLS proxy in front.
    `fixloop token` makes tokens for programs, `fixloop person` writes the file of people.
    """
    with extra("server", "`fixloop serve`"):
        from fixloop.serve.app import create_app
        from fixloop.serve.connections import bound
        from fixloop.serve.deliverer import Deliverer
        from fixloop.serve.identity import Identities
        from fixloop.serve.people import People
        from fixloop.serve.rendering import compile_templates
        from fixloop.serve.requests import Hooks
        from fixloop.serve.service import Service
        from fixloop.serve.targets import Targets
    with open_session(create=True) as session, ExitStack() as running:
        tokens = Tokens(session.connection)
        identities = Identities(tokens, People(people), proxy or (), proxy_header if proxy else "", secret)
        named, is_secure = urlsplit(url).hostname, urlsplit(url).scheme == "https"
        hosts = (*_LOOPBACK, host, *([named] if named else ()))
        service = Service(session, tokens, repository or ())
        hooks = Hooks(Webhooks(session.connection), Targets(webhook_target or ()))
        server, listening = bound(
            create_app(service, identities, hooks, hosts, is_secure=is_secure), host, port
        )
        here = "127.0.0.1" if host in _EVERYWHERE else host
        address = url.rstrip("/") or f"http://{here}:{listening.getsockname()[1]}"
        workers = (2 if session.settings.is_embedded else 0) if concurrency is None else concurrency
        if workers:
            running.enter_context(working(session, workers, log=f"serve-{os.getpid()}"))
        running.enter_context(Deliverer(session.store, service.follower, *hooks, address).running())
        if contacts is not None:
            running.enter_context(_notifier(session, service, contacts, address).running())
        if otlp:
            with extra("otel", "--otlp"):
                from fixloop.serve.traces import Collector, Tracer
            tracer = Tracer(session.store, session.connection, service.follower, Collector(otlp))
            running.enter_context(tracer.running())
        compile_templates()
        code = tokens.code(Caller(checked_name(getpass.getuser()), scopes_of("admin", ""), TERMINAL))
        say(f"serving at {address}; Ctrl-C stops it")
        note(f"sign in once, within ten minutes: {address}/sign-in?code={code}")
        server.run(sockets=[listening])


def _notifier(session: Session, service: "Service", contacts: Path, address: str) -> "Notifier":
    """Calls the people of a file of contacts. UsageError: apprise is missing, or does not know an address."""
    from fixloop.serve.contacts import contacts_in
    from fixloop.serve.notifier import Notifier, by_apprise, unknown_addresses

    called = contacts_in(contacts)
    with extra("notify", "--contacts"):
        unknown = unknown_addresses(called)
    if unknown:
        raise UsageError(f"{contacts}: apprise knows no such address as that of {unknown[0]}")
    return Notifier(service, session.connection, called, address, by_apprise)


@contextmanager
def extra(name: str, what: str) -> Iterator[None]:
    """UsageError if packages are missing that `what` needs and an extra provides."""
    try:
        yield
    except ModuleNotFoundError as error:
        told = f"{what} needs more packages: pip install 'fixloop[{name}]' ({error.name} is missing)"
        raise UsageError(told) from None


def mcp(
    agent: Annotated[str, Option(metavar="NAME", help="The declared agent whose work it takes.")] = "main",
) -> None:
    """
    Serve an agent its work over the Model Context Protocol. Uses stdin and stdout.

    Seven tools for this directory's project: check, claim_work, get_failure, submit_fix, decline, heartbeat and
    status. An agent with a shell should use the commands: they need fewer words.
    """
    with extra("mcp", "`fixloop mcp`"):
        from fixloop.serve.mcp_tools import server_of
        from fixloop.serve.service import Service
    with open_session(create=True) as session:
        scopes = scopes_of("agent", agent)
        caller = Caller(checked_name(getpass.getuser()), scopes, TERMINAL, frozenset({session.project.hash8}))
        service = Service(session, Tokens(session.connection))
        with service.follower.running():
            server_of(service, lambda: caller, with_check=True).run("stdio")


@token_group.command("create")
def create_token(
    name: Annotated[str, Argument(metavar="NAME", help="Its owner, named in the history.")],
    role: Role,
    agent: Annotated[str, Option(metavar="NAME", help="Role agent: whose work it takes.")] = "",
    project: Projects = None,
    days: Annotated[float, Option(min=0.01, max=3650, help="How long it is valid.")] = 90,
) -> None:
    """Create a token and print it; it cannot be shown again."""
    with open_session(create=True) as session:
        scopes, projects = scopes_of(role, agent), checked_projects(project or ())
        print_lines(Tokens(session.connection).create(checked_name(name), scopes, projects, days=days))
        note("it is shown only once; send it as `Authorization: Bearer …`")


@token_group.command("list")
def list_tokens(json: AsJson = False) -> None:
    """List the tokens with owner, permissions and last use."""
    with open_session() as session:
        found = Tokens(session.connection).all()
    if json:
        print_json({"tokens": [each._asdict() for each in found]})
        return
    made = table("id", "name", "may", "projects", "expires", "used")
    for each in found:
        scopes, projects = ", ".join(each.scopes), ", ".join(each.projects) or "all"
        row(made, each.id, each.name, scopes, projects, each.expires, each.used or "never")
    show(made) if found else say("there are no tokens; `fixloop token create` makes one")


@token_group.command("revoke")
def revoke_token(
    token: Annotated[str, Argument(metavar="ID", help="The id from `fixloop token list`.")],
) -> None:
    """Revoke a token and the sessions it began."""
    with open_session() as session:
        Tokens(session.connection).revoke(token)
        note(f"token {token} is revoked")


def person(
    name: Annotated[str, Argument(metavar="NAME", help="Who signs in.")],
    role: Role,
    people: Annotated[Path, Option(envvar="FIXLOOP_SERVE_PEOPLE", help="The file of people.")],
    project: Projects = None,
    no_password: Annotated[bool, Option("--no-password", help="A proxy signs this person in.")] = False,
) -> None:
    """Add a person to the file, or change their role and password."""
    from fixloop.serve.people import People

    password = (
        "" if no_password else typer.prompt("password", hide_input=True, confirmation_prompt=True, err=True)
    )
    People(people).add(name, role, frozenset(project or ()), password)
    note(f"{name} is in {people} as {role}")


def trace(
    issue: Issue,
    otlp: Annotated[
        str, Option(metavar="URL", help="Send it to this collector, such as http://localhost:4318.")
    ] = "",
    project: ProjectOption = None,
) -> None:
    """
    Print a workflow as a trace, in JSON. Phases, runs, fixes and waits are timed spans.

    Checks and fixers get the id of their span as TRACEPARENT. `fixloop serve --otlp` sends every ended workflow.
    """
    with open_workflow(issue, project) as (session, workflow):
        found = session.stored(workflow)
        now = None if found.fields.get("outcome") else found.moment
        spans = spans_of(workflow, found.fields, session.store.history(workflow), now)
    if not otlp:
        print_json({"workflow_id": workflow, "spans": as_json(spans, trace_id(workflow))})
        return
    with extra("otel", "--otlp"):
        from fixloop.serve.traces import Collector
    if not Collector(otlp).take([(workflow, spans)]):
        raise InfrastructureError(f"the collector at {otlp} did not take the trace; is its address right?")
    note(f"{len(spans)} spans were sent to {otlp}")
