"""What the documentation names exists, and the figures in it are counted."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    page
    for folder in (ROOT, ROOT / "docs", ROOT / "docs" / "decisions", ROOT / "examples")
    for page in folder.glob("*.md")
)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def links(text: str) -> list[str]:
    return [target for target in LINK.findall(text) if "://" not in target]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    missing = [target for target in links(page.read_text()) if not (page.parent / target).exists()]

    assert missing == []


def test_the_readme_shows_how_to_begin_before_line_forty() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()

    assert "make demo" in "\n".join(lines[:10])
    assert lines.index("## Quickstart") < 30
    assert next(number for number, line in enumerate(lines) if "fixloop run" in line) < 40


def test_the_lines_the_readme_promises_are_about_those_there_are() -> None:
    text = (ROOT / "README.md").read_text()
    rows = re.findall(r"^\| (\[.*) \| ([\d,]+) \|", text, re.MULTILINE)
    promised = [int(number.replace(",", "")) for _, number in rows]
    counted = [sum(len((ROOT / name).read_text().splitlines()) for name in links(row)) for row, _ in rows]
    whole = re.search(r"about ([\d,]+) lines", text)

    assert counted == pytest.approx(promised, rel=0.2)
    assert whole is not None
    assert sum(counted) == pytest.approx(int(whole[1].replace(",", "")), rel=0.1)


@pytest.mark.slow
@pytest.mark.proves("E5", "E18")
def test_the_session_with_a_chat_works_in_an_empty_project(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "chat.md").read_text().split("## From the first file to the last")[1]
    block = re.search(r"```console\n(.*?)```", page, re.DOTALL)
    assert block is not None
    for typed, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block[1], re.MULTILINE):
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = subprocess.run(
            typed, shell=True, cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True
        )

        assert done.returncode == 0, f"{typed}: {done.stderr}"
        assert done.stdout.endswith(expected.replace("…\n", "")), typed
