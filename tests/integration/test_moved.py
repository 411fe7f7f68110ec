"""Work that was moved away, read from a real mirror."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from tests.fixtures.bench import Bench
from workers.commands.moved import work_moved_away

pytestmark = pytest.mark.slow

LABEL: Final = "def label(names):\n    return hashlib.md5(names.encode()).hexdigest()[:12]\n"
FILES: Final = {"archiver/pack.py": LABEL, "archiver/where.py": "HERE = 1\n"}
FIX: Final = {
    "archiver/pack.py": "from vendor.names import short\n",
    "vendor/names.py": LABEL.replace("names", "text"),
}


@pytest.mark.parametrize(
    ("specialist", "failed", "command", "count"),
    [
        ("security", "B324", "true archiver", 1),
        ("security", "B324", "true ./archiver/", 1),
        ("security", "B324", "true .", 0),
        ("test-runner", "test_packs", "true archiver", 0),
        ("test-runner", "coverage", "true --cov=archiver", 1),
    ],
)
def test_lines_that_left_what_a_check_names_are_found(
    tmp_path: Path, specialist: str, failed: str, command: str, count: int
) -> None:
    bench = Bench(tmp_path, FILES)

    with bench.claim(FIX, command.split(), specialist=specialist) as claim:
        work: Any = claim.work
        work.holding.state.active.runs = [SimpleNamespace(failures=[SimpleNamespace(name=failed)])]
        found = list(work_moved_away(claim))

    assert [(each.rule, each.file, each.line) for each in found] == [
        ("moved-away", "vendor/names.py", 2)
    ] * count


def test_below_the_top_paths_are_those_of_the_checks(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {f"web/{name}": text for name, text in FILES.items()}, below="web")
    fix = {f"web/{name}": text for name, text in FIX.items()}

    with bench.claim(fix, ["true", "archiver"], specialist="security") as claim:
        found = list(work_moved_away(claim))
    bench = Bench(tmp_path / "off", FILES)
    with bench.claim(
        FIX, ["true", "archiver"], specialist="security", off=("moved-away", "coverage-padded")
    ) as claim:
        off = list(work_moved_away(claim))

    assert ([each.file for each in found], off) == (["vendor/names.py"], [])


@pytest.mark.parametrize(
    ("target", "is_found"),
    [("/etc/hosts", True), ("../../else.py", True), ("where.py", False), ("../x.py", False)],
)
def test_a_link_that_leads_out_of_the_project_is_found(tmp_path: Path, target: str, is_found: bool) -> None:
    bench = Bench(tmp_path, FILES)
    (bench.top / "archiver" / "more.py").symlink_to(target)

    with bench.claim({}, ["true"]) as claim:
        found = list(work_moved_away(claim))

    assert [each.file for each in found] == ["archiver/more.py"] * is_found
