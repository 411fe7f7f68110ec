"""What the documentation names exists, and the figures in it are counted."""

import re
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


def test_every_link_to_a_file_is_valid() -> None:
    missing = [
        (page.name, target)
        for page in PAGES
        for target in links(page.read_text())
        if not (page.parent / target).exists()
    ]

    assert missing == []


def test_the_readme_shows_how_to_begin_before_line_forty() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()

    assert "make demo" in "\n".join(lines[:10])
    assert lines.index("## Quickstart") < 30
    assert next(number for number, line in enumerate(lines) if "fixloop run" in line) < 40


def test_the_line_count_in_the_readme_is_about_right() -> None:
    text = (ROOT / "README.md").read_text()
    rows = re.findall(r"^\| (\[.*) \| ([\d,]+) \|", text, re.MULTILINE)
    promised = [int(number.replace(",", "")) for _, number in rows]
    counted = [sum(len((ROOT / name).read_text().splitlines()) for name in links(row)) for row, _ in rows]
    whole = re.search(r"about ([\d,]+) lines", text)

    assert counted == pytest.approx(promised, rel=0.2)
    assert whole is not None
    assert sum(counted) == pytest.approx(int(whole[1].replace(",", "")), rel=0.1)
