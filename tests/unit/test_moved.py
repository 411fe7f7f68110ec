"""Code that was moved out of a check's paths, and coverage that rose without a test."""

import json
from pathlib import Path

import pytest

from fixloop.configuration.model import Check
from fixloop.integrity.moved import Moved, gone, left_out, looked_at, moved_away, percent_of_old_lines, shape
from fixloop.protocol.checks import CheckResult, Evidence, RunOutcome
from fixloop.protocol.failures import FailureRef
from workers.commands.check_run import Ran
from workers.commands.moved import left, measured, padded

LABEL = "def label(names):\n    return hashlib.md5(names.encode()).hexdigest()[:12]\n"
MOVED = "def short(text):\n    return hashlib.md5(text.encode()).hexdigest()[:12]\n"
PADDING = "".join(f"A{number} = {number}\n" for number in range(1, 20))


@pytest.mark.parametrize(
    ("command", "places"),
    [
        ("bandit -q -r archiver", ("archiver",)),
        ("ruff check ./src/ tests", ("src", "tests")),
        ("python -m pytest --cov=src/shop --cov-report=json:{coverage}", ("src/shop",)),
        ("python -m pytest --ignore=archiver src", ("src",)),
        ("ruff check .", ()),
        ("mypy -p stations", ()),
    ],
)
def test_the_paths_of_a_check_are_read_from_its_command(command: str, places: tuple[str, ...]) -> None:
    paths = ["archiver/pack.py", "src/shop/basket.py", "tests/test_basket.py"]

    assert looked_at(command.split(), paths) == places


def test_lines_are_the_same_with_other_names() -> None:
    assert shape("    return hashlib.md5(names.encode())") == shape("return md.md5(text.encode())")
    assert shape("return hashlib.md5(names.encode())") != shape("return hashlib.sha256(names.encode())")
    assert shape("return f(a)") != shape("yield f(a)")


def test_code_moved_out_of_the_checked_paths_is_found_at_its_new_place() -> None:
    old = {"archiver/pack.py": LABEL}
    new = {"archiver/pack.py": "from vendor import short as label\n", "vendor.py": MOVED}

    assert list(moved_away(["archiver"], old, new)) == [Moved("archiver/pack.py", 2, "vendor.py", 2)]
    assert list(moved_away(["archiver", "vendor.py"], old, new)) == []


def test_python_code_moved_to_a_file_with_another_ending_is_found() -> None:
    old = {"archiver/pack.py": LABEL}

    def found(name: str, text: str) -> list[str]:
        return [each.new for each in moved_away([], old, {"archiver/pack.py": "", name: text})]

    assert found("archiver/pack.txt", MOVED) == ["archiver/pack.txt"]
    assert found("bin/pack", MOVED) == ["bin/pack"]
    assert (found("archiver/label.py", MOVED), found("pack.md", f"How it packs:\n\n{MOVED}")) == ([], [])


@pytest.mark.parametrize(
    ("command", "path", "text"),
    [
        ("ruff check .", "pyproject.toml", "[tool.ruff]\nextend-exclude = ['lib', 'vendor']\n"),
        ("ruff check .", "ruff.toml", 'exclude = [\n    "*/vendor/*",\n]\n'),
        ("flake8", ".flake8", "[flake8]\nmax-line-length = 99\nexclude =\n    lib,\n    vendor,\n"),
        ("python -m mypy .", "setup.cfg", "[mypy]\nexclude = ^vendor/\n"),
        ("pytest --cov=.", ".coveragerc", "[run]\nomit = vendor/*\n"),
        ("pylint .", ".pylintrc", "[MAIN]\nignore=vendor\n"),
        (
            "eslint .",
            "eslint.config.js",
            "export default [\n  js.recommended,\n  { ignores: ['vendor/'] },\n];\n",
        ),
        (
            "eslint .",
            "eslint.config.mjs",
            "export default defineConfig([globalIgnores(['lib', 'vendor/**'])]);\n",
        ),
        ("bandit -r . --exclude ./vendor", "README", ""),
        ("bandit -r . --exclude=lib,vendor", "README", ""),
    ],
)
def test_code_moved_to_an_excluded_path_is_found(command: str, path: str, text: str) -> None:
    old, new = {"archiver/pack.py": LABEL}, {"archiver/pack.py": "", "vendor/names.py": MOVED}
    hidden = left_out(command.split(), {path: text})

    assert [each.new for each in moved_away([], old, new, hidden)] == ["vendor/names.py"]
    assert list(moved_away([], {"vendor/pack.py": LABEL}, new, hidden)) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("pyproject.toml", "[tool.black]\nexclude = 'vendor'\n"),
        ("pyproject.toml", "[tool.ruff]\nsrc = ['vendor']\n"),
        (".flake8", "[flake8]\nexclude = vendor\n"),
        ("ruff.toml", "# What we ignore: vendor\n"),
    ],
)
def test_another_tool_s_exclusions_do_not_count(path: str, text: str) -> None:
    assert "vendor" not in left_out(["ruff", "check", "."], {path: text})


