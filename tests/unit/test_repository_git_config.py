"""The configuration of a repository is listed by git once for each content of the files that make it up."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fixloop.repository.git_config import Setting, settings_of
from tests.fixtures.repositories import write

PLAIN = b"local\0core.bare\nfalse\0"
FILTER = b"local\0filter.evil.clean\nrun\0"


class Listing:
    """A listing by git, and how often it was made."""

    def __init__(self, said: bytes | None) -> None:
        self.said, self.times = said, 0

    def __call__(self) -> bytes | None:
        self.times += 1
        return self.said


@pytest.fixture
def top(tmp_path: Path) -> Path:
    write(tmp_path / "project/.git", {"HEAD": "", "config": "[core]\n", "objects/x": "", "refs/x": ""})
    return tmp_path / "project"


@pytest.fixture
def asked(tmp_path: Path) -> Callable[[Path, Listing], tuple[Setting, ...]]:
    variables = {"HOME": str(tmp_path / "home")}
    return lambda directory, listing: tuple(settings_of(directory, None, variables, listing))


Asked = Callable[[Path, Listing], tuple[Setting, ...]]


def test_an_unchanged_configuration_is_listed_once(top: Path, asked: Asked) -> None:
    listing = Listing(PLAIN)
    (top / "deep").mkdir()
    assert asked(top, listing) == asked(top, listing) == asked(top / "deep", listing)
    assert asked(top, listing) == (Setting("local", "core.bare", "false"),)
    assert listing.times == 1


@pytest.mark.parametrize(
    "file",
    ["project/.git/config", "project/.git/config.worktree", "home/.gitconfig", "home/.config/git/config"],
)
def test_each_file_that_git_reads_is_checked_each_time(
    file: str, top: Path, asked: Asked, tmp_path: Path
) -> None:
    asked(top, Listing(PLAIN))
    write(tmp_path, {file: "[evil]\n"})
    assert asked(top, Listing(FILTER)) == (Setting("local", "filter.evil.clean", "run"),)


def test_changed_content_of_the_same_length_is_listed_again(top: Path, asked: Asked) -> None:
    asked(top, Listing(PLAIN))
    (top / ".git/config").write_text("[c0re]\n")
    assert asked(top, Listing(FILTER))[0].key == "filter.evil.clean"


@pytest.mark.parametrize(
    "said", [None, b"local\0include.path\n/x\0", b"local\0includeif.onbranch:x.path\n/x\0"]
)
def test_an_unknown_configuration_is_listed_each_time(said: bytes | None, top: Path, asked: Asked) -> None:
    listing = Listing(said)
    asked(top, listing)
    asked(top, listing)
    assert listing.times == 2


def test_nothing_is_cached_for_an_incomplete_repository(tmp_path: Path, asked: Asked) -> None:
    write(tmp_path / "broken/.git", {"HEAD": ""})
    write(tmp_path / "odd", {".git": "elsewhere"})
    write(tmp_path / "pipe/.git", {"HEAD": "", "objects/x": "", "refs/x": ""})
    os.mkfifo(tmp_path / "pipe/.git/config")
    listing = Listing(PLAIN)
    for folder in ("broken", "odd", "pipe") * 2:
        asked(tmp_path / folder, listing)
    assert listing.times == 6


def test_a_configuration_written_during_a_listing_is_listed_again(top: Path, asked: Asked) -> None:
    class Written(Listing):
        def __call__(self) -> bytes | None:
            (top / ".git/config").write_text("[core]\n# changed meanwhile\n")
            return super().__call__()

    asked(top, Written(PLAIN))
    (top / ".git/config").write_text("[core]\n")
    listing = Listing(FILTER)
    assert asked(top, listing)[0].key == "filter.evil.clean"
    assert listing.times == 1


def test_a_linked_worktree_has_the_configuration_of_its_repository(
    top: Path, asked: Asked, tmp_path: Path
) -> None:
    write(top / ".git/worktrees/w", {"HEAD": "", "commondir": "../..\n"})
    write(tmp_path / "linked", {".git": f"gitdir: {top}/.git/worktrees/w\n"})
    asked(tmp_path / "linked", Listing(PLAIN))
    (top / ".git/config").write_text("[evil]\n")
    assert asked(tmp_path / "linked", Listing(FILTER))[0].key == "filter.evil.clean"
