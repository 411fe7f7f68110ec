"""Small repositories for tests, made with plain git and without fixloop's own code."""

import hashlib
import os
import subprocess
from pathlib import Path


def git(directory: Path, *args: str, stdin: str = "") -> str:
    """Run git as a user would, with an identity and no configuration from outside."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    names = {
        f"GIT_{who}_{what}": "tester@localhost"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    done = subprocess.run(
        ["git", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main", *args],
        cwd=directory,
        env=inherited | names | {"GIT_CONFIG_NOSYSTEM": "1"},
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def write(folder: Path, files: dict[str, str]) -> None:
    """Write text files below a folder."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def make_repository(folder: Path, files: dict[str, str]) -> Path:
    """A repository with one commit of `files`."""
    folder.mkdir(parents=True)
    write(folder, files)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def fingerprint(repository: Path) -> tuple[str, ...]:
    """HEAD, index and every file outside `.git`, byte by byte."""
    kept = [repository / ".git/HEAD", repository / ".git/index", repository / ".git/config"]
    kept += sorted(path for path in repository.rglob("*") if ".git" not in path.parts and path.is_file())
    return tuple(f"{path}:{hashlib.sha256(path.read_bytes()).hexdigest()}" for path in kept)