@pytest.mark.parametrize(
    "new",
    [
        {"archiver/pack.py": LABEL.replace("md5", "sha256")},
        {"archiver/pack.py": LABEL, "other.py": MOVED},
        {"archiver/pack.py": "", "archiver/names.py": MOVED},
        {"archiver/pack.py": "", "other.py": "def short(text):\n    return text[:12]\n"},
    ],
)
def test_code_that_was_fixed_copied_or_moved_within_checked_paths_is_allowed(new: dict[str, str]) -> None:
    assert list(moved_away(["archiver"], {"archiver/pack.py": LABEL}, new)) == []


def test_moved_code_is_shown_with_both_sides() -> None:
    check = Check(name="bandit", command=("bandit", "archiver"))
    new = {"archiver/pack.py": "", "vendor.py": MOVED}

    (found,) = left(check, ("archiver",), {"archiver/pack.py": LABEL}, new)

    assert found.text == "1 line left what `bandit` looks at, the first from archiver/pack.py:2"
    assert (found.file, found.line, "names" in found.old, "text" in found.new) == ("vendor.py", 2, True, True)


ITEMS = """
class Items:
    def first(self):
        return self.all[0]


def names(items):
    return [item.name for item in items]


def _sum(items):
    return sum(items)
"""


@pytest.mark.parametrize(
    ("line", "name", "new"),
    [
        (8, "names", ITEMS.partition("def names")[0]),
        (4, "Items.first", "class Items:\n    all = ()\n"),
        (4, "Items", "ITEMS = ()\n"),
        (8, "names", None),
    ],
)
def test_code_removed_together_with_its_finding_is_found(line: int, name: str, new: str | None) -> None:
    said = FailureRef(name="return-value", file="items.py", line=line, headline="Incompatible return value")
    after = {} if new is None else {"items.py": new}

    assert [*gone({"items.py": ITEMS}, after, [said])] == [(said, name)]


@pytest.mark.parametrize(
    ("line", "said", "new"),
    [
        (8, "no-untyped-def", ITEMS.replace("[item.name", "[str(item.name)")),
        (8, "no-untyped-def", "from others import names\n"),
        (8, "no-untyped-def", ITEMS.replace("names", "titles")),
        (12, "no-untyped-def", ITEMS.partition("def _sum")[0]),
        (8, "F811 redefinition of unused `names`", ITEMS.partition("def names")[0]),
        (4, "no-untyped-def", ITEMS.partition("def names")[0]),
    ],
)
def test_code_that_was_fixed_moved_renamed_or_reported_unused_is_not_removed(
    line: int, said: str, new: str
) -> None:
    assert not [
        *gone({"items.py": ITEMS}, {"items.py": new}, [FailureRef(name=said, file="items.py", line=line)])
    ]


def test_the_coverage_of_old_lines_excludes_added_lines() -> None:
    covered = {"shop.py": ([1, 3, 4], [2]), "tables.py": (range(1, 20), [])}

    assert percent_of_old_lines(covered, {}, {}) == pytest.approx(100 * 22 / 23)
    assert (
        percent_of_old_lines(covered, {"shop.py": "a\nb\n"}, {"shop.py": "a\nb\nc\nd", "tables.py": PADDING})
        == 50
    )
    assert percent_of_old_lines({"tables.py": ([1], [])}, {}, {"tables.py": "A = 1"}) is None


@pytest.mark.parametrize(("missing", "count"), [([2], 1), ([], 0)])
def test_a_gate_met_only_by_added_lines_is_held(missing: list[int], count: int, tmp_path: Path) -> None:
    report = tmp_path / "coverage.json"
    files = {
        "shop.py": {"executed_lines": [1], "missing_lines": missing},
        "tables.py": {"executed_lines": [*range(1, 20)], "missing_lines": []},
    }
    report.write_text(json.dumps({"files": files}))
    check = Check(name="pytest", command=("pytest", "--cov-report=json:{coverage}"))
    evidence = Evidence(check="pytest", command="pytest", coverage_gate=90.0)
    result = CheckResult(check="pytest", outcome=RunOutcome.PASSED, evidence=evidence)

    ran = Ran(result, "", (report,))
    found = list(padded(check, ran, measured(check, ran, tmp_path), {}, {"tables.py": PADDING}))

    assert len(found) == count
    assert all("50.0% are covered, and the gate is 90%" in each.text for each in found)


def test_a_coverage_report_without_lines_is_not_held(tmp_path: Path) -> None:
    report = tmp_path / "coverage.json"
    report.write_text('{"totals": {"percent_covered": 95.0}}')
    check = Check(name="pytest", command=("pytest", "--cov-report=json:{coverage}"))
    evidence = Evidence(check="pytest", command="pytest", coverage_gate=90.0)
    result = CheckResult(check="pytest", outcome=RunOutcome.PASSED, evidence=evidence)

    ran = Ran(result, "", (report,))
    assert measured(check, ran, tmp_path) == {}
    assert list(padded(check, ran, {}, {}, {"tables.py": PADDING})) == []
