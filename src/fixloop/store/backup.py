"""Backs up a project's workflows to one file and restores them, as they are stored, so that they still verify.

Each workflow is read in one transaction and written in one. Its entries in the shard's keys (tickets, deadlines, the
live list) are rebuilt from its own hash. The file is gzipped JSON lines; the last line has the digest of all others.
"""

import gzip
import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from operator import methodcaller
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, NamedTuple

from redis.exceptions import WatchError

from fixloop.errors import UsageError
from fixloop.files.atomic import replacing
from fixloop.store import keys
from fixloop.store.backup_records import MOST_BYTES, Record, check, lines, requeued
from fixloop.store.chain import named
from fixloop.store.connection import Connection
from fixloop.store.limits import CHANGES_KEPT, FORGOTTEN_AT_MOST
from fixloop.store.seal import Sealing

FORMAT: Final = 1
_CHUNK: Final = 500
"""The most items of a list or hash that are written at once."""
_ROUNDS: Final = 20

Became = Literal["restored", "same", "other", "lives"]


class Header(NamedTuple):
    """The first line of a backup."""

    project: str
    """Eight hex digits."""
    at: str
    version: str
    """The fixloop version that wrote it."""
    sealed: str
    """The beginning of a digest of the key that seals its histories; empty: they are not sealed."""


class Restored(NamedTuple):
    """The result of restoring one workflow."""

    workflow: str
    became: Became
    """`same`: this version is already there; `other`: another version of it is there; `lives`: another workflow of its
    feature is live."""
    is_live: bool
    late_seconds: float
    """How far the shard's engine clock is ahead of its value at the backup."""


def sealed_with(sealing: Sealing | None) -> str:
    return sha256(b"backup " + sealing.key).hexdigest()[:16] if sealing is not None else ""


def back_up(connection: Connection, header: Header, path: Path) -> Iterator[str]:
    """
    Write the workflows of a project to a file and yield each id; the file appears once it is complete.

    Raises UsageError: it cannot be written; an earlier file is kept.
    """
    try:
        with replacing(path, mode=0o600, synced=True) as raw:
            yield from _written(connection, header, raw)
    except OSError as error:
        told = f"cannot write {path}: {error.strerror}; name a file in a folder that you may write to"
        raise UsageError(told) from None


def _written(connection: Connection, header: Header, raw: BinaryIO) -> Iterator[str]:
    digest, count = sha256(), 0
    with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=1, mtime=0) as file:

        def write(record: Record) -> None:
            line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
            if len(line) > MOST_BYTES:
                told = (
                    f"{record.get('workflow')} has more than {MOST_BYTES:,} bytes; archive or purge it first"
                )
                raise UsageError(told)
            digest.update(line)
            file.write(line)

        write({"fixloop": "backup", "format": FORMAT, **header._asdict()})
        write(_project(connection, header.project))
        shared: set[tuple[int, str]] = set()
        lists = [keys.shard_keys(shard).workflows for shard in range(keys.SHARDS)]
        found = connection.together(lambda pipe: [pipe.zrange(name, 0, -1) for name in lists])
        known = (name.decode() for names in found for name in names)
        for workflow in sorted(name for name in known if name.startswith(f"{header.project}-")):
            for record in _records(connection, workflow, shared):
                write(record)
                count += "workflow" in record
            yield workflow
        file.write(json.dumps({"count": count, "digest": digest.hexdigest()}).encode() + b"\n")


def header_of(path: Path) -> Header:
    """Read a whole backup and return its header. Raises UsageError: it is no backup, its digest does not match, or it
    has what no backup of its project has."""
    digest, last, count = sha256(), b"", 0
    first: Record | None = None
    try:
        with gzip.open(path) as file:
            for line in lines(file):
                if last:
                    digest.update(last)
                    count += b'"workflow":' in last[:20]
                first, last = first or json.loads(line), line
        end = json.loads(last)
    except FileNotFoundError:
        raise UsageError(f"{path} is not there") from None
    except (OSError, EOFError, ValueError, RecursionError, zlib.error) as error:
        raise UsageError(f"{path} is no whole backup ({error}); nothing was restored") from None
    if not isinstance(first, dict) or first.get("fixloop") != "backup":
        raise UsageError(f"{path} is no backup of fixloop")
    if first.get("format") != FORMAT:
        told = f"{path} is of format {first.get('format')}, and this fixloop reads {FORMAT}; use a newer one"
        raise UsageError(told)
    if end != {"count": count, "digest": digest.hexdigest()}:
        raise UsageError(f"{path} is not as it was written: its digest is another; nothing was restored")
    header = Header(*(str(first.get(name, "")) for name in Header._fields))
    _check_all(path, header.project)
    return header


