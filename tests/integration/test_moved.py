"""Code that was moved out of checked paths, read from a real mirror."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from fixloop.protocol.failures import FailureRef
from tests.fixtures.bench import Bench
from workers.commands.moved import started_by_others, work_moved_away

pytestmark = pytest.mark.slow

LABEL: Final = "def label(names):\n    return hashlib.md5(names.encode()).hexdigest()[:12]\n"
SHOP: Final = "def sell():\n    return 1\n\n\ndef close():\n    return 2\n\n\n"
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
def test_lines_moved_out_of_a_check_s_paths_are_found(
    tmp_path: Path, specialist: str, failed: str, command: str, count: int
) -> None:
    bench = Bench(tmp_path, FILES)

    with bench.claim(FIX, command.split(), specialist=specialist) as claim:
        work: Any = claim.work
        work.holding.state.active.runs = [SimpleNamespace(failures=[FailureRef(name=failed)])]
        found = list(work_moved_away(claim))

    assert [(each.rule, each.file, each.line) for each in found] == [
        ("moved-away", "vendor/names.py", 2)
    ] * count


def test_lines_moved_to_paths_that_settings_exclude_are_found(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {**FILES, "pyproject.toml": "[tool.true]\nexclude = ['vendor']\n"})

    with bench.claim(FIX, ["true", "."], specialist="code-quality") as claim:
        found = list(work_moved_away(claim))

    assert [(each.rule, each.file) for each in found] == [("moved-away", "vendor/names.py")]


def test_in_a_subfolder_paths_are_those_of_the_checks(tmp_path: Path) -> None:
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
    ("fix", "count"),
    [
        ({"shop.py": "def sell():\n    return 1\n\n\nclose = lambda: 2\n"}, 1),
        ({"shop.py": SHOP + "CLOSED = close()\n", "tests/test_more.py": "def test_more(): ...\n"}, 1),
        ({"shop.py": SHOP[: SHOP.index("\n\ndef close")]}, 0),
        ({"shop.py": SHOP.replace("2", "3"), "tests/test_more.py": "def test_more(): ...\n"}, 0),
    ],
)
def test_coverage_raised_without_a_test_is_found(tmp_path: Path, fix: dict[str, str], count: int) -> None:
    measure = (
        "import json, sys; text = open('shop.py').read(); is_new = 'return 2' not in text or 'CLOSED' in text;"
        "json.dump({'files': {'shop.py': {'executed_lines': [1, 2, 5, 6] if is_new else [1, 2, 5],"
        "'missing_lines': [] if is_new else [6]}}, 'totals': {'percent_covered': 95}}, open(sys.argv[1], 'w'))"
    )
    bench = Bench(tmp_path, {"shop.py": SHOP})

    with bench.claim(fix, ["python", "-c", measure, "{coverage}"]) as claim:
        work: Any = claim.work
        work.holding.state.active.runs = [SimpleNamespace(failures=[SimpleNamespace(name="coverage")])]
        evidence = claim.ran[0].result.evidence.model_copy(update={"coverage_gate": 90.0})
        result = claim.ran[0].result.model_copy(update={"evidence": evidence})
        found = list(work_moved_away(replace(claim, ran=(claim.ran[0]._replace(result=result),))))

    assert [each.rule for each in found] == ["coverage-padded"] * count


@pytest.mark.parametrize(
    ("target", "is_found"),
    [("/etc/hosts", True), ("../../else.py", True), ("where.py", False), ("../x.py", False)],
)
def test_a_link_out_of_the_project_is_found(tmp_path: Path, target: str, is_found: bool) -> None:
    bench = Bench(tmp_path, FILES)
    (bench.top / "archiver" / "more.py").symlink_to(target)

    with bench.claim({}, ["true"]) as claim:
        found = list(work_moved_away(claim))

    assert [each.file for each in found] == ["archiver/more.py"] * is_found


@pytest.mark.proves("I8")
def test_files_that_editors_agents_git_or_ci_run_by_themselves_are_found(tmp_path: Path) -> None:
    places = (
        ".vscode/tasks.json",
        "web/.claude/settings.json",
        ".GitHub/workflows/ci.yml",
        ".husky/pre-commit",
    )
    bench = Bench(tmp_path, {**FILES, ".envrc": "use\n"})

    with bench.claim({**dict.fromkeys(places, "{}"), "archiver/tasks.json": "{}"}, ["true"]) as claim:
        found = list(started_by_others(claim))

    assert [(each.rule, each.file) for each in found] == [
        ("started-by-others", path) for path in sorted(places)
    ]
