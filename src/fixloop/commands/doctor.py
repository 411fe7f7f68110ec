"""`doctor`: what is wrong with this machine, one line per check, each with its remedy.

Changes nothing, except that it briefly starts the project's embedded Redis.
"""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import redis
from typer import Exit, Option

from fixloop.commands.screen import print_json, print_lines, say
from fixloop.commands.session import AsJson, here, open_session
from fixloop.configuration.preflight import Preflight, as_document, lines
from fixloop.errors import ExitCode, FixloopError, InfrastructureError, NotVerifiedError
from fixloop.intake.frozen_configuration import preflight_at
from fixloop.intake.hook_files import last_call
from fixloop.machine.guard import mode_in_use
from fixloop.machine.sandbox import means_in_use
from fixloop.outside.hook_dialects import DIALECTS, is_installed
from fixloop.protocol.durations import iso_stamp
from fixloop.repository.identity import top_of
from fixloop.servers.broker_url import is_rabbitmq
from fixloop.servers.connection_errors import reason_of
from fixloop.servers.redis_binary import server_for
from fixloop.servers.redis_place import Place
from fixloop.servers.redis_url import RedisPlace, place_of, shown_url
from fixloop.servers.settings import Settings, load_settings, redis_urls
from fixloop.store.connection import client_for
from fixloop.store.records import DAMAGED
from fixloop.store.redis_store import RedisStore

OLDEST_PYTHON: Final = (3, 11)
OLDEST_GIT: Final = (2, 38)
"""The first with `git merge-tree --write-tree`."""
OLDEST_REDIS: Final = (6, 2)
KNOWS_QUEUES_TIMEOUT: Final = (3, 12)
"""The first RabbitMQ in which each queue can have its own timeout."""
FULL: Final = 0.9
"""Of its memory: the rest fills up soon, and nothing is ever evicted."""
SHOWN: Final = 5
"""How many damaged workflows are named."""
_COMPOSE_REMEDY: Final = "start it, for example with `docker compose up -d redis`"


class Finding(NamedTuple):
    """One check's answer."""

    name: str
    ok: bool | None
    """None if it cannot be determined, or may be intended."""
    detail: str
    remedy: str = ""
    """What to do; empty if there is nothing to do."""

    def __str__(self) -> str:
        word = {True: "ok", False: "wrong", None: "note"}[self.ok]
        line = f"{word:5}  {self.name}: {self.detail}"
        return f"{line}; {self.remedy}" if self.remedy and not self.ok else line


def doctor(
    json: AsJson = False,
    rejected: Annotated[
        bool, Option("--rejected", help="Only show the latest rejected broker messages.")
    ] = False,
) -> None:
    """
    Check this machine for problems.

    Prints one line per check, with a remedy; exit code 1 if something is wrong. Checks Python, git, the
    cache and Redis, as set by the FIXLOOP_ variables, and what this folder's checks need.
    """
    if rejected:
        with open_session(create=False) as session:
            found = session.store.rejections()
        if json:
            kept = [each._asdict() | {"at": each.at.isoformat()} for each in found.kept]
            print_json({"total": found.total, "kept": kept})
            return
        for each in found.kept:
            print_lines(f"{each.at:%Y-%m-%d %H:%M:%SZ} {each.queue}: {each.why}", f"    {each.text}")
        say(f"{found.total} were rejected in all; the last {len(found.kept)} are kept")
        return
    plan, checks = _checks_of(here())
    settings = load_settings()
    findings = [*examine(settings, top_of(here())[0]), *checks, *_hooks(here(), settings.cache_dir)]
    if json:
        preflight = as_document(plan) if plan is not None else None
        print_json({"findings": [finding._asdict() for finding in findings], "preflight": preflight})
    else:
        print_lines(*[*map(str, findings), *(lines(plan) if plan is not None else ())])
    if any(finding.ok is False for finding in findings):
        raise Exit(ExitCode.WRONG)


def _checks_of(directory: Path) -> tuple[Preflight | None, list[Finding]]:
    try:
        plan = preflight_at(directory)
    except NotVerifiedError as error:
        return None, [Finding("checks", False, str(error))]
    except FixloopError as error:
        return None, [Finding("checks", None, str(error))]
    missing = [
        Finding(each.name, False if each.blocks else None, f"{each.specialist}: {each.reason}", each.remedy)
        for each in plan.unverified
    ]
    count = len(plan.checks)
    return plan, [Finding("checks", True, f"{count} check{'s' * (count > 1)} can run here"), *missing]


def _hooks(folder: Path, cache: Path) -> Iterator[Finding]:
    """When each hook installed here last ran."""
    for name, dialect in DIALECTS.items():
        file = folder / dialect.file
        if not file.is_file() or not is_installed(file.read_text(errors="replace")):
            continue
        last = last_call(cache, name, folder)
        told = f"last ran at {iso_stamp(last.at)}: {last.said}" if last else "installed, but has never run"
        remedy = dialect.trust or f"run {name} here once; it may ask to trust the hook"
        yield Finding(f"hook {name}", True if last else None, told, remedy)


