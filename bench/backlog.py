"""Hints sent again while a long backlog is worked off: `python -m bench.backlog --steps 20000`.

That many workflows of one step are queued before slow workers start. Each ticket needs one message; what Redis has
been given beyond that are hints that were sent again. Age alone must not do that, or a backlog fills with copies.
The last line reads `resent 0.NN`; at most 0.2 for each ticket, or the exit code is 1.
"""

import argparse
import sys
import time

from redis import Redis

from bench import stage
from fixloop.store.redis_store import RedisStore
from fixloop.testing.crew import scripted_workflow

MOST_RESENT = 0.2
PATIENCE_SECONDS = 3600


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=0.05, help="how long a step takes")
    options = parser.parse_args()
    with stage.redis_server() as url:
        environment, store = stage.scripted_environment(url), RedisStore(url)
        engine = stage.hinting_engine(url, store)
        script = f"-~{options.seconds}"
        events = [scripted_workflow("be9c4a11", issue, script) for issue in range(1, options.steps + 1)]
        for event in events:
            engine.start(event)
        began = time.monotonic()
        with stage.background(stage.fixloop_worker(options.concurrency), environment):
            # The last of the queue are looked at first, so that looking costs next to nothing.
            remaining = list(events)

            def all_ended() -> bool:
                while remaining and ended(store, remaining[-1].workflow):
                    remaining.pop()
                return not remaining

            stage.wait_until(all_ended, seconds=PATIENCE_SECONDS, step_seconds=0.5)
        seconds = time.monotonic() - began
        tickets = sum(len(store.history(event.workflow)) - 1 for event in events)
        resent = (messages_sent(url) - tickets) / tickets
    print(f"{tickets} tickets of {len(events)} queued in {seconds:.0f} s, {tickets / seconds:.0f} a second")
    print(f"resent {resent:.3f} for each ticket (limit {MOST_RESENT})")
    return int(resent > MOST_RESENT)


def ended(store: RedisStore, workflow: str) -> bool:
    found = store.read(workflow)
    return found is not None and bool(found.fields.get("outcome")) and not found.tickets


def messages_sent(url: str) -> int:
    """How many messages Redis was given: nothing else here pushes to the left of a list."""
    client = Redis.from_url(url)
    statistics = client.info("commandstats")
    client.close()
    assert isinstance(statistics, dict)
    return int(statistics["cmdstat_lpush"]["calls"])


if __name__ == "__main__":
    sys.exit(main())
