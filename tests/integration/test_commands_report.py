"""`report` on workflows in a real Redis: its output, its file, and the browser it opens."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from fixloop.errors import ExitCode
from fixloop.store.redis_store import RedisStore
from fixloop.testing.processes import comes
from tests.fixtures.command_stage import Agents, said

pytestmark = pytest.mark.slow

Capsys = pytest.CaptureFixture[str]
PAGE = Path(".fixloop") / "reports" / "feature-47-validation.html"


@pytest.fixture
def agents(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Agents]:
    """An empty Redis, a separate directory, and no browser."""
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
    monkeypatch.setenv("FIXLOOP_STATE_URL", redis_url)
    monkeypatch.setenv("FIXLOOP_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    store = RedisStore(redis_url)
    yield Agents(store)
    store.close()


@pytest.mark.proves("U18")
def test_a_report_is_printed_as_markdown(agents: Agents, capsys: Capsys) -> None:
    agents.run(agents.start(script="3 1 0"))

    told = said(capsys, "report", "47")

    assert told.code == ExitCode.DONE
    assert told.out.startswith("# Validation Report: Feature #47 scripted 3 1 0\n")
    assert "- **Total Iterations**: 3\n" in told.out
    assert "3 → 1 → 0" in told.out
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.proves("U18")
def test_a_page_is_written_below_fixloop_s_own_folder_and_named(agents: Agents, capsys: Capsys) -> None:
    agents.run(agents.start(script="1 0"))

    told = said(capsys, "report", "47", "--format", "html")

    assert (told.code, told.out, told.err) == (ExitCode.DONE, f"{Path.cwd() / PAGE}\n", "")
    assert PAGE.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert (Path(".fixloop") / ".gitignore").read_text() == "*\n"
    assert [path.name for path in Path.cwd().iterdir()] == [".fixloop"]


@pytest.mark.proves("U18")
def test_a_report_of_a_paused_workflow_says_what_it_waits_for(agents: Agents, capsys: Capsys) -> None:
    agents.run(agents.start(script="1 1 1"))

    document = said(capsys, "report", "47", "--format", "json").document

    assert (document["standing"], document["verdict"]) == ("paused", None)
    assert document["next_command"] == "fixloop decide 47 manual-fix"
    assert len(document["gates"]) == 11
    assert document["totals"]["escalations"] == 1


@pytest.mark.parametrize("format", ["markdown", "html", "json"])
def test_a_report_is_written_to_the_given_path(agents: Agents, capsys: Capsys, format: str) -> None:
    agents.run(agents.start(script="0"))

    told = said(capsys, "report", "47", "--format", format, "--output", "here.txt")
    printed = said(capsys, "report", "47", "--format", format, "--output", "-")

    assert told.out == f"{Path.cwd() / 'here.txt'}\n"
    assert Path("here.txt").read_text(encoding="utf-8").strip() == printed.out.strip()
    assert not Path(".fixloop").exists()


@pytest.mark.parametrize(
    ("name", "start"), [("a.html", "<!DOCTYPE"), ("a.json", "{"), ("a.md", "# Val"), ("a", "# Val")]
)
def test_the_name_of_the_file_determines_the_format(
    agents: Agents, capsys: Capsys, name: str, start: str
) -> None:
    agents.run(agents.start(script="0"))

    assert said(capsys, "report", "47", "--output", name).code == ExitCode.DONE
    assert Path(name).read_text(encoding="utf-8").startswith(start)


def test_without_a_browser_the_page_is_named_in_one_sentence(agents: Agents, capsys: Capsys) -> None:
    agents.run(agents.start(script="0"))

    told = said(capsys, "report", "47", "--open")

    page = Path.cwd() / PAGE
    assert (told.code, told.out) == (ExitCode.DONE, f"{page}\n")
    assert told.err == f"fixloop: no browser is available here; open {page} yourself\n"


def test_with_a_browser_the_page_is_opened(
    agents: Agents, capsys: Capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agents.run(agents.start(script="0"))
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    browser.write_text(f'#!/bin/sh\necho "$1" > {seen}.new && mv {seen}.new {seen}\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{browser} %s")

    told = said(capsys, "report", "47", "--open")

    assert (told.code, told.err) == (ExitCode.DONE, "")
    assert comes(seen.exists), "the browser was not started"
    assert seen.read_text().strip() == (Path.cwd() / PAGE).as_uri()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("report", "48"), "no workflow of issue 48; `fixloop status` lists all workflows"),
        (("report", "x"), "'x' is not an issue; use a positive whole number such as 47"),
        (("report", "47", "--format", "pdf"), "'pdf' is not one of 'markdown', 'html', 'json'"),
        (("report", "47", "--output", "no/such/folder/r.md"), "No such file or directory; name another file"),
        (("report", "47", "--output", "."), "Is a directory; name another file with --output"),
        (("report", "47", "--open", "--format", "json"), "--open needs a page in a file"),
        (("report", "47", "--open", "--output", "-"), "--open needs a page in a file"),
    ],
)
def test_a_report_that_cannot_be_made_is_refused_in_one_sentence(
    agents: Agents, capsys: Capsys, words: tuple[str, ...], sentence: str
) -> None:
    agents.run(agents.start(script="0"))

    told = said(capsys, *words)

    assert (told.code, told.out) == (ExitCode.USAGE, "")
    assert sentence in told.err
    assert told.err.count("\n") == 1
