"""Does due work for a timekeeper, one task after the other, without a worker (docs/decisions/0037)."""

import logging
from collections.abc import Mapping
from typing import Any, Final

from fixloop.engine.hints import arguments, task_name
from fixloop.errors import FixloopError
from fixloop.machine.timekeeper import TELLING
from fixloop.profile_table import profile_of
from fixloop.store.keys import issue_of
from workers.app import app
from workers.process import process
from workers.processes.lifeline import attach
from workers.tasks import deadline

log = logging.getLogger("fixloop.reminding")

MOST_ROUNDS: Final = 20
"""For one workflow: an escalation and its letters take two, and no chain of deadlines is longer."""


def remind(options: Mapping[str, Any]) -> int:
    """Act on passed deadlines of `workflows` and do the steps that notify somebody, until there are none."""
    attach()
    for workflow in options["workflows"]:
        try:
            rounds, acted = 0, True
            while acted and rounds < MOST_ROUNDS and (found := process().store.read(workflow)) is not None:
                rounds, acted = rounds + 1, False
                for due, name in sorted((due, name) for name, due in found.deadlines.items()):
                    if due < found.moment.clock:
                        done = deadline(workflow=workflow, name=name, due=due, issue=issue_of(workflow))
                        acted |= done == "ok"
                for ticket in (held.ticket for held in found.tickets if held.status == "pending"):
                    if ticket.step in TELLING:
                        app.amqp.queues.select_add(ticket.queue)
                        task = app.tasks[task_name(profile_of(found.snapshot), ticket.step)]
                        done = task.apply(kwargs=arguments(ticket), task_id=ticket.id).result
                        acted |= done == "done"
        except FixloopError as error:
            log.warning("%s: %s", workflow, error)
    return 0
