"""The options of `run` and `enqueue` that only some profiles have, and their meaning."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from fixloop.commands.run_options import MOST_BYTES, facts_of
from fixloop.errors import UsageError
from fixloop.intake.feature import Feature, Kind, Priority
from fixloop.profiles.cycle.workers import check_graph

CYCLE, HANDOFF, VALIDATION = "cycle", "handoff", "validation"


def test_a_validation_needs_no_options_of_other_profiles() -> None:
    assert Feature(**facts_of(dict(profile=VALIDATION, only=["tests"]))) == Feature()


@pytest.mark.proves("D3")
def test_handoffs_have_a_kind_and_an_urgency() -> None:
    feature = Feature(
        **facts_of(dict(profile=HANDOFF, task="Mend it.", type=Kind.BUGFIX, priority=Priority.LOW))
    )

    assert (feature.profile, feature.task) == ("handoff", "Mend it.")
    assert (feature.kind, feature.priority) == (Kind.BUGFIX, Priority.LOW)


def test_a_task_is_read_from_a_file_or_from_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "task").write_bytes(b"\xef\xbb\xbfLog in.")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Log out.")))

    assert facts_of(dict(profile=CYCLE, task_file=tmp_path / "task"))["task"] == "Log in."
    assert facts_of(dict(profile=CYCLE, task_file=Path("-")))["task"] == "Log out."


@pytest.mark.proves("K17", "C43")
def test_a_plan_names_dependencies_in_any_case_of_letters(tmp_path: Path) -> None:
    plan = {"RA": [], "frontend": [], "EP": ["RA"], "cd": ["ep", "frontend"], "vas": ["cd"]}
    (tmp_path / "plan").write_text(json.dumps(plan))

    graph = facts_of(dict(profile=CYCLE, plan=tmp_path / "plan"))["graph"]

    assert graph["ep"] == ("ra",)
    check_graph(graph)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            dict(profile=VALIDATION, task="x"),
            "--task goes with --profile cycle or handoff, not with validation",
        ),
        (dict(profile=HANDOFF, plan=Path("x")), "--plan goes with --profile cycle, not with handoff"),
        (dict(profile=CYCLE, type=Kind.BUGFIX), "--type goes with --profile handoff, not with cycle"),
        (
            dict(profile=CYCLE, priority=Priority.LOW),
            "--priority goes with --profile handoff, not with cycle",
        ),
        (dict(profile=CYCLE, only=["tests"]), "--only goes with validation, not with --profile cycle"),
        (dict(profile=CYCLE, task="x", task_file=Path("y")), "--task and --task-file exclude each other"),
        (
            dict(profile=CYCLE, task_file=Path("nowhere")),
            "cannot read the task nowhere: No such file or directory",
        ),
    ],
)
def test_incompatible_options_are_named(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        facts_of(options)


@pytest.mark.proves("C44")
@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b'{"ra": ["vas"], "ep": ["ra"], "cd": ["ep"], "vas": ["cd"]}', "wait for each other: "),
        (b'{"ra": []}', "the dependency graph has no ep, cd, vas"),
        (b'{"ra": "ep"}', "has 'ep' for ra; it must be a list of agents"),
        (b"[1]", "must be an object such as"),
        (b"{}", "must be an object such as"),
        (b"{", "is not valid JSON"),
        (b"[" * 100_000, "is not valid JSON"),
        (b"\xff", "is not UTF-8: byte 0xff at 0"),
        (b" " * (MOST_BYTES + 1), f"has more than {MOST_BYTES} bytes; shorten it"),
    ],
)
def test_an_invalid_plan_is_one_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    (tmp_path / "plan").write_bytes(content)

    with pytest.raises(UsageError, match=sentence):
        check_graph(facts_of(dict(profile=CYCLE, plan=tmp_path / "plan"))["graph"])
