"""`fixloop chaos`: run real workers, injure them by a plan, and report the result."""

from collections.abc import Iterator
from math import ceil
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Final

from typer import Exit, Option

from fixloop.commands.cheats import new_folder
from fixloop.commands.screen import print_json, print_lines, say, status_line
from fixloop.commands.session import AsJson
from fixloop.errors import ExitCode, UsageError
from fixloop.profile_table import names, registered

if TYPE_CHECKING:
    from fixloop.testing.report import Report
    from fixloop.testing.site import Progress

SHOWN: Final = 20


def chaos(
    profile: Annotated[str, Option(help=f"The protocol: {', '.join(names())} or chat.")] = "validation",
    workflows: Annotated[int, Option(min=1, max=100_000, help="How many.")] = 50,
    kills: Annotated[int, Option(min=0, help="How many injuries, of all kinds.")] = 20,
    seed: Annotated[int, Option(help="The seed of the plan.")] = 1,
    concurrency: Annotated[
        int, Option("--concurrency", "-c", min=1, help="Work processes of each of the two workers.")
    ] = 2,
    contrast: Annotated[
        bool, Option("--contrast", help="Also injure bare Celery chains by the same plan.")
    ] = False,
    twice: Annotated[bool, Option("--twice", help="Deliver every message twice.")] = False,
    network: Annotated[
        str,
        Option(
            help="How to cut workers off: namespaces (root only), relay, or auto: whichever is available."
        ),
    ] = "auto",
    keep: Annotated[
        Path | None, Option(help="Keep logs, data and injuries in this new folder.", show_default="none")
    ] = None,
    json: AsJson = False,
) -> None:
    """
    Injure workers and Redis, and check that nothing is lost.

    Starts a separate Redis and two workers with scripted agents; touches no project and no other Redis.
    Everything runs twice, once undisturbed. For chats there is no Redis: two hosts run `fixloop chat
    run`, and all files must be the same. Exit code 1: something was lost, doubled, stuck or cannot be
    verified. Sends SIGKILL and SIGSTOP only to what it started.
    """
    # Celery takes a third of a second to load, and no other command needs the rest.
    from fixloop.testing import chaos as running
    from fixloop.testing.networks import NETWORKS
    from fixloop.testing.site import Order

    known = next((each for each in NETWORKS if each == network), None)
    if known is None:
        raise UsageError(f"there is no network {network!r}; there are {', '.join(NETWORKS)}")
    order = Order(workflows, kills, seed, concurrency, contrast, twice, profile, known)
    with new_folder(keep, "fixloop-chaos-") as folder, status_line("starting Redis and two workers") as line:

        def tell(progress: "Progress") -> None:
            line.update(
                f"{progress.what}: {progress.ended} of {progress.workflows} ended,"
                f" {progress.injuries} injuries, {progress.seconds:.0f} s"
            )

        report = running.chaos(order, folder, tell)
    if json:
        print_json(report.document())
    else:
        print_lines(*report_lines(report))
    if keep is not None:
        say(f"logs, data and injuries are in {keep}")
    if not report.is_well:
        raise Exit(ExitCode.WRONG)


def report_lines(report: "Report") -> Iterator[str]:
    """The figures, the problems found, and the summary in the last line."""
    order, tickets = report.order, sum(one.steps for one in report.verdicts)
    works, results, held = "chats", "messages", "chats hold"
    if order.profile != "chat":
        known = registered(order.profile)
        works, results, held = known.plural, known.results, "histories verify"
    yield f"{order.workflows} {works}, undisturbed in {report.undisturbed_seconds:.1f} s"
    yield f"{order.workflows} {works}, injured in {report.injured_seconds:.1f} s"
    for injury, planned in sorted(report.planned.items()):
        yield f"  {report.done[injury]} of {planned} × {injury}"
    if report.network:
        yield f"workers are cut off {report.network}"
    if report.order.twice:
        yield f"{report.copies} messages delivered twice"
    fixes = sum(one.fixes for one in report.verdicts)
    yield f"{tickets} effects in the histories, {fixes} of them {results}; {report.doubled} are there twice"
    yield f"{report.executions} executions by agents, {report.repeated} of a ticket that had begun before"
    seconds = report.resumptions
    if seconds:
        p95 = seconds[ceil(0.95 * len(seconds)) - 1]
        yield (
            f"killed in mid-step: {len(seconds)} began again after"
            f" {median(seconds):.1f} s (median), {p95:.1f} s (p95), {seconds[-1]:.1f} s (worst)"
        )
    if order.profile != "chat":
        share = report.surplus / tickets if tickets else 0.0
        yield f"{tickets} steps, {report.surplus} surplus deliveries ({share:.2f} a step)"
    bare = report.contrast
    if bare is not None:
        limit = " (the limit)" if bare.seconds >= bare.limit_seconds else ""
        yield (
            f"bare Celery chains, same plan: {bare.ended} of {bare.chains} ended in {bare.seconds:.1f} s{limit},"
            f" {bare.doubled} effects doubled, {bare.repeated} steps begun again ({bare.injuries} injuries)"
        )
    yield from _findings(report, works)
    yield (
        f"chaos: {report.lost} lost, {report.doubled} doubled, {len(report.unexplained)} unexplained,"
        f" {report.stuck} stuck, {report.verified} of {len(report.verdicts)} {held}"
        f" (seed {order.seed})"
    )


def _findings(report: "Report", works: str) -> Iterator[str]:
    if report.astray:
        yield f"  {report.astray} of the undisturbed {works} went wrong; no injury caused this"
    found = [
        f"  {one.workflow}: {text}"
        for one in (*report.verdicts, *report.left_alone)
        for text in (*filter(None, [one.lost, "stuck" * one.stuck]), *one.doubled, *one.problems)
    ]
    found += [f"  {one.ticket} began again with fence {one.fence}" for one in report.unexplained]
    yield from found[:SHOWN]
    if len(found) > SHOWN:
        yield f"  and {len(found) - SHOWN} more"
    if report.done.total() < report.planned.total():
        missing = report.planned.total() - report.done.total()
        yield f"  {missing} injuries had no effect, or were planned for tickets that came too late"
