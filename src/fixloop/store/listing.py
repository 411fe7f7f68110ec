"""Lists workflows. A damaged one does not end the list; its fields say what is wrong."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from operator import methodcaller
from typing import Any, Final

from fixloop.store import keys, replies
from fixloop.store.connection import Connection
from fixloop.store.damage import BROKEN
from fixloop.store.limits import MOST_PER_SWEEP
from fixloop.store.records import DAMAGED

_PAGE: Final = 200


class Listing:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def workflows(self, *, live_only: bool = False) -> Iterator[tuple[str, Mapping[str, str]]]:
        for shard in range(keys.SHARDS):
            if live_only:
                numbers = self._connection.call(methodcaller("hgetall", keys.shard_keys(shard).live))
                found = names_in(replies.live_id(feature, number) for feature, number in numbers.items())
            else:
                found = self._ids_in(shard)
            yield from self._with_fields(shard, found)

    def unlisted(self) -> list[str]:
        naming = (keys.workflow_key_prefix, keys.history_key_prefix)
        prefixes = {prefix(shard) for shard in range(keys.SHARDS) for prefix in naming}
        stored = self._connection.call(
            lambda client: {
                name.decode("ascii", "replace").rpartition(":")[::2]
                for name in client.scan_iter("fixloop:{*}:*:*", count=1000)
            }
        )
        found = {name for prefix, name in stored if f"{prefix}:" in prefixes and keys.is_workflow(name)}
        return sorted(found.difference(*map(self._ids_in, range(keys.SHARDS))))

    def ended(self, before: datetime, *, most: int = MOST_PER_SWEEP) -> list[tuple[str, datetime]]:
        # Older versions did not list ends; if the counts do not add up, list them now.
        def count(pipe: Any, shard: int) -> None:
            pipe.zcard(keys.shard_keys(shard).workflows)
            pipe.hlen(keys.shard_keys(shard).live)
            pipe.zcard(keys.ended_key(shard))

        counts = self.of_all_shards(count)
        for shard in range(keys.SHARDS):
            there, live, ended = counts[3 * shard : 3 * shard + 3]
            if there <= live + ended:
                continue
            ends = {
                workflow: datetime.fromisoformat(fields["updated_at"]).timestamp()
                for workflow, fields in self._with_fields(shard, self._ids_in(shard))
                if fields.get("outcome") and DAMAGED not in fields
            }
            if ends:
                self._connection.call(methodcaller("zadd", keys.ended_key(shard), ends, nx=True))
        latest = f"({before.timestamp():.6f}"
        shards = self.of_all_shards(
            lambda pipe, shard: pipe.zrangebyscore(
                keys.ended_key(shard), "-inf", latest, start=0, num=most, withscores=True
            )
        )
        found = (each for shard in shards for each in shard)
        return [(name.decode(), datetime.fromtimestamp(at, UTC)) for name, at in found if names_in([name])]

    def of_all_shards(self, ask: Callable[[Any, int], Any]) -> list[Any]:
        """The replies of all shards to the command that `ask` puts into a pipeline."""
        return self._connection.together(lambda pipe: [ask(pipe, shard) for shard in range(keys.SHARDS)])

    def _ids_in(self, shard: int) -> list[str]:
        name = keys.shard_keys(shard).workflows
        return names_in(self._connection.call(lambda client: client.zrange(name, 0, -1)))

    def _with_fields(self, shard: int, found: Sequence[str]) -> Iterator[tuple[str, Mapping[str, str]]]:
        for first in range(0, len(found), _PAGE):
            page = found[first : first + _PAGE]
            own = (name(workflow) for workflow in page for name in (keys.workflow_key, keys.history_key))
            texts = self._connection.run("list", (*keys.shard_keys(shard), *own), ())
            for workflow, text in zip(page, texts, strict=True):
                if text:
                    try:
                        fields = json.loads(text)
                    except BROKEN:
                        fields = {DAMAGED: "its plain fields are no text"}
                    yield workflow, fields


def names_in(members: Any) -> list[str]:
    """The workflow ids among the members of a list; other members are ignored."""
    names = (member.decode("ascii", "replace") for member in members)
    return [name for name in names if keys.is_workflow(name)]
