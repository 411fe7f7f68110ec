"""`trace`: a workflow as spans of OpenTelemetry."""

from typing import Annotated

from typer import Option

from fixloop.commands.screen import note, print_json
from fixloop.commands.session import Issue, ProjectOption, open_workflow
from fixloop.errors import InfrastructureError
from fixloop.protocol.tracing import trace_id
from fixloop.serve.commands import extra
from fixloop.summary.spans import as_json, spans_of


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
