"""Live events of a real `fixloop serve`: their recipients, resuming, and the report of a gap."""

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from fixloop.serve.access import scopes_of
from fixloop.serve.tokens import Tokens
from fixloop.store.connection import Connection
from fixloop.store.limits import CHANGES_KEPT
from tests.fixtures.command_stage import Agents, empty_store
from tests.fixtures.serve_process import Server, client_of, serving

pytestmark = pytest.mark.slow

OTHER = "ffffffff-1-1"


class Told(NamedTuple):
    """One event."""

    kind: str
    data: dict[str, Any]
    id: str


class Scene(NamedTuple):
    """A server, the agents of its Redis, and a caller."""

    server: Server
    agents: Agents
    client: httpx.Client
    redis_url: str


@pytest.fixture
def scene(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    with (
        empty_store(redis_url, tmp_path, monkeypatch) as store,
        serving(redis_url, tmp_path) as server,
        client_of(server, redis_url, "viewer") as client,
    ):
        yield Scene(server, Agents(store), client, redis_url)


def listen(scene: Scene, client: httpx.Client | None = None, after: str = "") -> Any:
    return (client or scene.client).stream(
        "GET", "/v1/events", headers={"Last-Event-ID": after} if after else {}
    )


def events(answer: httpx.Response) -> Iterator[Told]:
    """The received lines, without comments."""
    fields: dict[str, str] = {}
    for line in answer.iter_lines():
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value
        elif not line and fields:
            yield Told(fields.get("event", ""), json.loads(fields.get("data", "{}")), fields.get("id", ""))
            fields = {}


def begun(answer: httpx.Response) -> Iterator[Told]:
    """The events after the first, which says to read everything once."""
    assert answer.status_code == 200
    lines = events(answer)
    first = next(lines)
    assert (first.kind, bool(first.id)) == ("reset", True)
    return lines


def change(workflow: str, version: int) -> dict[str, Any]:
    return {"workflow": workflow, "version": version}


def test_a_change_is_sent_with_its_new_version(scene: Scene) -> None:
    with listen(scene) as answer:
        lines = begun(answer)
        assert answer.headers["content-type"].startswith("text/event-stream")

        workflow = scene.agents.start()

        told = next(lines)
        assert (told.kind, told.data) == ("change", change(workflow, 1))


def test_missed_events_are_sent_from_the_last_id_on(scene: Scene) -> None:
    with listen(scene) as answer:
        lines = begun(answer)
        first = scene.agents.start(1)
        told = next(lines)
        while not told.id:
            told = next(lines)
    second, third = scene.agents.start(2), scene.agents.start(3)

    with listen(scene, after=told.id) as answer:
        lines = events(answer)
        found = {next(lines).data["workflow"], next(lines).data["workflow"]}

    assert told.data == change(first, 1)
    assert found == {second, third}


def test_another_server_continues_from_the_same_id(scene: Scene, tmp_path: Path) -> None:
    with listen(scene) as answer:
        lines = begun(answer)
        scene.agents.start(1)
        told = next(lines)
    workflow = scene.agents.start(2)
    (tmp_path / "other").mkdir()

    with (
        serving(scene.redis_url, tmp_path / "other") as other,
        client_of(other, scene.redis_url) as client,
        listen(scene, client=client, after=told.id) as answer,
    ):
        assert next(events(answer)).data == change(workflow, 1)


def test_a_client_away_for_too_long_is_told_to_reload(scene: Scene) -> None:
    with listen(scene) as answer:
        lines = begun(answer)
        workflow = scene.agents.start(1)
        told = next(lines)
    # Redis keeps up to a hundred more: it removes whole blocks.
    for number in range(CHANGES_KEPT + 200):
        scene.agents.engine.refuse(workflow, "fix-completed", f"refusal {number}")

    with listen(scene, after=told.id) as answer:
        assert next(events(answer)).kind == "reset"


def test_an_invalid_event_id_is_refused(scene: Scene) -> None:
    answer = scene.client.get("/v1/events", headers={"Last-Event-ID": "yesterday"})

    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/invalid")


def test_events_of_another_project_are_not_sent(scene: Scene) -> None:
    with closing(Connection(scene.redis_url)) as connection:
        token = Tokens(connection).create("eve", scopes_of("admin", ""), ("ffffffff",), days=1)
    with (
        httpx.Client(
            base_url=scene.server.url, headers={"Authorization": f"Bearer {token}"}, timeout=90
        ) as client,
        listen(scene, client=client) as answer,
    ):
        lines = begun(answer)
        scene.agents.start(1)
        scene.agents.start(1, workflow=OTHER)

        told = next(lines)
        while not told.data:
            told = next(lines)

    assert told.data == change(OTHER, 1)


def test_a_stream_without_a_token_is_refused(scene: Scene) -> None:
    assert httpx.get(f"{scene.server.url}/v1/events", timeout=90).status_code == 401


def test_all_of_many_listeners_get_the_event(scene: Scene) -> None:
    told: list[Told] = []
    ready = threading.Barrier(21)

    def one() -> None:
        with (
            httpx.Client(base_url=scene.server.url, headers=scene.client.headers, timeout=90) as client,
            listen(scene, client=client) as answer,
        ):
            lines = begun(answer)
            ready.wait()
            told.append(next(lines))

    threads = [threading.Thread(target=one) for _ in range(20)]
    for thread in threads:
        thread.start()
    ready.wait()
    workflow = scene.agents.start()
    for thread in threads:
        thread.join()

    assert [each.data for each in told] == [change(workflow, 1)] * 20
