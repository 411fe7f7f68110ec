"""Reports damaged data for the workflow it belongs to, so that other workflows are not affected.

A failed script only says where it failed, so the damaged key is looked for afterwards. A key that a shard's workflows
share is no single workflow's damage: setting one aside would not repair it.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha1
from typing import Any, Final

from fixloop.errors import Damaged, InfrastructureError, ProtocolError
from fixloop.store import keys
from fixloop.store.connection import Connection, Misunderstood

BROKEN: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Exceptions that reading bytes not written by fixloop may raise."""
_SHARD_KINDS: Final = ("hash", "zset", "zset", "hash", "zset", "zset", "hash", "zset")
"""The types of `ShardKeys`, in order."""
_SHOWN: Final = 120
_ROUNDS: Final = 20


@contextmanager
def reading(workflow: str) -> Iterator[None]:
    """Read what is stored of a workflow; Damaged if it is not what fixloop writes."""
    try:
        yield
    except BROKEN as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise Damaged(workflow, f"what is stored of it cannot be read ({said[:_SHOWN]})") from None


def blamed(connection: Connection, workflow: str, error: Misunderstood) -> ProtocolError:
    """The error for a failed script: Damaged if the workflow's own data is the cause, else ProtocolError."""
    shard = keys.shard_of(workflow)
    own = {
        keys.workflow_key(workflow): "hash",
        keys.history_key(workflow): "list",
        keys.artifacts_key(workflow): "hash",
    }
    shared = dict(zip(keys.shard_keys(shard), _SHARD_KINDS, strict=True))
    shared |= {keys.ended_key(shard): "zset", keys.retired_key(shard): "hash"}
    for name, found, kind in _wrong(connection, own):
        return Damaged(workflow, f"{name} is a {found} and has to be a {kind}")
    for name, found, kind in _wrong(connection, shared):
        return ProtocolError(
            f"{name} in Redis is a {found} and has to be a {kind}: what all workflows of shard {shard} share is "
            "damaged; restore it from a backup"
        )
    # The script had started, and failed on what it found.
    in_script = "script" in error.reply
    return Damaged(workflow, f"Redis cannot work on it ({error.reply[:_SHOWN]})") if in_script else error


def _wrong(connection: Connection, kinds: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    """Each key of the wrong type: its name, its type, and the expected type."""
    types = connection.together(lambda pipe: [pipe.type(name) for name in kinds])
    for (name, kind), found in zip(kinds.items(), types, strict=True):
        if found.decode() not in (kind, "none"):
            yield name, found.decode(), kind


def set_aside(
    connection: Connection, workflow: str, note: str, keep: Callable[[Mapping[str, bytes]], None]
) -> None:
    """Remove all keys of a workflow, readable or not, after `keep` got them as Redis dumps them. `note` says how and
    when; it is stored after the workflow's number."""
    shard = keys.shard_of(workflow)
    shared = (keys.ended_key(shard), keys.retired_key(shard), keys.changes_key(shard))
    told = (workflow, keys.feature_of(workflow), keys.number_of(workflow), note)
    own = (keys.workflow_key(workflow), keys.history_key(workflow), keys.artifacts_key(workflow))

    def dump(client: Any) -> dict[str, bytes]:
        locks = client.scan_iter(keys.lock_key(workflow, "*"), count=1000)
        names = [*own, *(name.decode() for name in locks)]
        with client.pipeline(transaction=True) as pipe:
            for name in names:
                pipe.dump(name)
            return {name: data or b"" for name, data in zip(names, pipe.execute(), strict=True)}

    for _ in range(_ROUNDS):
        dumped = connection.call(dump)
        keep(dumped)
        digests = [sha1(data, usedforsecurity=False).hexdigest() for data in dumped.values()]
        if (
            connection.run("set_aside", (*keys.shard_keys(shard), *shared, *dumped), (*told, *digests))
            == b"ok"
        ):
            return
    raise InfrastructureError(
        f"workflow {workflow} was changed {_ROUNDS} times in a row; stop its workers and try again"
    )
