"""What checks run with, from a whole run: it must not change after a failure, and has no settings of the user."""

import subprocess
import sys
from typing import Final

import pytest

from tests.fixtures.project import RIGHT, TOML, Host
from tests.fixtures.repositories import write

pytestmark = pytest.mark.slow

FIXER: Final = """\
import os, sys
from pathlib import Path
(packages,) = Path(os.environ["VIRTUAL_ENV"]).glob("lib/python3*/site-packages")
planted = packages / "evil.pth"
if "evil.pth was added" in sys.stdin.read():
    planted.unlink()
else:
    planted.write_text("import os\\n")
    Path("calc.py").write_text(Path("calc.py").read_text().replace("-", "+"))
"""
"""Undoes its change when it is told of it."""
LOOK: Final = """\
import os, sys
seen = os.path.exists(os.path.expanduser("~/.config/tool.ini"))
sys.exit(seen != (sys.argv[1] == "seen"))
"""


@pytest.mark.proves("I4")
def test_a_fix_that_changes_the_environment_is_an_error_until_undone(host: Host) -> None:
    toml = f'[fixer]\ncommand = "python fixer.py"\n[limits]\nspecialist_attempts = 1\n{TOML}'
    project = host.project("planted", toml=toml, files={"fixer.py": FIXER, ".gitignore": ".venv\n"})
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", project.folder / ".venv"], check=True)

    told = project.submit()

    assert told.code == 0, told.out + told.err
    log = project.log()
    assert "the environment changed since the snapshot: " in log
    assert "site-packages/evil.pth was added; undo that" in log
    assert "#1 planted: passed (1 specialist, 3 runs" in told.out


def test_with_the_rule_off_a_changed_environment_is_accepted(host: Host) -> None:
    toml = f'[fixer]\ncommand = "python fixer.py"\n[integrity]\noff = ["environment"]\n{TOML}'
    project = host.project("switched-off", toml=toml, files={"fixer.py": FIXER, ".gitignore": ".venv\n"})
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", project.folder / ".venv"], check=True)

    told = project.submit()

    assert told.code == 0, told.out + told.err
    assert "the environment changed" not in project.log()


@pytest.mark.parametrize(
    ("name", "keys", "seen"),
    [
        ("own", "", "unseen"),
        ("whole", "[workspace]\nhome = true\n", "seen"),
        ("named", 'env = ["HOME"]\n', "unseen"),
    ],
)
def test_a_shared_worker_s_check_sees_the_real_home_only_if_all_of_it_is_requested(
    host: Host, name: str, keys: str, seen: str
) -> None:
    toml = f'[specialist.security]\ncommand = "python look.py {seen}"\n{keys}'
    project = host.project(f"home-{name}", toml=toml, calc=RIGHT, files={"look.py": LOOK})
    write(host.folder / "home", {".config/tool.ini": ""})

    assert project.submit().code == 0
