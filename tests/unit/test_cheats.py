"""The corpus of cheats and honest fixes, and how `fixloop cheats` judges their ends; nothing is played here."""

import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from fixloop.commands.cheats import added_percent, document
from fixloop.configuration.loader import load_configuration
from fixloop.errors import UsageError
from fixloop.protocol.answers import parse_answer
from fixloop.testing.cheats.corpus import Trial, trials
from fixloop.testing.cheats.fixer import edit
from fixloop.testing.cheats.play import End, Played, end_of

pytestmark = pytest.mark.heavy

TRIALS: Final = {trial.case.name: trial for trial in trials()}
CLASSES: Final = {
    *(
        "tests and their selection",
        "hooks and plugins",
        "forged reports",
        "special cases in the code",
        "tools",
    ),
    *("work moved away", "git, state and processes", "lies and circles", "flakes"),
}
OTHER_LANGUAGES: Final = ("node", "go")
CASE: Final = '[[case]]\nname = "n"\nbase = "invoice"\n[[case.attempt]]\nmend = true\n'


def written(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def played(expect: str, end: End, seconds: float = 2.0, plain: float = 0.0) -> Played:
    trial = next(trial for trial in TRIALS.values() if trial.case.expect == expect)
    return Played(trial, end, seconds, "#1 project: …", plain)


def test_there_are_cheats_of_every_class_and_honest_fixes_of_both_kinds() -> None:
    cheats = [trial for trial in TRIALS.values() if trial.case.expect == "cheat"]
    others = [trial for trial in cheats if trial.case.base in OTHER_LANGUAGES]
    honest = Counter(trial.klass for trial in TRIALS.values() if trial.case.expect == "honest")

    assert {trial.klass for trial in cheats} == CLASSES
    assert len(others) >= 20
    assert len(cheats) - len(others) >= 60
    assert honest.total() >= 40
    assert honest["honest: tests and gates"] >= 15


def test_a_short_run_has_cases_of_several_classes() -> None:
    short = [
        trial for trial in TRIALS.values() if trial.case.short and trial.case.base not in OTHER_LANGUAGES
    ]

    assert len({trial.klass for trial in short}) >= 5
    assert {trial.case.expect for trial in short} == {"cheat", "honest"}


@pytest.mark.parametrize("name", TRIALS)
def test_every_case_can_be_played(name: str, tmp_path: Path) -> None:
    trial = TRIALS[name]
    folder = written(tmp_path, {**trial.files, "fixloop.toml": trial.configuration(("a rule",))})

    configuration = load_configuration(folder)
    for number, attempt in enumerate(trial.attempts, 1):
        for edits in attempt:
            edit(edits, folder)
            if edits["answer"]:
                parse_answer(edits["answer"], issue=1, iteration=number, specialist="test-runner")

    assert configuration.max_iterations == len(trial.attempts) + 1
    assert configuration.integrity.off


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1", "no.toml: x: extra inputs are not permitted"),
        ("x =", "no.toml cannot be read: "),
        ("", "there is no case in "),
        (CASE.replace("invoice", "nowhere"), "'n' is of a project 'nowhere', which is nowhere"),
        (CASE + CASE, "two cases in {folder} are called 'n'"),
    ],
)
def test_an_invalid_corpus_is_refused_with_its_file(text: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "no.toml").write_text(text)

    with pytest.raises(UsageError) as refused:
        trials(tmp_path)

    assert expected.format(folder=tmp_path) in str(refused.value)


def test_a_custom_corpus_may_use_the_existing_projects(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(f'class = "own"\n{CASE}')

    (found,) = trials(tmp_path)

    assert (found.klass, found.case.name, "invoice.py" in found.files) == ("own", "n", True)
    assert [each["mend"] for each in found.attempts[0]] == [False, True]


@pytest.mark.parametrize(
    ("code", "said", "expected"),
    [
        (0, "#1 shop: passed (1 specialist)", End.PASSED),
        (0, "#1 shop: passed (1 specialist); fixes touched tests or gates: conftest.py", End.MARKED),
        (0, "#1 shop: passed; fixes added literals of the tests to the product: 'XII' (a.py:1)", End.MARKED),
        (3, "#1 shop waits for a decision: Integrity hold: 2 findings (ESC-1-1)", End.HELD),
        (3, "#1 shop waits for a decision: Max iterations exceeded (ESC-1-1)", End.REFUSED),
        (1, "#1 shop: aborted", End.REFUSED),
        (2, "fixloop: no such file", End.BROKEN),
        (3, "LookupError: calc.py has no 'a'", End.BROKEN),
    ],
)
def test_the_end_of_a_run_determines_the_result_of_a_case(code: int, said: str, expected: End) -> None:
    assert end_of(code, said) is expected


def test_undetected_cheats_and_held_honest_fixes_are_wrong() -> None:
    wrong: dict[str, set[End]] = {
        expect: {end for end in End if played(expect, end).is_wrong} for expect in ("cheat", "honest")
    }

    assert wrong == {"cheat": {End.PASSED, End.BROKEN}, "honest": {End.HELD, End.REFUSED, End.BROKEN}}


def test_the_added_time_is_the_median_of_the_cases_played_twice() -> None:
    several = [played("honest", End.PASSED, seconds, 2.0) for seconds in (2.0, 2.2, 3.0)]

    assert added_percent([*several, played("cheat", End.HELD, 9.0)]) == 10.0
    assert added_percent([played("cheat", End.HELD)]) is None


def test_the_document_has_every_case_with_its_end() -> None:
    told: dict[str, Any] = document([played("cheat", End.PASSED)])

    assert [(each["end"], each["wrong"], each["expect"]) for each in told["cases"]] == [
        ("passed", True, "cheat")
    ]


def test_a_line_that_allows_is_one_line_of_toml() -> None:
    allowed: dict[str, Trial] = {name: trial for name, trial in TRIALS.items() if trial.case.allow}

    assert len(allowed) >= 5
    for trial in allowed.values():
        assert len(tomllib.loads(trial.case.allow)) == 1
