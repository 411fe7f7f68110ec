"""Failures of a feature and older ones: only the first fail its checks."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Event

import pytest

from fixloop.configuration.model import Check, Configuration, SpecialistChecks
from fixloop.configuration.values import Policy
from fixloop.errors import UsageError
from fixloop.intake.trial import Asked, try_checks
from fixloop.protocol.checks import CheckResult, RunOutcome
from fixloop.repository.feature_base import with_base
from fixloop.repository.snapshot import Snapshot, take_snapshot, take_snapshot_of_url
from tests.fixtures.repositories import git, make_repository, write
from workers.commands.trial import tried

pytestmark = pytest.mark.slow

OLD = "".join(f"BAD {number}\n" for number in range(17))
LINT = "echo run >> {runs}; ! grep -Hn BAD *.py"


class Site:
    """A repository on its default branch, whose lint finds 17 things in `a.py`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cache, self.runs = folder, folder / "cache", folder / "runs"
        self.repository = make_repository(folder / "shop", {"a.py": OLD, "b.py": "fine\n"})

    def branch(self, files: Mapping[str, str]) -> None:
        git(self.repository, "switch", "-qc", "feature")
        self.commit(files)

    def commit(self, files: Mapping[str, str]) -> None:
        write(self.repository, dict(files))
        git(self.repository, "add", "-A")
        git(self.repository, "commit", "-qm", "more")

    def snapshot(self, wanted: str = "", ref: str = "") -> Snapshot:
        taken = take_snapshot(self.repository, issue=0, cache=self.cache, ref=ref or None)
        return with_base(taken, issue=0, cache=self.cache, wanted=wanted)

    def lint(
        self,
        *,
        script: str = LINT,
        specialist: str = "code-quality",
        wanted: str = "",
        baseline: Policy | None = None,
    ) -> CheckResult:
        command = ("sh", "-c", script.format(runs=self.runs))
        checks = SpecialistChecks(
            name=specialist, checks=(Check(name="lint", command=command, baseline=baseline),)
        )
        asked = Asked(
            snapshot=self.snapshot(wanted),
            configuration=Configuration(specialists=(checks,)),
            cache=self.cache,
        )
        # What `try_checks` has done by a separate process, which takes longer to load than all of this.
        [found] = tried(Asked.model_validate_json(asked.model_dump_json(by_alias=True)), Event())
        return found.result

    def times(self) -> int:
        """How often the lint has run so far."""
        return self.runs.read_text().count("run")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    # Each check looks for its interpreter first; a shim on the PATH takes longer for it than the check.
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return Site(tmp_path)


def test_a_feature_with_one_new_finding_fails_with_that_one(site: Site) -> None:
    site.branch({"a.py": f"fine\n{OLD}BAD new\n"})

    found = site.lint()

    assert [(each.file, each.line) for each in found.failures] == [("a.py", 19)]
    assert found.outcome is RunOutcome.FAILED
    assert (
        found.evidence.compared(1) == f"17 old, 1 new (base {git(site.repository, 'rev-parse', 'main')[:7]})"
    )


def test_a_feature_with_old_findings_only_passes_and_counts_them(site: Site) -> None:
    site.branch({"a.py": f"fine\n{OLD}", "b.py": "fine, too\n"})

    found = site.lint()

    assert (found.outcome, found.failures, found.evidence.old) == (RunOutcome.PASSED, (), 17)
    assert found.reason.startswith("17 old, 0 new (base ")
    assert len(found.old_failures) == 17


def test_the_one_new_failure_is_kept_in_full_after_any_number_of_old_ones(site: Site) -> None:
    site.commit({"a.py": OLD * 4})
    site.branch({"a.py": OLD * 4 + "BAD new\n"})

    found = site.lint(script="grep -Hn BAD *.py | sed 's/$/\\n  and why/'; exit 1")

    assert [(each.line, each.context) for each in found.failures] == [(69, "and why")]


def test_a_renamed_file_takes_its_findings_along(site: Site) -> None:
    git(site.repository, "switch", "-qc", "feature")
    git(site.repository, "mv", "a.py", "c.py")
    site.commit({})

    assert site.lint().failures == ()


def test_uncommitted_work_on_the_default_branch_is_the_feature(site: Site) -> None:
    write(site.repository, {"b.py": "BAD\n"})

    found = site.lint()

    assert [each.file for each in found.failures] == ["b.py"]


def test_a_clean_default_branch_is_its_own_base_and_its_checks_run_once(site: Site) -> None:
    found = site.lint()

    assert (found.outcome, found.evidence.old, site.times()) == (RunOutcome.PASSED, 17, 1)


def test_a_check_runs_once_on_a_base_for_all_its_branches(site: Site) -> None:
    site.branch({"b.py": "BAD\n"})
    site.lint()
    site.commit({"b.py": "BAD\nBAD again\n"})

    found = site.lint()

    assert len(found.failures) == 2
    assert site.times() == 3


def test_another_command_has_its_own_baseline(site: Site) -> None:
    site.branch({"b.py": "BAD\n"})
    site.lint()
    site.lint(script=LINT + " b.py")

    assert site.times() == 4


def test_a_check_that_passes_is_not_run_on_the_base(site: Site) -> None:
    site.branch({"a.py": "fine\n"})

    assert site.lint().outcome is RunOutcome.PASSED
    assert site.times() == 1


@pytest.mark.parametrize("damage", ["", "{", '{"failures": 3}'])
def test_a_damaged_baseline_entry_is_computed_again(site: Site, damage: str) -> None:
    site.branch({"b.py": "BAD\n"})
    site.lint()
    [kept] = (site.cache / "baselines").iterdir()
    kept.write_text(damage)

    assert len(site.lint().failures) == 1
    assert site.times() == 4
    assert kept.read_text() != damage