def _check_all(path: Path, project: str) -> None:
    """UsageError: there is a record that no backup of `project` has."""
    with gzip.open(path) as file:
        for number, line in enumerate(lines(file), 1):
            try:
                record = json.loads(line)
                # The first line is the header, the last one the digest.
                if number > 1 and record.keys() != {"count", "digest"}:
                    check(record, project)
            except (UsageError, ValueError, TypeError, AttributeError, RecursionError) as error:
                told = f"line {number} is not of a backup of project {project[:8]}"
                raise UsageError(f"{path}: {told} ({str(error)[:300]}); nothing was restored") from None


def restore(
    connection: Connection, path: Path, put_aside: Callable[[str], None] | None = None
) -> Iterator[Restored]:
    """
    Restore the workflows of a backup that `header_of` has read, and yield the result of each. Repeating it changes
    nothing.

    Args:
        put_aside: removes another version of a workflow, or another live one; None: those are left alone.
    """
    with gzip.open(path) as file:
        records = map(json.loads, file)
        project = next(records)["project"]
        for record in records:
            if "artifact" in record:
                connection.call(methodcaller("setnx", record["key"], b64decode(record["data"])))
            elif "numbers" in record:
                _restore_project(connection, project, record)
            elif "workflow" in record:
                yield _restored(connection, record, put_aside)


def _restore_project(connection: Connection, project: str, record: Record) -> None:
    """Restore used issue numbers, retired workflows and waivers; existing entries are kept."""

    def put(pipe: Any) -> None:
        if record["numbers"]:
            pipe.sadd(keys.number_keys(project)[0], *record["numbers"])
        for feature, text in record["retired"].items():
            pipe.hsetnx(keys.retired_key(keys.shard_of_feature(feature)), feature, text)
        for field, text in record["waivers"].items():
            pipe.hsetnx(keys.WAIVERS, field, text)

    connection.together(put)


def _project(connection: Connection, project: str) -> Record:
    replies = connection.together(
        lambda pipe: (
            pipe.smembers(keys.number_keys(project)[0]),
            pipe.hgetall(keys.WAIVERS),
            *(pipe.hgetall(keys.retired_key(shard)) for shard in range(keys.SHARDS)),
        )
    )
    numbers, waivers, *retired = replies
    return {
        "numbers": sorted(int(each) for each in numbers),
        "retired": {name: text for each in retired for name, text in _of_project(each, project).items()},
        "waivers": _of_project(waivers, project),
    }


def _records(connection: Connection, workflow: str, shared: set[tuple[int, str]]) -> Iterator[Record]:
    """Everything stored of a workflow, after the shared artifacts that it names and no earlier workflow did."""
    shard = keys.shard_of(workflow)
    hash_, history, artifacts, ended, clock = connection.together(
        lambda pipe: (
            pipe.hgetall(keys.workflow_key(workflow)),
            pipe.lrange(keys.history_key(workflow), 0, -1),
            pipe.hgetall(keys.artifacts_key(workflow)),
            pipe.zscore(keys.ended_key(shard), workflow),
            pipe.hmget(keys.shard_keys(shard).shard, "away", "turned", "swept", "fence"),
        ),
        atomic=True,
    )
    if not hash_:
        # It was archived or purged after the list was read.
        return
    for digest in sorted(set(named(history)) - {each.decode() for each in artifacts}):
        if (shard, digest) in shared:
            continue
        shared.add((shard, digest))
        name = keys.artifact_key(workflow, digest)
        [data] = connection.together(methodcaller("get", name))
        if data is not None:
            yield {"artifact": digest, "key": name, "data": b64encode(data).decode()}
    yield {
        "workflow": workflow,
        "hash": {name.decode(): b64encode(value).decode() for name, value in hash_.items()},
        "history": [b64encode(entry).decode() for entry in history],
        "artifacts": {name.decode(): b64encode(data).decode() for name, data in artifacts.items()},
        "ended": ended,
        "clock": _clock(clock),
        "fence": int(clock[3] or 0),
    }


def _clock(kept: list[bytes | None]) -> float:
    """A shard's engine clock, in seconds; see `read_clock` in the Lua scripts."""
    away, turned = (float(each or 0) for each in kept[:2])
    return (float(kept[2]) if kept[2] is not None else datetime.now(UTC).timestamp()) - away - turned


