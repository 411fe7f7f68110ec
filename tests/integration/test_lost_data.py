"""A Redis that lost its data, or is another one: commands and workers say so; who sweeps it."""

from pathlib import Path

import pytest
import redis

from fixloop.errors import ExitCode
from fixloop.machine.owner import identity
from fixloop.repository.snapshot import issues_handed_in
from fixloop.statefiles.named_files import Files, NamedFiles, Stamp
from fixloop.store.redis_store import RedisStore
from tests.fixtures.command_stage import Agents, on_redis, said
from tests.fixtures.repositories import git, make_repository
from workers.recovery.sweeper import Sweeper

pytestmark = pytest.mark.slow

agents = pytest.fixture(on_redis)
Capsys = pytest.CaptureFixture[str]


def submitted(folder: Path, *issues: int) -> Path:
    """A repository from which these issues were submitted."""
    made = make_repository(folder, {"a.py": "1\n"})
    for issue in issues:
        git(made, "update-ref", f"refs/fixloop/{issue}/base", "HEAD")
    return made


def test_a_repository_shows_which_issues_were_submitted(tmp_path: Path) -> None:
    repository = submitted(tmp_path / "shop", 47, 5)
    git(repository, "update-ref", "refs/fixloop/kept/base", "HEAD")

    assert issues_handed_in(repository) == [5, 47]
    assert issues_handed_in(tmp_path) == []


@pytest.mark.parametrize("words", [("status", "47"), ("resume", "47"), ("log", "47"), ("resume",)])
def test_a_submitted_issue_that_redis_lost_is_reported_as_lost(
    agents: Agents, capsys: Capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(submitted(tmp_path / "shop", 47))

    told = said(capsys, *words)

    assert (told.code, told.out, told.err.count("\n")) == (ExitCode.USAGE, "", 1)
    assert (
        "has no workflow of issue 47, although refs/fixloop/47/base shows that it was submitted" in told.err
    )
    assert told.err.endswith(
        "the data was lost, or this is another Redis; restore its backup, or start again with "
        "`fixloop run --issue 47`\n"
    )


@pytest.mark.proves("K23")
def test_an_issue_whose_files_are_there_can_be_rebuilt_and_the_sentence_says_so(
    agents: Agents, capsys: Capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = submitted(tmp_path / "shop", 47, 48)
    monkeypatch.chdir(shop)
    for number, ended in ((47, True), (48, False)):
        stamp = Stamp(workflow=f"0a1b2c3d-{number}-1", issue=number, version=1, ended=ended)
        NamedFiles(shop, stamp.workflow).write(stamp, Files(()))

    told = said(capsys, "status")

    assert (
        "restore its backup, rebuild it from its files with `fixloop files 48 --rebuild`, or start"
        in told.err
    )


def test_an_empty_list_names_the_issues_that_redis_lost(
    agents: Agents, capsys: Capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(submitted(tmp_path / "shop", 47, 48))

    told = said(capsys, "status")

    assert (told.code, told.out) == (ExitCode.DONE, "")
    assert "has no workflow of issue 47, 48, although" in told.err


def test_a_removed_folder_of_an_embedded_redis_is_reported(
    capsys: Capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(submitted(tmp_path / "shop", 47))

    told = said(capsys, "resume", "47")

    assert told.code == ExitCode.USAGE
    assert f"the embedded Redis in {tmp_path / 'shop'} has no workflow of issue 47" in told.err


def test_a_sweeper_reports_once_that_redis_lost_its_data(
    redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    store, client = RedisStore(redis_url), redis.Redis.from_url(redis_url)
    client.flushdb()
    sweeper = Sweeper(store, ["fixloop.fix"], "fixloop.control")
    sweeper.notice_loss()
    sweeper.notice_loss()
    assert caplog.text == ""

    client.flushdb()
    for _ in range(3):
        sweeper.notice_loss()

    assert caplog.text.count("Redis lost its data, or another one took its place") == 1
    store.close()
    client.close()


def test_a_sweeper_skips_shards_that_another_swept_since_its_last_round(redis_url: str) -> None:
    store, client = RedisStore(redis_url), redis.Redis.from_url(redis_url)
    client.flushdb()
    sweeper = Sweeper(store, ["fixloop.fix"], "fixloop.control")
    assert sweeper.swept_by_others() == set()
    for shard in (0, 1, 2):
        store.sweep(shard, owner="another")
    store.sweep(3, owner=identity())

    looks = [sweeper.swept_by_others() for _ in range(2)]

    # The other one may have died since.
    assert looks == [{0, 1, 2}, set()]
    store.close()
    client.close()
