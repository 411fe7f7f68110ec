"""`queues`: the work in each queue, for people and for autoscalers."""

from typing import Annotated

from typer import Option

from fixloop.commands.screen import print_json, row, say, show, table
from fixloop.commands.session import AsJson, open_session


def queues(
    concurrency: Annotated[
        int | None,
        Option("--concurrency", "-c", min=1, help="How many steps all workers run at once, for `load`."),
    ] = None,
    json: AsJson = False,
) -> None:
    """
    Show each queue's ready and running steps. Also shows how long the oldest has waited.

    `load` is (ready + claimed) / concurrency over all queues: above 1, there is more work than can run at once.
    Use it to scale workers.
    """
    with open_session() as session:
        found = session.store.queues()
    total = sum(each.ready + each.claimed for each in found)
    if json:
        load = {} if concurrency is None else {"load": total / concurrency}
        print_json({"queues": [each._asdict() for each in found], **load})
        return
    made = table("queue", "ready", "at work", "oldest")
    for each in found:
        row(made, each.queue, str(each.ready), str(each.claimed), f"{each.oldest_seconds:.0f} s")
    show(made) if found else say("there is no work")
    if concurrency is not None:
        say(f"load {total / concurrency:.2f}: {total} steps for {concurrency} at once")
