"""Old and new failures in a whole run: what is sent to the agent, what is only counted, and the effect of a death."""

from pathlib import Path

import pytest

from tests.fixtures.processes import running
from tests.fixtures.project import RIGHT, Project, completed, until

pytestmark = pytest.mark.slow

OLD = "".join(f"BAD {number}\n" for number in range(17))
LINT = "[[specialist.code-quality.check]]\nname = \"lint\"\ncommand = ['sh', '-c', '! grep -Hn BAD *.txt']\n"


def project(folder: Path, toml: str = LINT, **files: str) -> Project:
    """On a branch, with 17 findings of its default branch and those in `files`."""
    made = Project(folder, calc=RIGHT, toml=toml, files={"a.txt": OLD})
    made.git("switch", "--quiet", "--create", "feature")
    for name, text in files.items():
        made.write(f"{name}.txt", text)
    made.commit()
    return made


def test_an_agent_is_asked_for_the_one_new_failure_and_the_old_ones_are_counted(tmp_path: Path) -> None:
    fixer = "[fixer]\ncommand = \"sh -c 'cat > {}; sed -i s/BAD/good/ b.txt'\"\n"
    asked = tmp_path / "asked"
    shop = project(tmp_path / "shop", fixer.replace("{}", str(asked)) + LINT, b="BAD new\n")

    told = shop.run()

    assert told.code == 0, told.err
    assert f"baseline of lint on {shop.git('rev-parse', 'main')[:7]}" in told.out
    assert "17 old lint findings (already on main)" in told.out
    assert "failures 1 → 0" in told.out
    assert "b.txt" in asked.read_text()
    assert "a.txt:" not in asked.read_text()
    [quality] = [each for each in shop.status()["specialists"] if each["name"] == "code-quality"]
    assert quality["old"] == {"lint": 17}
    assert "17 of its failures old (base " in shop.log()


def test_the_report_counts_the_old_failures_by_rule_and_file_and_lists_the_first(tmp_path: Path) -> None:
    shop = project(tmp_path / "shop", b="BAD new\n")
    shop.run()

    [row] = shop.fixloop("report", "1", "--format", "json").document["old"]
    page = shop.fixloop("report", "1", "--format", "html", "--output", "-").out
    text = shop.fixloop("report", "1").out

    assert (row["check"], row["count"], row["by_file"]) == ("lint", 17, [["a.txt", 17]])
    assert [each["location"] for each in row["first"]] == [f"a.txt:{line}" for line in range(1, 18)]
    assert "17 old lint findings" in page
    assert "## Old Failures of lint" in text
    assert "| lint | 17 | | a.txt | 17 |" in text


def test_with_all_old_failures_count_too(tmp_path: Path) -> None:
    shop = project(tmp_path / "shop")

    assert shop.run().code == 0
    told = shop.run("--all", issue=2)

    assert told.code == 3
    assert "waits for a fix of 17 failures" in told.out


def test_a_live_workflow_is_not_joined_by_a_call_with_another_base(tmp_path: Path) -> None:
    shop = project(tmp_path / "shop", b="BAD new\n")
    shop.run()

    told = shop.run("--base", "none")

    assert "issue 1 is live with other gates" in told.refusal
    assert shop.run().code == 3


def test_a_fix_cannot_make_a_failure_old(tmp_path: Path) -> None:
    commits = "git commit -qam base && git branch -f main HEAD && git update-ref refs/heads/main HEAD"
    fixer = f"[fixer]\ncommand = ['sh', '-c', 'cat > /dev/null; echo more >> b.txt; {commits}; true']\n"
    shop = project(tmp_path / "shop", fixer + LINT, b="BAD new\n")

    told = shop.run()

    assert told.code == 3
    assert "b.txt:1" in told.out


def test_a_death_while_a_check_runs_on_the_base_changes_nothing(tmp_path: Path) -> None:
    script = "test -e new || { echo $$ > {}; test -e {go} || sleep 60; }; ! grep -Hn BAD *.txt"
    lint = LINT.replace(
        "! grep -Hn BAD *.txt",
        script.replace("{}", str(tmp_path / "pid")).replace("{go}", str(tmp_path / "go")),
    )
    shop = project(tmp_path / "shop", lint, b="BAD new\n")
    shop.write("new", "x")

    told = shop.killed_and_resumed(tmp_path)

    assert told.code == 3
    assert "waits for a fix of 1 failure" in told.out
    assert "17 old lint findings" in told.out


def test_cancelling_a_workflow_ends_its_check_on_the_base(tmp_path: Path) -> None:
    script = f"test -e new || {{ echo $$ > {tmp_path / 'pid'}; sleep 600; }}; ! grep -Hn BAD *.txt"
    shop = project(tmp_path / "shop", LINT.replace("! grep -Hn BAD *.txt", script), b="BAD new\n")
    shop.write("new", "x")
    looping = shop.start("run", ".", "--issue", "1")
    until((tmp_path / "pid").exists)

    assert shop.fixloop("cancel", "1").code == 0

    until(lambda: not running(tmp_path / "pid"), what="the end of the check")
    completed(looping)
    assert shop.status()["outcome"] == "cancelled"


def test_a_clone_without_a_base_says_so_in_a_line(tmp_path: Path) -> None:
    shop = Project(tmp_path / "shop", toml=LINT, is_git=False, calc=RIGHT, files={"a.txt": OLD})

    told = shop.run()

    assert told.code == 3
    assert "no base to compare with, so every failure counts: the folder is not a git repository" in told.err
