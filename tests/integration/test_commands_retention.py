"""`archive` and `purge`, and the commands that read an archived workflow, on workflows in a real Redis."""

from pathlib import Path

import pytest

from fixloop.errors import ExitCode
from tests.fixtures.command_stage import PROJECT, Agents, on_redis, said

pytestmark = pytest.mark.slow

agents = pytest.fixture(on_redis)
Capsys = pytest.CaptureFixture[str]
READING = (
    ("log", "47"),
    ("log", "47", "--all", "--json"),
    ("status", "47", "--json"),
    ("status", "--json"),
    ("report", "47"),
    ("audit", "verify", "47"),
    ("audit", "verify", "--json", "--project", PROJECT),
)


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "archive"
    monkeypatch.setenv("FIXLOOP_ARCHIVE_DIR", str(folder))
    return folder


@pytest.mark.proves("G26", "B18")
def test_every_reading_command_shows_an_archived_workflow_as_before(
    agents: Agents, archive: Path, capsys: Capsys
) -> None:
    workflow = agents.start()
    agents.run(workflow)
    before = [said(capsys, *words) for words in READING]

    moved = said(capsys, "archive", "--older-than", "0")

    assert (moved.code, moved.out.startswith(f"{workflow}  archived  ended ")) == (ExitCode.DONE, True)
    assert str(archive) in moved.out
    assert agents.store.read(workflow) is None
    assert [said(capsys, *words) for words in READING] == before
    again = said(capsys, "archive", "--older-than", "0")
    assert (again.code, again.out, again.err) == (0, "", "fixloop: no workflow ended that long ago\n")


@pytest.mark.proves("G26")
def test_an_archived_workflow_is_named_when_its_archive_is_not_configured(
    agents: Agents, archive: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow = agents.start()
    agents.run(workflow)
    assert (
        said(capsys, "archive", "--older-than", "0", "--json").document["workflows"][0]["status"]
        == "archived"
    )

    monkeypatch.delenv("FIXLOOP_ARCHIVE_DIR")

    for words in (("status", "47", "--project", PROJECT), ("log", workflow)):
        told = said(capsys, *words)
        assert told.code == ExitCode.USAGE
        assert f"workflow {workflow} was archived on " in told.err
        assert "set FIXLOOP_ARCHIVE_DIR to where the workers keep it" in told.err


@pytest.mark.proves("G26")
def test_purge_says_what_it_deletes_and_refuses_live_workflows(
    agents: Agents, archive: Path, capsys: Capsys
) -> None:
    archived = agents.start()
    agents.run(archived)
    said(capsys, "archive", "--older-than", "0")
    live = agents.start(48)

    refused = said(capsys, "purge", "48", "--older-than", "0", "--project", PROJECT)
    assert (refused.code, "issue 48 is live" in refused.err) == (ExitCode.USAGE, True)
    tried = said(capsys, "purge", "--older-than", "0", "--dry")
    assert said(capsys, "log", "47").code == ExitCode.DONE
    young = said(capsys, "purge", "--older-than", "1d")
    assert (young.code, young.out) == (0, "")
    purged = said(capsys, "purge", "--older-than", "0")

    assert purged.out == tried.out
    assert purged.out.startswith(f"{archived}  purged  ended ")
    assert not list(archive.glob("*/*"))
    gone = said(capsys, "log", "47", "--project", PROJECT)
    assert (gone.code, "was purged on" in gone.err, "nothing of it is left" in gone.err) == (2, True, True)
    assert agents.store.read(live) is not None


def test_ages_and_a_missing_archive_are_reported_in_one_sentence(agents: Agents, capsys: Capsys) -> None:
    missing = said(capsys, "archive")
    assert (missing.code, "set FIXLOOP_ARCHIVE_DIR to a folder" in missing.err) == (2, True)
    for words in (("archive", "--older-than", "soon"), ("purge", "--older-than", "-1d")):
        told = said(capsys, *words)
        assert (told.code, told.err.count("\n"), "is not an age; use 90d, 12h or 30m" in told.err) == (
            2,
            1,
            True,
        )


def test_a_history_that_does_not_verify_is_reported_with_exit_code_1(
    agents: Agents, archive: Path, capsys: Capsys
) -> None:
    workflow = agents.start()
    digest = agents.store.put_artifact(workflow, b"gates", shared=True)
    agents.run(agents.start(48, configuration=digest))
    agents.run(agents.start(49, configuration="0" * 64))

    told = said(capsys, "archive", "--older-than", "0")

    assert told.code == ExitCode.WRONG
    assert f"{PROJECT}-49-1  kept  " in told.out


def test_a_truncated_archive_file_is_named_by_the_audit(
    agents: Agents, archive: Path, capsys: Capsys
) -> None:
    agents.run(agents.start())
    said(capsys, "archive", "--older-than", "0")
    (path,) = archive.glob("*/*")
    with path.open("ab") as file:
        file.write(b"\x1f\x8b")

    told = said(capsys, "audit", "verify", "--project", PROJECT)

    assert f"{path} cannot be read from byte " in told.out
    assert said(capsys, "log", "47").code == ExitCode.DONE
