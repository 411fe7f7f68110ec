"""How `fixloop worker --check` reads a supervisor's health file."""

from dataclasses import replace
from pathlib import Path

import pytest

from fixloop.machine.health import (
    SILENT_SECONDS,
    Health,
    Part,
    forget,
    health_file,
    healths,
    note,
    problems,
    well,
)
from fixloop.machine.owner import identity

NOW = 1000.0
WELL = Health(
    owner="host/boot/1/4711/3",
    redis="redis://localhost:6379/0",
    at=NOW - 1,
    parts=(
        Part("sweep", serving=1, heard_at=NOW - 1),
        Part("control", serving=1, heard_at=NOW - 1),
        Part("work", wanted=4, serving=4, heard_at=NOW - 1),
    ),
)


def with_part(role: str, **changes: object) -> Health:
    parts = tuple(replace(part, **changes) if part.role == role else part for part in WELL.parts)  # type: ignore[arg-type]
    return replace(WELL, parts=parts)


def test_a_worker_whose_parts_all_respond_is_healthy() -> None:
    assert problems(WELL, NOW) == []
    assert well(WELL) == "worker 4711 is well: supervisor, 4 of 4 work processes, control and sweeper serve"


@pytest.mark.parametrize(
    ("health", "said"),
    [
        (replace(WELL, at=NOW - 60), "its supervisor has said nothing for 60 s"),
        (replace(WELL, stopping=True), "it is ending"),
        (with_part("sweep", heard_at=NOW - 12), "the sweeper has said nothing for 12 s"),
        (with_part("control", heard_at=None), "control has not begun to serve"),
        (
            with_part("control", heard_at=None, deaths=2, last_death="exit code 1: no room"),
            "control has not begun to serve (it ended 2 times, at last exit code 1: no room)",
        ),
        (with_part("work", heard_at=NOW - 12), "the work processes have said nothing for 12 s"),
        (with_part("work", serving=3), "only 3 of 4 work processes run"),
        (with_part("work", serving=0, deaths=1), "only 0 of 4 work processes run (it ended once, at last )"),
    ],
)
def test_each_part_that_does_not_respond_is_named_with_its_cause(health: Health, said: str) -> None:
    assert problems(health, NOW) == [said]


def test_a_part_may_be_silent_for_as_long_as_a_busy_machine_takes() -> None:
    assert problems(with_part("control", heard_at=NOW - SILENT_SECONDS), NOW) == []


def test_a_live_supervisor_s_file_is_read_back_and_only_its_owner_sees_it(tmp_path: Path) -> None:
    written = replace(WELL, owner=identity())

    note(tmp_path, written)

    assert list(healths(tmp_path)) == [written]
    assert health_file(tmp_path, written.owner).stat().st_mode & 0o777 == 0o600
    assert health_file(tmp_path, written.owner).parent.stat().st_mode & 0o777 == 0o700
    forget(tmp_path, written.owner)
    assert list(healths(tmp_path)) == []


def test_a_dead_supervisor_s_file_is_removed_and_another_machine_s_is_kept(tmp_path: Path) -> None:
    dead = replace(WELL, owner=f"{identity().rpartition('/')[0]}/1")
    note(tmp_path, dead)
    note(tmp_path, WELL)

    assert list(healths(tmp_path)) == []
    assert not health_file(tmp_path, dead.owner).exists()
    assert health_file(tmp_path, WELL.owner).exists()


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"parts": []}', '{"owner": 1, "parts": [1]}', "[" * 50_000, "\0"]
)
def test_a_file_that_no_supervisor_wrote_is_ignored(text: str, tmp_path: Path) -> None:
    note(tmp_path, WELL)
    health_file(tmp_path, WELL.owner).write_text(text)

    assert list(healths(tmp_path)) == []