def _restored(connection: Connection, record: Record, put_aside: Callable[[str], None] | None) -> Restored:
    workflow, hash_ = record["workflow"], {each: b64decode(value) for each, value in record["hash"].items()}
    is_live = not hash_.get("outcome") and record["ended"] is None
    shard = keys.shard_keys(keys.shard_of(workflow))
    for _ in range(_ROUNDS):
        stored, living, others, clock = connection.together(
            lambda pipe: (
                pipe.hmget(keys.workflow_key(workflow), "version", "head"),
                pipe.hget(shard.live, keys.feature_of(workflow)),
                pipe.zcard(shard.workflows),
                pipe.hmget(shard.shard, "away", "turned", "swept"),
            )
        )
        if stored == [hash_["version"], hash_["head"]]:
            return Restored(workflow, "same", is_live, 0.0)
        # The workflow that is in the way: another version of this one, or another live one of its feature.
        obstacle = workflow if stored[0] is not None else ""
        number = living.decode().rpartition("-")[2] if living is not None else ""
        if not obstacle and is_live and number and int(number) != keys.number_of(workflow):
            obstacle = f"{keys.feature_of(workflow)}-{number}"
        if obstacle:
            if put_aside is None:
                return Restored(workflow, "other" if obstacle == workflow else "lives", is_live, 0.0)
            put_aside(obstacle)
            continue
        writing = partial(_write, record=record, hash_=hash_, is_live=is_live, is_first=not others)
        with suppress(WatchError):
            connection.call(writing)
            late = _clock(clock) - record["clock"] if others else 0.0
            return Restored(workflow, "restored", is_live, late)
    raise UsageError(f"{workflow} changes all the time; stop what works on it, then restore again")


def _write(client: Any, record: Record, hash_: Mapping[str, bytes], *, is_live: bool, is_first: bool) -> None:
    """Write one workflow in one transaction. Raises WatchError: another process wrote it in the meantime."""
    workflow = record["workflow"]
    number, feature = keys.shard_of(workflow), keys.feature_of(workflow)
    shard, name = keys.shard_keys(number), keys.workflow_key(workflow)
    own, due, delayed = requeued(hash_)
    # Claims made after the backup must not share a fencing number with claims made after the restore.
    fence = record.get("fence", 0) + FORGOTTEN_AT_MOST
    with client.pipeline(transaction=True) as pipe:
        pipe.watch(name, shard.workflows, shard.live, shard.shard)
        if pipe.exists(name) or (is_first and pipe.zcard(shard.workflows)):
            raise WatchError(f"{workflow} is there")
        known = int(pipe.hget(shard.shard, "fence") or 0)
        pipe.multi()
        if is_first:
            # No other workflow uses this clock: it continues from its time at the backup.
            now = datetime.now(UTC).timestamp()
            pipe.hset(
                shard.shard,
                mapping={"away": f"{now - record['clock']:.6f}", "turned": "0", "swept": f"{now:.6f}"},
            )
        pipe.hset(shard.shard, "fence", max(known, fence))
        pipe.delete(keys.history_key(workflow), keys.artifacts_key(workflow))
        for part in _chunks(list(own.items())):
            pipe.hset(name, mapping=dict(part))
        for part in _chunks(record["history"]):
            pipe.rpush(keys.history_key(workflow), *map(b64decode, part))
        for digest, data in record["artifacts"].items():
            pipe.hset(keys.artifacts_key(workflow), digest, b64decode(data))
        if due is not None:
            pipe.zadd(shard.due, {workflow: due})
        for part in _chunks(list(delayed.items())):
            pipe.zadd(shard.delayed, dict(part))
        pipe.zadd(shard.workflows, {workflow: keys.issue_of(workflow)})
        pipe.sadd(keys.number_keys(workflow[:8])[0], keys.issue_of(workflow))
        if is_live:
            pipe.hset(shard.live, feature, keys.number_of(workflow))
        elif record["ended"] is not None:
            pipe.zadd(keys.ended_key(number), {workflow: record["ended"]})
        told = {"w": workflow, "v": hash_["version"]}
        pipe.xadd(keys.changes_key(number), told, maxlen=CHANGES_KEPT, approximate=True)
        pipe.execute()


def _chunks(whole: list[Any]) -> Iterator[list[Any]]:
    return (whole[begin : begin + _CHUNK] for begin in range(0, len(whole), _CHUNK))


def _of_project(found: Mapping[bytes, bytes], project: str) -> dict[str, str]:
    texts = {name.decode(): text.decode() for name, text in found.items()}
    return {name: text for name, text in texts.items() if name.startswith(f"{project}-")}
