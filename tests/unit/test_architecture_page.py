"""docs/architecture.md names files that exist."""

import re

from tests.unit.architecture_page import PAGE


def test_the_architecture_page_names_files_that_exist() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("reaches a PASS\n")[2].partition("\n## ")[0]
    listed = re.findall(r"^(\d+)\. \[`([^`]+)`\]\(([^)]+)\): ", section, re.MULTILINE)

    assert [int(number) for number, *_ in listed] == list(range(1, len(listed) + 1))
    assert [shown for _, shown, path in listed if not path.endswith(f"/{shown}")] == []
    assert 15 <= len(set(listed)) <= 25
    assert section.count("](") == len(listed)
    assert [path for *_, path in listed if not (PAGE.parent / path).is_file()] == []
    assert [listed[0][2], listed[1][2]] == ["../src/fixloop/cli.py", "../src/fixloop/commands/program.py"]