def examine(settings: Settings, directory: Path) -> list[Finding]:
    """All checks of the project in `directory`, in a fixed order; none raises."""
    found = list(_machine(directory, settings.cache_dir.resolve()))
    if settings.archive_dir is not None:
        # Ended workflows stay in Redis while it cannot be written.
        found.append(_writable("archive", settings.archive_dir, "FIXLOOP_ARCHIVE_DIR"))
    if settings.is_embedded:
        project = settings.embedded or directory
        try:
            path, version = server_for(Place(project.resolve()).data)
        except FixloopError as error:
            return [*found, Finding("server", False, str(error))]
        found.append(Finding("server", True, f"{version} for the embedded mode ({path})"))
        if not _project(project).ok:
            return found
    try:
        with redis_urls(settings, directory) as urls:
            parted = urls.broker != urls.state
            state = redis_findings("state" if parted else "redis", urls.state, settings)
            found += state
            if state[0].ok:
                found += _stored(urls.state)
            if is_rabbitmq(urls.broker):
                found += _rabbitmq(urls.broker)
            elif parted:
                found += redis_findings("broker", urls.broker, settings)
    except FixloopError as error:
        found.append(Finding("redis", False, str(error)))
    return found


def _machine(directory: Path, cache: Path) -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    is_new = sys.version_info >= OLDEST_PYTHON
    yield Finding("python", is_new, f"{version} ({sys.executable})", "use Python 3.11 or newer")
    remedy = f"install git {'.'.join(map(str, OLDEST_GIT))} or newer"
    command = ["git", "--version"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        yield Finding("git", False, "does not run", remedy)
    else:
        yield Finding("git", _numbers(said) >= OLDEST_GIT, said.strip().removeprefix("git version "), remedy)
    # Debian packages ensurepip separately; without it, venv fails only when used.
    missing = [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
    detail = f"no {' and '.join(missing)}" if missing else "can create environments"
    yield Finding("venv", not missing, detail, "install it (on Debian `apt install python3-venv`)")
    yield _project(directory)
    checkout = next((folder for folder in (cache, *cache.parents) if (folder / ".git").exists()), None)
    if checkout is not None:
        where = f"{cache} is inside the checkout {checkout}"
        yield Finding("cache", False, where, "set FIXLOOP_CACHE_DIR to a place outside")
    else:
        yield _writable("cache", cache, "FIXLOOP_CACHE_DIR")
    # Both modes are fine, but only a namespace is inescapable: a watched command can kill its worker.
    try:
        mode = mode_in_use()
    except InfrastructureError as error:
        yield Finding("guard", False, str(error))
        return
    is_namespace = mode.name == "namespace"
    detail = "each command runs in a PID namespace" if is_namespace else "workers watch their commands"
    yield Finding("guard", True, f"{detail}{f' ({mode.reason})' if mode.reason else ''}")
    means = means_in_use()
    is_missing = False if (load_settings().sandbox or "auto") not in ("auto", "off") else None
    detail = f"{means.name} confines checks and fixers unless `[sandbox] mode` is off"
    if means.reason:
        detail = f"checks and fixers can write whatever you can: {means.reason}"
    yield Finding("sandbox", is_missing if means.reason else True, detail, "install bubblewrap")


def _numbers(text: str) -> tuple[int, ...]:
    found = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def _project(directory: Path) -> Finding:
    is_there = directory.is_dir()
    writable = is_there and os.access(directory, os.W_OK | os.X_OK)
    told = ("writable" if writable else "read-only") if is_there else "not a directory"
    remedy = "run fixloop in a directory you can write to"
    return Finding("project", writable, f"{directory} is {told}", remedy)


def _writable(name: str, folder: Path, variable: str) -> Finding:
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    writable = existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)
    told = f"{folder} is writable" if writable else f"{existing} cannot be written"
    return Finding(name, writable, told, f"set {variable} to a directory you can write to")


def _stored(url: str) -> Iterator[Finding]:
    """Workflows that the lists mark as damaged, and what workers rejected; `audit verify` reads every byte."""
    with closing(RedisStore(url)) as store:
        found = {workflow: DAMAGED in fields for workflow, fields in store.workflows()}
        rejected = store.rejections()
    damaged = sorted(workflow for workflow, is_damaged in found.items() if is_damaged)
    if damaged:
        told = f"{len(damaged)} of {len(found)} cannot be used: {', '.join(damaged[:SHOWN])}"
        yield Finding("workflows", False, told, f"`fixloop repair {damaged[0]}` sets it aside")
    else:
        yield Finding("workflows", True, f"{len(found)} stored")
    if rejected.total:
        remedy = "`fixloop doctor --rejected` shows the latest; check who can reach the broker"
        yield Finding("messages", None, f"workers have rejected {rejected.last}", remedy)


def _rabbitmq(url: str) -> Iterator[Finding]:
    # It loads Celery, which no other check needs.
    from fixloop.servers.broker import ping

    try:
        told = ping(url)
    except FixloopError as error:
        yield Finding("broker", False, str(error), "start it, or set FIXLOOP_BROKER_URL")
        return
    product, version = str(told.get("product", "unknown")), str(told.get("version", ""))
    yield Finding("broker", product == "RabbitMQ", f"{product} {version} at {shown_url(url)}", "use RabbitMQ")
    if _numbers(version) < KNOWS_QUEUES_TIMEOUT:
        limit = "it closes a worker's channel when a step exceeds its consumer_timeout (30 minutes)"
        remedy = "set `consumer_timeout` in rabbitmq.conf above your longest step"
        yield Finding("broker timeout", None, f"{limit}; the worker reopens it", remedy)


def redis_findings(name: str, url: str, settings: Settings) -> list[Finding]:
    """Whether the Redis at `url` answers, its version, whether it keeps what it stores, and its replicas."""
    place = place_of(url)
    try:
        with closing(_client(place, settings)) as client:
            state: dict[str, Any] = client.info()
            with suppress(redis.ResponseError):  # not every user may ask
                state["default_user"] = client.acl_getuser("default")
    except (redis.RedisError, OSError, ValueError) as error:
        reason = reason_of(error, url)
        told = f"cannot reach {shown_url(url)}: {reason.text}"
        return [Finding(name, False, told, reason.remedy or _COMPOSE_REMEDY)]
    version = str(state.get("redis_version", "unknown"))
    remedy = f"use Redis {'.'.join(map(str, OLDEST_REDIS))} or newer"
    told = f"version {version} at {shown_url(url)}"
    answers = Finding(name, _numbers(version) >= OLDEST_REDIS, told, remedy)
    return [answers, *_keeps(name, state), *_copied(name, place, state, settings)]


def _client(place: RedisPlace, settings: Settings) -> redis.Redis:
    connect, answer = settings.redis_connect_seconds, settings.redis_timeout_seconds
    return client_for(place, connect_seconds=connect, answer_seconds=answer)


def _copied(name: str, place: RedisPlace, state: dict[str, Any], settings: Settings) -> Iterator[Finding]:
    """Its replicas, if any are required, and the sentinels that would choose one."""
    if place.replicas:
        found = int(state.get("connected_slaves", 0))
        told = f"{found} connected, {place.replicas} to confirm each commit"
        remedy = "start them, or set FIXLOOP_REPLICAS"
        yield Finding(f"{name} replicas", found >= place.replicas, told, remedy)
    if place.sentinels:
        answers = []
        for sentinel in place.sentinels:
            try:
                with closing(_client(place._replace(sentinels=(sentinel,)), settings)) as client:
                    answers.append(bool(client.ping()))
            except (redis.RedisError, OSError):
                answers.append(False)
        told = f"{sum(answers)} of {len(answers)} answer and know {place.service!r}"
        remedy = "start the others: a majority must agree on a failover"
        yield Finding(f"{name} sentinels", all(answers), told, remedy)


def _keeps(name: str, state: dict[str, Any]) -> Iterator[Finding]:
    log = str(state.get("aof_enabled")) == "1"
    told = "append-only" if log else "not append-only: a restart loses data"
    yield Finding(f"{name} log", log, told, "set `appendonly yes`")
    if log:
        status = str(state.get("aof_last_write_status"))
        told = f"the last write to the log was {status}"
        remedy = "check the disk and the server's log"
        yield Finding(f"{name} writes", status == "ok", told, remedy)
        rights = state.get("default_user", {"categories": ["+@all"], "keys": ["*"]})
        if "+@all" not in rights["categories"] or {"*", "~*"}.isdisjoint(rights["keys"]):
            told = "without its rights, many versions of Redis lose what scripts wrote when they restart"
            yield Finding(f"{name} user default", None, told, "make it `user default off ~* &* +@all`")
    policy = str(state.get("maxmemory_policy", "unknown"))
    remedy = "set `maxmemory-policy noeviction`"
    yield Finding(f"{name} memory", policy == "noeviction", f"policy {policy}", remedy)
    used, most = int(state.get("used_memory", 0)), int(state.get("maxmemory", 0))
    if most:
        told = f"{used * 100 // most} % of {most >> 20} MB used"
        remedy = "raise `maxmemory`: a full Redis accepts no more steps"
        yield Finding(f"{name} space", used < FULL * most, told, remedy)