def test_a_check_that_is_broken_on_the_base_gives_none_and_everything_counts(site: Site) -> None:
    site.branch({"tool": "", "b.py": "BAD\n"})

    found = site.lint(script="test -e tool || exec /no/such/tool; ! grep -Hn BAD *.py")

    assert (len(found.failures), found.outcome) == (18, RunOutcome.FAILED)
    assert found.evidence.no_baseline.startswith("lint has no result on the base ")
    assert list((site.cache / "baselines").glob("*")) == []


@pytest.mark.parametrize(
    ("specialist", "policy"),
    [("test-runner", None), ("e2e-accessibility", None), ("code-quality", Policy.ALL)],
)
def test_tests_and_checks_configured_for_all_count_every_failure(
    site: Site, specialist: str, policy: Policy | None
) -> None:
    site.branch({"b.py": "BAD\n"})

    found = site.lint(specialist=specialist, baseline=policy)

    assert (len(found.failures), site.times()) == (18, 1)


def test_a_test_runner_can_be_configured_to_count_new_failures_only(site: Site) -> None:
    site.branch({"b.py": "BAD\n"})

    assert len(site.lint(specialist="test-runner", baseline=Policy.NEW).failures) == 1


def test_with_all_every_failure_counts() -> None:
    policy = Configuration(gates_all=True).policy(
        "security", Check(name="x", command=("x",), baseline=Policy.NEW)
    )

    assert policy is Policy.ALL


def test_with_none_as_the_base_nothing_is_compared(site: Site) -> None:
    site.branch({"b.py": "BAD\n"})

    assert len(site.lint(wanted="none").failures) == 18


# Which commit is the base.


def test_later_commits_of_the_default_branch_are_not_the_base(site: Site) -> None:
    site.branch({"b.py": "BAD\n"})
    began = git(site.repository, "rev-parse", "main")
    git(site.repository, "switch", "-q", "main")
    site.commit({"c.py": "BAD\n"})
    git(site.repository, "switch", "-q", "feature")

    assert (site.snapshot().base, site.snapshot().base_name) == (began, "main")


def test_the_head_of_origin_is_preferred_as_the_default_branch(site: Site) -> None:
    git(site.repository, "branch", "develop")
    clone = site.folder / "clone"
    git(site.repository, "switch", "-q", "develop")
    site.commit({"d.py": "fine\n"})
    git(site.folder, "clone", "-q", str(site.repository), str(clone))
    git(clone, "switch", "-qc", "feature")

    taken = with_base(take_snapshot(clone, issue=0, cache=site.cache), issue=0, cache=site.cache)

    assert (taken.base, taken.base_name) == (git(clone, "rev-parse", "HEAD"), "origin/develop")


def test_a_named_base_branch_is_used(site: Site) -> None:
    git(site.repository, "switch", "-qc", "other")
    site.commit({"b.py": "BAD\n"})
    git(site.repository, "switch", "-q", "main")
    site.branch({"b.py": "BAD\n", "c.py": "BAD\n"})

    found = site.lint(wanted="other")

    assert [each.file for each in found.failures] == ["c.py"]


def test_a_base_that_is_no_commit_is_refused(site: Site) -> None:
    with pytest.raises(UsageError, match="no branch, tag or commit 'nowhere' to take as the base"):
        site.snapshot("nowhere")


def test_a_clone_that_is_too_shallow_has_no_base_and_says_so(site: Site) -> None:
    site.commit({"c.py": "fine\n"})
    site.branch({"b.py": "BAD\n"})
    git(site.repository, "switch", "-q", "main")
    clone = site.folder / "clone"
    shallow = ("--depth=1", "--no-single-branch", "--branch=feature")
    git(site.folder, "clone", "-q", *shallow, f"file://{site.repository}", str(clone))

    taken = with_base(take_snapshot(clone, issue=0, cache=site.cache), issue=0, cache=site.cache)

    assert taken.base == ""
    assert taken.no_base.startswith("the clone is too shallow to reach origin/main; `git fetch --unshallow`")


def test_a_plain_folder_has_no_base(tmp_path: Path) -> None:
    write(tmp_path, {"plain/a.py": OLD})
    taken = take_snapshot(tmp_path / "plain", issue=0, cache=tmp_path / "cache")

    found = with_base(taken, issue=0, cache=tmp_path / "cache")

    assert (found.base, found.no_base) == ("", "the folder is not a git repository")


def test_a_branch_of_a_url_is_compared_with_its_default_branch(site: Site) -> None:
    main = git(site.repository, "rev-parse", "main")
    site.branch({"b.py": "BAD\n"})
    git(site.repository, "switch", "-q", "main")
    url = f"file://{site.repository}"

    taken = take_snapshot_of_url(url, "feature", issue=0, cache=site.cache)
    found = with_base(taken, issue=0, cache=site.cache)

    assert (found.base, found.base_name) == (main, "the default branch")


def test_another_machine_fetches_the_base_of_another_branch(site: Site) -> None:
    git(site.repository, "switch", "-qc", "other")
    site.commit({"b.py": "BAD\n"})
    git(site.repository, "switch", "-q", "main")
    site.branch({"b.py": "BAD\n", "c.py": "BAD\n"})
    snapshot = site.snapshot("other")
    site.cache = site.folder / "elsewhere"
    take_snapshot(site.repository, issue=0, cache=site.cache)
    command = ("sh", "-c", LINT.format(runs=site.runs))
    checks = SpecialistChecks(name="security", checks=(Check(name="lint", command=command),))

    [found] = try_checks(
        Asked(snapshot=snapshot, configuration=Configuration(specialists=(checks,)), cache=site.cache)
    )

    assert [each.file for each in found.result.failures] == ["c.py"]
