"""Results of `fixloop check` that a run reuses: the same, sealed and recent; otherwise it checks itself."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from fixloop.store.seal import Sealing, sealing_in
from tests.fixtures.project import CALC, MEND, RIGHT, Project, Told
from workers.commands.checked import PURPOSE

pytestmark = pytest.mark.slow

COUNTED: Final = '[specialist.test-runner]\nenv = ["SHOP_MODE"]\ncommand = "{tool} {junit}"\n'
TOOL: Final = "#!/bin/sh\necho >> {counted}\nsleep {seconds}\nexec python check.py $1\n"
TAKEN: Final = "taken over from fixloop check at 20"


class Shop:
    """A project that has a key, because it had a workflow; its check is counted where it may write."""

    def __init__(self, folder: Path, *, calc: str = RIGHT, more: str = "", seconds: int = 0) -> None:
        (folder / "told").mkdir()
        self.place, self.tool = folder / "told/counted", folder / "told/tool"
        self.tool.write_text(TOOL.format(counted=self.place, seconds=seconds))
        self.tool.chmod(0o755)
        toml = COUNTED.replace("{tool}", str(self.tool)) + more
        hour = {"FIXLOOP_TAKE_OVER_SECONDS": "3600"}
        self.project = Project(folder / "shop", toml=toml, variables=hour, calc=calc)
        self._issues = iter(range(2, 1000))
        self.first = self.project.fixloop("run", "--issue", "1")

    @property
    def counted(self) -> int:
        """How often the check has run."""
        return len(self.place.read_text().splitlines())

    def changed(self, text: str) -> Path:
        """The record of a separate tree that was checked."""
        self.project.write("new.py", text)
        known = set(self._records())
        assert self.project.fixloop("check").code == 0
        (made,) = set(self._records()) - known
        return made

    def run(self, *words: str, variables: Mapping[str, str] | None = None) -> tuple[Told, str]:
        """What the run of a new issue said, and its log."""
        issue = next(self._issues)
        told = self.project.run(*words, issue=issue, at=None, **(variables or {}))
        return told, self.project.log(issue)

    def _records(self) -> list[Path]:
        return list((self.project.home / "cache/fixloop/checks/sealed").glob("*"))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop(tmp_path_factory.mktemp("shared"))


def found(shop: Shop, issue: int) -> Any:
    """The basis of a run's results, without times and without the note that they were reused."""
    (entry,) = (each for each in shop.project.status(issue)["specialists"] if each["applicable"])
    for evidence in entry["evidence"]:
        for name in ("checked_at", "duration_seconds"):
            del evidence[name]
    return entry


def test_a_run_reuses_and_names_the_results_of_a_recent_check(tmp_path: Path) -> None:
    shop = Shop(tmp_path, seconds=6)
    assert shop.project.fixloop("check").code == 0
    ran = shop.counted

    told, log = shop.run()

    assert told.code == 0, told.err
    assert shop.counted == ran
    assert log.count(TAKEN) == 1
    assert told.seconds < shop.first.seconds
    assert found(shop, 2) == found(shop, 1)
    assert shop.project.fixloop("audit", "verify").code == 0


def test_the_judgement_of_a_fix_is_never_reused(tmp_path: Path) -> None:
    shop = Shop(tmp_path, calc=CALC, more=f"[fixer]\ncommand = \"sh -c '{MEND}'\"\n")
    assert shop.project.fixloop("check").code == 1
    ran = shop.counted

    told, log = shop.run()

    assert told.code == 0, told.out
    assert log.count(TAKEN) == 1
    assert "1 + 2 is not 3" in shop.project.fixloop("log", "2", "--format", "markdown").out
    assert shop.counted > ran


def retold(record: Path, change: Callable[[bytes], bytes], sealing: Sealing | None = None) -> None:
    seal, _, text = record.read_bytes().partition(b"\n")
    new = change(text)
    record.write_bytes(b"%s\n%s" % (sealing.of(PURPOSE, new) if sealing else seal, new))


def tampered(shop: Shop, record: Path) -> dict[str, str]:
    retold(record, lambda text: text.replace(b'"exit_code":0', b'"exit_code":1'))
    return {}


def other_key(shop: Shop, record: Path) -> dict[str, str]:
    retold(record, lambda text: text, Sealing(b"somebody else's key"))
    return {}


def other_tree(shop: Shop, record: Path) -> dict[str, str]:
    other = shop.changed("other = 1\n")
    other.write_bytes(record.read_bytes())
    return {}


def other_environment(shop: Shop, record: Path) -> dict[str, str]:
    status = shop.tool.stat()
    shop.tool.write_text(shop.tool.read_text().replace("sleep 0", "sleep 1"))
    os.utime(shop.tool, ns=(status.st_atime_ns, status.st_mtime_ns))
    return {}


def of_the_future(shop: Shop, record: Path) -> dict[str, str]:
    sealing = sealing_in(shop.project.folder / ".fixloop/redis/seal.key")
    retold(record, lambda text: text.replace(b'"at":"20', b'"at":"30'), sealing)
    return {}


@pytest.mark.parametrize(
    "differs",
    [
        tampered,
        other_key,
        other_tree,
        other_environment,
        of_the_future,
        pytest.param(lambda *_: {"SHOP_MODE": "other"}, id="other_variable"),
        pytest.param(lambda *_: {"FIXLOOP_TAKE_OVER_SECONDS": "0.001"}, id="too_old"),
        pytest.param(lambda *_: {"FIXLOOP_TAKE_OVER_SECONDS": "0"}, id="switched_off"),
    ],
)
def test_a_run_checks_again_where_anything_differs(
    shop: Shop, differs: Callable[[Shop, Path], dict[str, str]], request: pytest.FixtureRequest
) -> None:
    record = shop.changed(f"name = {request.node.name!r}\n")
    variables = differs(shop, record)
    ran = shop.counted

    told, log = shop.run(variables=variables)

    assert told.code == 0, told.out
    assert shop.counted == ran + 1
    assert TAKEN not in log


def test_a_result_without_a_sandbox_is_not_sealed(shop: Shop) -> None:
    shop.project.write("new.py", "unconfined = 1\n")
    assert shop.project.fixloop("check", FIXLOOP_SANDBOX="off").code == 0
    ran = shop.counted

    _, log = shop.run()

    assert shop.counted == ran + 1
    assert TAKEN not in log


def test_another_configuration_of_the_same_tree_is_another_check(shop: Shop) -> None:
    shop.changed("base = 1\n")
    ran = shop.counted

    told, log = shop.run("--base", "none")

    assert told.code == 0, told.out
    assert shop.counted == ran + 1
    assert TAKEN not in log
