"""Requests as an agent gets them: short, mostly facts, and sufficient on their own."""

from pathlib import Path

import pytest

from fixloop.protocol.rendering import render_delivery
from tests.fixtures.long_requests import SIZES, Size, facts_in, request_of
from tests.fixtures.project import Host

pytestmark = pytest.mark.slow

GOOD = """def price(item):
    return item["price"]


def tax(amount, kind):
    return amount * {"full": 19, "half": 7}[kind] // 100


def label(item):
    return item["name"].title()
"""
BAD = (
    GOOD.replace('["price"]', '["prize"]').replace("[kind]", "[kind.upper()]").replace(".title()", ".titel()")
)
TESTS = """import shop


def test_price():
    assert shop.price({"price": 3}) == 3


def test_tax():
    assert shop.tax(100, "half") == 7


def test_label():
    assert shop.label({"name": "cup"}) == "Cup"
"""
# It reads nothing but the request: the command in its first line, and the place that its first group names.
AGENT = """import pathlib, re, subprocess, sys
request = sys.stdin.read()
command = re.match(r"Make .*?: `(.*?)` must exit 0", request)[1]
assert subprocess.run(command, shell=True, capture_output=True).returncode == 1, command
alone = re.search(r"Alone: `(.*?)`", request)[1]
assert subprocess.run(alone, shell=True, capture_output=True).returncode == 1, alone
file, line = re.search(r"^## F.* at (.*):(\\d+)$", request, re.MULTILINE).groups()
path, good = pathlib.Path(file), pathlib.Path(file + ".good").read_text().splitlines()
lines = path.read_text().splitlines()
lines[int(line) - 1] = good[int(line) - 1]
path.write_text("\\n".join(lines) + "\\n")
print("I put line", line, "back")
"""
TOML = """[fixer]
command = "python agent.py"

[specialist.test-runner]
command = "python -m pytest --junitxml={junit}"
"""


def test_an_agent_that_only_reads_the_request_fixes_three_bugs_in_three_rounds(host: Host) -> None:
    project = host.project(
        "followed",
        toml=TOML,
        files={"shop.py": BAD, "shop.py.good": GOOD, "test_shop.py": TESTS, "agent.py": AGENT},
    )

    told = project.submit()

    assert told.code == 0, told.out
    entries = project.fixloop("log", "1", "--json").document["entries"]
    kinds = [each["message_id"].split("-")[0] for each in entries]
    assert kinds.count("FIXDONE") <= 3
    last = [each["rendered"] for each in entries if each["message_id"].startswith("VFR")][-1]
    assert "I put line 2 back" in last
    assert '+    return item["price"]' in last


@pytest.mark.parametrize("size", SIZES, ids=lambda size: str(size.failures))
def test_a_request_is_short_and_has_little_boilerplate(size: Size, tmp_path: Path) -> None:
    report = request_of(size.files, tmp_path / "project")
    text = render_delivery(report)

    assert text.startswith(f"Make {size.failures} failing test")
    assert len(text) <= size.most_characters
    assert facts_in(report, text) >= 0.8 * len(text)
