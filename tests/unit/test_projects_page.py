"""docs/projects.md shows the pinned projects, and its entry for each can be read."""

import re
from collections import Counter

import pytest

from bench.checkout import Edit, public_projects
from bench.projects import PAGE, page, release_row, row
from bench.trial import Answer, Configured, Trial

PROJECTS = public_projects()
VERDICT_ROW = re.compile(
    r"\| (?P<name>[\w.-]+) \| (?P<what>[^|]+) \| [\d.]+ "
    r"(\| [^|]+ \| [\d.]+ \([+-][\d.]+, [\d.]+ ×\) ){3}"
    r"\| \d/3[^,|]*, \d/3[^,|]*, \d/3[^|]* \| (?P<true>yes|no[^|]*) \| [0-9a-f]{7,}(-dirty)?, \d\d \w+ \d{4} \|"
)
PASSED = Answer(exit_code=0, seconds=4.0, verdict="passed")
FOUND = Answer(exit_code=3, seconds=4.0, verdict="waits for a fix of 1 failure in test-runner run 1/5")
STOPPED = Answer(exit_code=3, seconds=4.0, verdict="waits for a decision: no pytest here")
COUNTED = Answer(exit_code=1, seconds=3.0, verdict="1 failure in 1 of 3 checks; 1 new; was 0")
BROKEN = Answer(exit_code=1, seconds=3.0, verdict="could not check")
RED = Answer(exit_code=1, seconds=1.0, verdict="1 failed")


def trial(
    *,
    unconfigured: Answer = PASSED,
    with_bugs: Answer = FOUND,
    raw_with_bugs: Answer = RED,
    checked: Answer = COUNTED,
) -> Trial:
    return Trial(
        commit="be9c4a1",
        day="22 November 2026",
        dry=PASSED,
        init=PASSED,
        raw=[Answer(exit_code=0, seconds=2.0, verdict="3 passed")],
        raw_bugs=[raw_with_bugs] * 3,
        unconfigured=Configured(answers=[unconfigured], bugs=[with_bugs] * 3),
        configured=Configured(answers=[PASSED], bugs=[FOUND] * 3),
        checked=Configured(answers=[PASSED], bugs=[checked] * 3),
    )


def test_there_are_projects_of_each_language() -> None:
    languages = Counter(each.language for each in PROJECTS)

    assert len({each.name for each in PROJECTS}) == len(PROJECTS)
    assert languages["Python"] >= 10
    assert languages["JavaScript"] + languages["TypeScript"] >= 4
    assert languages["Go"] >= 1


def test_the_page_shows_exactly_the_pinned_releases() -> None:
    text = PAGE.read_text()
    releases = text.split("## Releases")[1].split("## ")[0]

    assert [line for line in releases.splitlines() if "`" in line] == [release_row(each) for each in PROJECTS]


def test_the_page_has_a_verdict_for_each_project_or_names_it_as_not_tried() -> None:
    text = PAGE.read_text().split("## ")[0]
    rows = [VERDICT_ROW.fullmatch(line) for line in text.splitlines()]
    told = {each["name"]: each["what"].replace("\\|", "|") for each in rows if each}
    untried = re.findall(r"[\w-]+", (re.findall(r"^Not tried yet: (.+)\.$", text, re.MULTILINE) or [""])[0])

    assert told == {
        each.name: f"{each.language}: {each.shape}" for each in PROJECTS if each.name not in untried
    }
    assert len([line for line in text.splitlines() if line.startswith("|")]) == len(told) + 2


def test_the_page_counts_the_projects_whose_verdicts_are_true() -> None:
    text = page([(PROJECTS[0], trial()), (PROJECTS[1], trial(unconfigured=STOPPED)), (PROJECTS[2], None)])

    assert "1 of 2 projects tried have only true verdicts" in text
    assert f"Not tried yet: {PROJECTS[2].name}." in text


@pytest.mark.parametrize(
    "wrong",
    [
        trial(unconfigured=FOUND),
        trial(unconfigured=STOPPED),
        trial(with_bugs=PASSED),
        trial(with_bugs=STOPPED),
        trial(raw_with_bugs=PASSED),
        trial(checked=PASSED),
        trial(checked=BROKEN),
    ],
    ids=[
        "red without a bug",
        "stopped without a bug",
        "green with a bug",
        "stopped with a bug",
        "no bug at all",
        "a green check with a bug",
        "a check that could not count",
    ],
)
def test_a_verdict_that_is_not_true_is_reported(wrong: Trial) -> None:
    assert not wrong.true
    assert "| no" in row(PROJECTS[0], wrong)


def test_a_trial_in_which_all_is_true_is_a_row_of_the_page() -> None:
    told = VERDICT_ROW.fullmatch(row(PROJECTS[0], trial()))

    assert told is not None
    assert told["true"] == "yes"


def test_an_edit_that_does_not_fit_is_refused() -> None:
    edit = Edit(file=PAGE.name, old="stands nowhere on this page", new="")

    with pytest.raises(ValueError, match="0 times, not once"):
        edit.apply(PAGE.parent)
