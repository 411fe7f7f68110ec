"""Which project a path belongs to."""

from pathlib import Path

import pytest

from fixloop.errors import UsageError
from fixloop.repository.identity import normalised_url, project_of, project_of_url, public_address, top_of
from tests.fixtures.repositories import git, make_repository


@pytest.mark.parametrize(
    "url",
    [
        "git@Example.org:team/shop.git",
        "ssh://git@example.org/team/shop.git",
        "ssh://git@example.org:22/team/shop",
        "https://example.org/team/shop.git/",
        "https://user:secret@EXAMPLE.org:443/team/shop",
    ],
)
def test_all_spellings_of_an_address_are_one_project(url: str) -> None:
    assert normalised_url(url, Path("/")) == "example.org/team/shop"


def test_another_port_is_another_server() -> None:
    assert normalised_url("http://127.0.0.1:3000/a.git", Path("/")) == "127.0.0.1:3000/a"
    assert normalised_url("http://[::1]:3000/a", Path("/")) == "[::1]:3000/a"


def test_a_local_origin_is_its_real_path(tmp_path: Path) -> None:
    original = make_repository(tmp_path / "original", {"a": "1"})
    git(tmp_path, "clone", "-q", str(original), "clone")

    assert project_of(tmp_path / "clone") == project_of(original)
    assert project_of_url(f"file://{original}") == project_of(original)


def test_a_configured_name_wins_over_origin(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1"})
    git(repository, "remote", "add", "origin", "git@example.org:team/shop.git")

    assert project_of(repository).name == "example.org/team/shop"
    assert project_of(repository, "mine").name == "mine"
    assert len(project_of(repository).hash8) == 8


def test_without_origin_the_project_is_the_real_path_of_the_top(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"sub/a": "1"})
    (tmp_path / "link").symlink_to(repository)

    assert project_of(tmp_path / "link" / "sub").name == str(repository)


def test_a_path_below_the_top_is_found_with_its_relative_path(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"deep/er/a": "1"})

    assert top_of(repository / "deep" / "er") == (repository, "deep/er")
    assert top_of(repository) == (repository, "")


def test_a_folder_that_is_no_repository_is_its_own_top(tmp_path: Path) -> None:
    assert top_of(tmp_path) == (tmp_path, "")


def test_a_folder_that_the_repository_around_it_ignores_is_its_own_top(tmp_path: Path) -> None:
    home = make_repository(tmp_path / "home", {".gitignore": "*\n!.gitignore\n"})
    (home / "work").mkdir()

    assert top_of(home / "work") == (home / "work", "")


def test_a_path_that_is_not_a_directory_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a directory"):
        top_of(tmp_path / "absent")


def test_a_bare_repository_is_refused_with_a_remedy(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "bare")

    with pytest.raises(UsageError, match=r"bare repository; .*file://"):
        top_of(tmp_path / "bare")


def test_a_broken_repository_is_not_taken_for_a_plain_folder(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /nowhere/at/all\n")

    with pytest.raises(UsageError, match="cannot be read"):
        top_of(tmp_path)


def test_git_variables_of_the_caller_have_no_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1"})
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))

    assert top_of(repository) == (repository, "")


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://github.com/team/shop.git", "https://github.com/team/shop.git"),
        ("https://robot:secret@github.com/team/shop", "https://github.com/team/shop"),
        ("https://github.com/team/shop?token=secret", ""),
        ("ssh://git:secret@example.org:2222/shop", "ssh://git@example.org:2222/shop"),
        ("git@github.com:team/shop.git", "git@github.com:team/shop.git"),
        ("../shop", ""),
        ("file:///home/me/shop", ""),
        ("https://[broken", ""),
        ('https://a/b"\n[core]\n\tsshCommand = sh', ""),
    ],
)
def test_an_address_is_made_public_without_its_credentials(url: str, address: str) -> None:
    assert public_address(url) == address
