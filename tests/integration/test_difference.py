"""A fix's changes to product files, read from a real mirror."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.fixtures.bench import Bench
from workers.commands.difference import difference

pytestmark = pytest.mark.slow

FILES: Final = {
    "shop.py": "def total(xs):\n    return 0\n",
    "plugin.py": "import gc\ngc.get_objects()\n",
    "tests/test_shop.py": "import gc, os\ndef test_a():\n    os._exit\n    assert total([1, 2, 3]) == 6\n",
}
CHEAT: Final = {
    "shop.py": "import gc, os\ndef total(xs):\n    gc.get_objects()\n"
    "    if xs == [1, 2, 3]: return 6  # noqa\n    os._exit(0)\n",
    "tests/test_shop.py": FILES["tests/test_shop.py"].replace("def", "@pytest.mark.skip\ndef"),
    "made.bin": "import pytest\0",
    "made.py": "import pytest\n" * 100_000,
}
SKIPPED: Final = ("suppression", "tests/test_shop.py", 2)
SILENCED: Final = ("suppression", "shop.py", 4)
LEAVES: Final = ("watched", "shop.py", 5)
ANSWER: Final = ("test-literal", "shop.py", 4)


def found(
    bench: Bench, fix: Mapping[str, str], command: str = "true", **settings: Any
) -> set[tuple[Any, ...]]:
    with bench.claim(fix, [command], failures=["tests/test_shop.py"], **settings) as claim:
        return {(each.rule, each.file, each.line) for each in difference(claim)}


@pytest.mark.proves("I7", "I8")
def test_new_tricks_in_product_files_are_found_and_earlier_ones_are_not(tmp_path: Path) -> None:
    assert found(Bench(tmp_path, FILES), CHEAT) == {SKIPPED, SILENCED, LEAVES, ANSWER}


@pytest.mark.proves("I8")
def test_literals_of_all_tests_count_if_failures_name_no_test_file(tmp_path: Path) -> None:
    case = {"shop.py": "def total(xs):\n    if xs == [1, 2, 3]: return 6\n    return 0\n"}
    for failure in ("npm test", "test_shop.py"):
        bench = Bench(tmp_path / failure, FILES)
        with bench.claim(case, ["true"], failures=[failure]) as claim:
            assert [each.rule for each in difference(claim)] == ["test-literal"]


@pytest.mark.proves("I8")
@pytest.mark.parametrize(
    ("fix", "added"),
    [
        ({"shop.py": "def total(xs):\n    return xs.tax == 1907 and 'express'\n"}, ["'1907'", "'express'"]),
        ({"shop.py": "", "other.ts": "export const kinds = new Set(['express', 2])\n"}, ["'express'"]),
        ({"shop.py": "def total(xs):\n    return 'standard' + 'tests/express'\n"}, []),
    ],
)
def test_the_evidence_names_literals_of_the_failed_tests_that_are_new_in_the_product(
    tmp_path: Path, fix: dict[str, str], added: list[str]
) -> None:
    test = "def test_a():\n    assert total('express', 1907, 'standard') == 2\n"
    bench = Bench(tmp_path, FILES | {"tests/test_shop.py": test, "old.py": "KIND = 'standard'\n"})

    with bench.claim(fix, ["true"], failures=["tests/test_shop.py"]) as claim:
        assert list(difference(claim)) == []
        [learned] = claim.learned.values()

    places = {"shop.py": "shop.py:2", "other.ts": "other.ts:1"}
    assert sorted(learned["literals_of_tests"]) == [f"{text} ({places[list(fix)[-1]]})" for text in added]


@pytest.mark.proves("I7")
@pytest.mark.parametrize(
    ("settings", "rest"),
    [
        ({"allow": ("suppression *.py 1", "watched shop.py")}, {ANSWER}),
        ({"allow": ("suppression tests/",), "tests_may_change": ("tests/**",)}, {SILENCED, LEAVES, ANSWER}),
        (
            {
                "off": (
                    "suppression",
                    "watched",
                    "test-literal",
                    "equals-everything",
                    "types-given-away",
                    "by-chance",
                    "unread-parameter",
                    "doctest",
                )
            },
            set(),
        ),
    ],
)
def test_a_project_in_a_subfolder_allows_findings_by_its_own_paths(
    tmp_path: Path, settings: dict[str, Any], rest: set[tuple[Any, ...]]
) -> None:
    bench = Bench(tmp_path, {f"web/{name}": text for name, text in FILES.items()}, below="web")
    fix = {f"web/{name}": text for name, text in CHEAT.items()}

    assert found(bench, fix, **settings) == {(rule, f"web/{file}", line) for rule, file, line in rest}


@pytest.mark.parametrize(
    ("others", "is_held"),
    [
        ({"conftest.py": "class Fake:\n    now = 0\n"}, True),
        ({"tests/test_b.py": "class Fake:\n    def __init__(self): self.now = 0\n"}, True),
        ({"tests/test_b.py": "now = 0\n"}, False),
        ({"conftest.py": "class Fake:\n    now = 0\n", "clock.py": "class Clock:\n    now = 0\n"}, False),
    ],
)
def test_a_name_is_sought_in_all_tests_and_in_the_product(
    tmp_path: Path, others: dict[str, str], is_held: bool
) -> None:
    fix = {"shop.py": "def total(xs):\n    return hasattr(xs, 'now')\n"}

    assert found(Bench(tmp_path, FILES | others), fix) == ({("watched", "shop.py", 2)} if is_held else set())


def test_an_honest_fix_in_a_moved_file_gives_no_finding(tmp_path: Path) -> None:
    bench = Bench(tmp_path, FILES)

    assert (
        found(bench, {"shop.py": "", "src/shop.py": "def total(xs):\n    return sum(xs)\n", "plugin.py": ""})
        == set()
    )
