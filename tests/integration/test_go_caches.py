"""Go's caches: what checks compiled before a fix is used after it, and nothing that the fix's code wrote is."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from fixloop.configuration.model import Configuration
from fixloop.machine.guard import GuardedResult, run_guarded
from fixloop.machine.sandbox import means_in_use
from fixloop.repository.snapshot import take_snapshot
from tests.fixtures.repositories import make_repository
from workers.workspaces.ground import Ground, Site

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("go") is None, reason="there is no Go")]

FILES = {
    "go.mod": "module shop\n\ngo 1.19\n",
    "shop.go": "package shop\n\nfunc Two() int { return 2 }\n",
    "shop_test.go": 'package shop\n\nimport "testing"\n\nfunc TestTwo(t *testing.T) { t.Log(Two()) }\n',
}
TESTS = "go test -x -count=1 ./..."
POISONS = (
    'touch "$GOCACHE/planted"; find -L "$GOCACHE" ~/.cache/go-build -type f | while read -r each; do '
    'chmod u+w "$each"; echo planted > "$each"; done; touch "$(go env GOMODCACHE)/planted"'
)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    if means_in_use().name == "none":
        pytest.skip("there is no sandbox here")
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("GOCACHE", "GOMODCACHE", "GOPATH", "XDG_CACHE_HOME", "FIXLOOP_SANDBOX_WRITABLE"):
        monkeypatch.delenv(name, raising=False)
    snapshot = take_snapshot(make_repository(tmp_path / "shop", FILES), issue=1, cache=tmp_path / "cache")
    asked = Configuration.model_validate({"sandbox": {"mode": "require"}})
    return Site(snapshot, asked, tmp_path / "cache", "check", began=0.0)


def run(site: Site, ground: Ground, command: str) -> GuardedResult:
    cwd, argv = ground.workspace.directory, ["sh", "-c", command]
    env, confined = site.started(argv, cwd, ground.check_environment(()), network=True)
    return run_guarded(argv, cwd=cwd, env=env, timeout_seconds=300, confined=confined)


@pytest.mark.proves("I3")
def test_what_a_fix_s_code_writes_to_go_s_caches_reaches_no_other_run(site: Site, tmp_path: Path) -> None:
    before, shared = replace(site, remembers=True), tmp_path / "home/.cache/go-build"
    with before.ground(site.snapshot.commit) as ground:
        first = run(before, ground, TESTS)
    kept = {path: path.read_bytes() for path in shared.rglob("*") if path.is_file()}
    with site.ground(site.snapshot.commit) as ground:
        run(site, ground, POISONS)
    with site.ground(site.snapshot.commit) as ground:
        again = run(site, ground, TESTS)

    assert (first.exit_code, "/compile" in first.output) == (0, True), first.output
    assert {path: path.read_bytes() for path in shared.rglob("*") if path.is_file()} == kept
    assert not (tmp_path / "home/go/pkg/mod/planted").exists()
    assert (again.exit_code, "/compile" in again.output) == (0, False), again.output


def test_a_fix_s_code_gets_no_cache_by_writing_a_go_mod(site: Site, tmp_path: Path) -> None:
    (tmp_path / "shop/go.mod").unlink()
    snapshot = take_snapshot(tmp_path / "shop", issue=2, cache=tmp_path / "cache")
    site = replace(site, snapshot=snapshot)
    with site.ground(snapshot.commit) as ground:
        run(site, ground, "echo module shop > go.mod")
        run(site, ground, "touch ~/.cache/go-build/planted")

    assert not (tmp_path / "home/.cache/go-build").exists()


def test_a_fix_may_add_a_module(site: Site, tmp_path: Path) -> None:
    (tmp_path / "home/go/pkg/mod").mkdir(parents=True)
    with site.ground(site.snapshot.commit) as ground:
        workspace = ground.workspace
        (workspace.path / "go.sum").write_text("")
        change = workspace.capture(site.snapshot.commit, "a fix")
    with site.ground(change.commit) as ground:
        told = run(site, ground, "echo $GOPROXY && go mod download && mkdir -p $(go env GOMODCACHE)/one")

    assert told.exit_code == 0, told.output
    assert told.output.startswith(f"file://{tmp_path}/home/go/pkg/mod/cache/download,")
