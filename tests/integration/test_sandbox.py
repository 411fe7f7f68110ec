"""The sandbox: what a check or a fixer cannot and can access, with each means that the system has."""

import os
import select
import shlex
import shutil
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
import redis

from fixloop.configuration.installed import Installed
from fixloop.configuration.loader import load_configuration
from fixloop.configuration.model import Configuration
from fixloop.configuration.settings import SandboxSettings
from fixloop.intake.frozen_configuration import installed_at
from fixloop.machine import landlock
from fixloop.machine.guard import RUNNER, GuardedResult, mode_in_use, run_guarded
from fixloop.machine.interpreter_answers import importable_modules
from fixloop.machine.interpreters import Interpreter
from fixloop.machine.sandbox import means_in_use, own_temporary
from fixloop.repository.snapshot import mirror_of, take_snapshot
from fixloop.repository.tree import Entry, commit_tree, tree_with
from fixloop.servers.embedded import embedded_redis
from fixloop.servers.redis_place import Place
from tests.fixtures.processes import running
from tests.fixtures.repositories import make_repository, write
from tests.integration.test_runner import serving
from workers.workspaces.ground import Ground, Site
from workers.workspaces.node_modules import changed_packages

pytestmark = pytest.mark.slow

ASKS = """
import socket, sys
with socket.socket(socket.AF_UNIX) as asking:
    asking.connect(sys.argv[1])
    asking.sendall(b"PING\\r\\n")
    sys.exit(asking.recv(100) != b"+PONG\\r\\n")
"""


class Scene(NamedTuple):
    """A project with a workspace, as a step has it, and files that are not the step's."""

    site: Site
    ground: Ground
    project: Path
    home: Path

    def run(self, command: str, *writable: str, network: bool = True, **variables: str) -> GuardedResult:
        folder = self.ground.workspace.directory
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), **variables}
        confined = self.site.confined(folder, env, writable=writable, network=network)
        return run_guarded(["sh", "-c", command], cwd=folder, env=env, timeout_seconds=60, confined=confined)

    def unconfined(self, command: str) -> GuardedResult:
        folder, env = self.ground.workspace.directory, {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        return run_guarded(["sh", "-c", command], cwd=folder, env=env, timeout_seconds=60)


@pytest.fixture(params=["landlock", "bubblewrap"])
def means(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each test with both means, if the system has them."""
    monkeypatch.setenv("FIXLOOP_SANDBOX", request.param)
    monkeypatch.delenv("FIXLOOP_SANDBOX_WRITABLE")
    found = means_in_use()
    if found.name == "none":
        pytest.skip(f"no {request.param} here: {found.reason}")
    return str(request.param)


@pytest.fixture(params=["namespace", "watched"])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "namespace" and mode_in_use().name != request.param:
        pytest.skip(f"no PID namespace here: {mode_in_use().reason}")
    monkeypatch.setenv("FIXLOOP_GUARD", request.param)
    return str(request.param)


@pytest.fixture
def scene(tmp_path: Path, means: str) -> Iterator[Scene]:
    project = make_repository(tmp_path / "shop", {"shop.py": "", ".gitignore": ".venv\n.fixloop\n"})
    (project / ".venv").mkdir()
    (project / ".fixloop" / "redis").mkdir(parents=True)
    (project / ".fixloop" / "redis" / "seal.key").write_text("key")
    cache, home = tmp_path / "cache", tmp_path / "home"
    home.mkdir()
    other = cache / "work" / "other.1" / "tree" / "shop"
    other.mkdir(parents=True)
    (other / "shop.py").write_text("its own\n")
    snapshot = take_snapshot(project, issue=1, cache=cache)
    site = Site(snapshot, Configuration(), cache, "mine")
    with site.ground(snapshot.commit) as ground:
        assert not ground.problem
        yield Scene(site, ground, project, home)


NET_ADMIN, SYS_TIME = 12, 25
FORBIDDEN = {
    "the environment": "echo 1 > {project}/.venv/planted.pth",
    "the checkout": "echo 1 > {project}/shop.py",
    "the home folder": "echo 1 > ~/.gitconfig",
    "settings above the workspace": "echo 1 > ../ruff.toml",
    "another workspace": "echo 1 > {other}/shop.py",
    "what is in another workspace": "cat {other}/shop.py",
    "the mirror": "cd {cache}/mirrors && echo 1 > config",
    "the state": "echo 1 > {project}/.fixloop/redis/planted",
    "the seal": "cat {project}/.fixloop/redis/seal.key",
    "a signal to the worker": "kill -0 {worker}",
    "the environment of the worker": "cat /proc/{worker}/environ > /dev/null",
    "the worker's files": "readlink /proc/{worker}/fd/0",
    "another's temporary files": "echo 1 > {temporary}/planted",
}


def test_a_command_cannot_access_what_is_not_its_own(scene: Scene, mode: str) -> None:
    temporary = own_temporary(Path("another"))
    temporary.mkdir(parents=True, exist_ok=True, mode=0o700)
    cache = scene.site.cache
    places = {
        "project": scene.project,
        "cache": cache,
        "other": cache.joinpath("work", "other.1", "tree", "shop"),
        "worker": os.getpid(),
        "temporary": temporary,
    }

    for what, command in FORBIDDEN.items():
        told = command.format(**places)
        assert (what, scene.run(told).exit_code) not in ((what, 0), (what, None))
        if mode == "watched":
            assert (what, scene.unconfined(told).exit_code) == (what, 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="nobody else has such rights")
@pytest.mark.proves("I3")
def test_root_sets_neither_the_machine_s_clock_nor_its_network_in_a_sandbox(scene: Scene) -> None:
    rights = int(scene.run("sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status").output, 16)

    assert rights & (1 << NET_ADMIN | 1 << SYS_TIME) == 0


def test_a_command_cannot_reach_the_embedded_server(scene: Scene, mode: str) -> None:
    with embedded_redis(scene.project):
        reached = Place(scene.project).recorded_socket()

        assert scene.run(f"{sys.executable} -c {shlex.quote(ASKS)} {reached}").exit_code == 1


@pytest.mark.proves("I3")
def test_a_command_reaches_no_service_of_the_user_s_session(
    scene: Scene, mode: str, means: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connects = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1].replace('@', chr(0)))"
    with TemporaryDirectory() as folder, ExitStack() as opened:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        agent = Path(folder + "-agent")
        opened.callback(agent.unlink)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(agent))
        names = [f"{folder}/bus", str(agent), f"@fixloop-test-{os.getpid()}"]
        for name in names:
            server = opened.enter_context(socket.socket(socket.AF_UNIX))
            server.bind(name.replace("@", chr(0)))
            server.listen()
        is_possible = {
            names[0]: (means, mode) != ("landlock", "watched"),
            names[1]: (means, mode) != ("landlock", "watched"),
            names[2]: landlock.version() >= landlock.WITH_SCOPES,
        }

        for name in filter(is_possible.get, names):
            asking = f"{sys.executable} -c {shlex.quote(connects)} {name}"
            assert scene.unconfined(asking).exit_code == 0
            assert (name, scene.run(asking).exit_code) == (name, 1)
            if means == "bubblewrap" and name == names[0]:
                assert scene.run(asking, name).exit_code == 0


@pytest.mark.proves("U17")
def test_a_command_cannot_write_to_another_terminal_and_can_have_its_own(
    scene: Scene, mode: str, means: str
) -> None:
    if (mode, means) == ("watched", "landlock"):
        pytest.skip("without a namespace all terminals are in one folder")
    with ExitStack() as opened:
        ends = os.openpty()
        for end in ends:
            opened.callback(os.close, end)
        name, own = os.ttyname(ends[1]), "import os; os.write(os.openpty()[1], b'1')"

        has_own = scene.run(f"{sys.executable} -c {shlex.quote(own)}")
        reaches = scene.run(f"echo injected > {name}")

        assert has_own.exit_code == 0, has_own.output
        assert reaches.exit_code not in (0, None)
        assert select.select([ends[0]], [], [], 0)[0] == []


def test_a_command_can_access_what_it_needs(scene: Scene, mode: str) -> None:
    python = shlex.quote(sys.executable)
    needs = (
        "echo 1 > new && mkdir -p a/b && mv new a/b/moved && ln a/b/moved a/link && rm -r a",
        "echo 1 > ../../scratch/report",
        "git status --short > /dev/null && git add -A && git commit --quiet --allow-empty -m mine",
        'echo 1 > "$(mktemp)" && test -w "$TMPDIR"',
        "ls / ~ /usr/bin > /dev/null && cat /etc/passwd > /dev/null && echo seen > /dev/stdout",
        f"{python} -c 'import multiprocessing; multiprocessing.Lock()'",
        f"{python} -c 'from multiprocessing import Manager; Manager().list()'",
        "sleep 60 & kill $!",
        f"cat {scene.project}/shop.py",
    )
    for need in needs:
        ran = scene.run(need)

        assert (ran.exit_code, need) == (0, need), ran.output
        assert ran.sandbox == means_in_use().name


def test_a_command_has_its_own_tmp_unless_it_needs_files_in_the_shared_one(
    mode: str, means: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (mode, means) == ("watched", "landlock"):
        pytest.skip("without a namespace nothing can be laid over /tmp")
    if Path(sys.executable).resolve().is_relative_to("/tmp") or Path(__file__).is_relative_to("/tmp"):
        pytest.skip("nothing is laid over a /tmp in which fixloop itself lies")
    folder = Path.home() / f".fixloop-test-{os.getpid()}"
    try:
        project = make_repository(folder / "shop", {"shop.py": ""})
        snapshot = take_snapshot(project, issue=1, cache=folder / "cache")
        site = Site(snapshot, Configuration(), folder / "cache", "mine")
        with site.ground(snapshot.commit) as ground:
            env = {"PATH": os.defpath}
            cwd = ground.workspace.directory
            confined = site.confined(cwd, env)
            name = f"fixloop-seen-{os.getpid()}"
            ran = run_guarded(
                ["sh", "-c", f"echo 1 > /tmp/{name} && echo $TMPDIR"],
                cwd=cwd,
                env=env,
                timeout_seconds=60,
                confined=confined,
            )
            own = own_temporary(ground.workspace.folder)

            assert (ran.exit_code, ran.output) == (0, "/tmp\n")
            assert (own / name).exists()
            assert not Path("/tmp", name).exists()
        assert not own.exists()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_packages_lent_by_a_checkout_in_the_shared_tmp_can_be_read_and_bubblewrap_gives_an_own_one_as_well(
    mode: str, means: str, tmp_path: Path
) -> None:
    folder = Path.home() / f".fixloop-test-{os.getpid()}"
    project = make_repository(tmp_path / "shop", {"package.json": "{}"})
    write(project, {"node_modules/colors/index.js": "red\n"})
    snapshot = take_snapshot(project, issue=1, cache=folder)
    site = Site(snapshot, Configuration(), folder, "mine")
    try:
        with site.ground(snapshot.commit) as ground:
            env, cwd = {"PATH": os.defpath}, ground.workspace.directory
            confined = site.confined(cwd, env)
            name = f"fixloop-seen-{os.getpid()}"
            own = f"echo 1 > /tmp/{name} && ! touch {project}/written" if means == "bubblewrap" else "true"
            command = ["sh", "-c", f"cat node_modules/colors/index.js && {own} 2>&1"]
            ran = run_guarded(command, cwd=cwd, env=env, timeout_seconds=60, confined=confined)

            assert (ran.exit_code, ran.output.splitlines()[0]) == (0, "red"), ran.output
            assert not Path("/tmp", name).exists()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def lent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    """A workspace with packages that its project's checkout has."""
    monkeypatch.setenv("FIXLOOP_SANDBOX", os.environ.get("FIXLOOP_SANDBOX", "auto"))
    project = make_repository(
        tmp_path / "shop", {"package.json": "{}", "lib/index.js": "old", ".gitignore": "node_modules"}
    )
    write(project, {"node_modules/@acme/rules/index.js": "red", "node_modules/.bin/rules": "echo ran"})
    (project / "node_modules/lib").symlink_to("../lib")
    snapshot = take_snapshot(project, issue=1, cache=tmp_path / "cache")
    with Site(snapshot, Configuration(), tmp_path / "cache", "mine").ground(snapshot.commit) as ground:
        yield Scene(Site(snapshot, Configuration(), tmp_path / "cache", "mine"), ground, project, tmp_path)


@pytest.mark.parametrize("mode", ["namespace"], indirect=True)
def test_a_lent_package_is_in_the_workspace_and_what_is_written_into_it_stays_there(
    mode: str, means: str, lent: Scene
) -> None:
    tree, donor = lent.ground.tree, lent.project / "node_modules"
    (lent.ground.workspace.path / "lib/index.js").write_text("new")

    places = lent.run(
        "readlink -f node_modules/@acme/rules && sh node_modules/.bin/rules && cat node_modules/lib/index.js"
    )
    written = lent.run("cd node_modules && echo blue > @acme/rules/index.js && rm .bin/rules && mkdir .vite")
    read = lent.run(
        "cat node_modules/@acme/rules/index.js && ls -A node_modules/.bin && ls -d node_modules/.vite"
    )

    assert places.output == f"{lent.ground.workspace.path}/node_modules/@acme/rules\nran\nnew"
    assert (written.exit_code, written.output) == (0, "")
    assert read.output == "blue\nnode_modules/.vite\n"
    assert (donor / "@acme/rules/index.js").read_text() == "red"
    assert sorted(each.name for each in donor.iterdir()) == [".bin", "@acme", "lib"]
    assert lent.ground.workspace.tracked_changes(tree) == ("lib/index.js",)
    lent.ground.workspace.close()
    assert not lent.ground.workspace.folder.exists()


@pytest.mark.parametrize("mode", ["namespace"], indirect=True)
def test_what_is_written_into_a_lent_package_cannot_be_changed_around_it(
    mode: str, means: str, lent: Scene
) -> None:
    lent.run("echo blue > node_modules/@acme/rules/index.js")
    found = list(lent.ground.workspace.folder.glob("overlays.*/upper/@acme/rules/index.js"))

    refused = lent.run(f"echo green > {found[0]}")

    assert refused.exit_code not in (0, None)
    assert lent.run("cat node_modules/@acme/rules/index.js").output == "blue\n"


@pytest.mark.parametrize("mode", ["namespace"], indirect=True)
@pytest.mark.parametrize(
    ("act", "told"),
    [
        ("echo blue > @acme/rules/index.js", "@acme/rules/index.js"),
        ("rm @acme/rules/index.js", "@acme/rules/index.js"),
        ("mv @acme acme", "@acme"),
        ("echo 1 > @acme/rules/late.mjs", "@acme/rules/late.mjs"),
        ("echo 1 > .bin/other", ".bin/other"),
        ("rm -r @acme/rules && ln -s $PWD/.. @acme/rules", "@acme/rules"),
        ("mkdir .vite && echo 1 > .vite/deps.js && echo 1 > @acme/rules/tsconfig.tmp.tsbuildinfo", ""),
        (
            "mkdir -p @acme/rules/node_modules/.cache/esm && echo 1 > @acme/rules/node_modules/.cache/esm/a.js",
            "",
        ),
        ("mkdir @acme/rules/.cache && echo 1 > @acme/rules/.cache/a.js", "@acme/rules/.cache/a.js"),
        ("touch @acme/rules/index.js && chmod +x @acme/rules/index.js", ""),
    ],
)
def test_changes_of_lent_packages_are_told_but_for_caches(
    mode: str, lent: Scene, act: str, told: str
) -> None:
    assert lent.run(f"cd node_modules && {act}").exit_code == 0

    changed = changed_packages(lent.ground.workspace.folder)

    assert f"/node_modules/{told}" in changed if told else not changed


@pytest.mark.parametrize("mode", ["watched"], indirect=True)
def test_where_no_overlay_can_be_mounted_packages_are_links(mode: str, lent: Scene) -> None:
    real = lent.run("readlink -f node_modules/@acme/rules/index.js && cat node_modules/@acme/rules/index.js")

    assert real.output == f"{lent.project}/node_modules/@acme/rules/index.js\nred"


@pytest.mark.parametrize("mode", ["namespace"], indirect=True)
def test_a_checkout_whose_packages_are_absolute_links_lends_links(mode: str, tmp_path: Path) -> None:
    project = make_repository(tmp_path / "shop", {"package.json": "{}", "lib/index.js": "old"})
    write(project, {"node_modules/colors/index.js": "red"})
    (project / "node_modules/lib").symlink_to(project / "lib")
    snapshot = take_snapshot(project, issue=1, cache=tmp_path / "cache")
    site = Site(snapshot, Configuration(sandbox=SandboxSettings(mode="auto")), tmp_path / "cache", "mine")
    with site.ground(snapshot.commit) as ground:
        linked = ground.workspace.path / "node_modules"

        assert linked.joinpath("colors").resolve() == project / "node_modules/colors"
        assert linked.joinpath("lib").resolve() == ground.workspace.path / "lib"


def test_configured_paths_are_writable_and_hidden_ones_in_them_are_not(scene: Scene) -> None:
    named = str(scene.project)

    assert scene.run(f"echo 1 > {named}/shop.py", named).exit_code == 0
    assert scene.run(f"echo 1 > {named}/.fixloop/redis/planted", named).exit_code not in (0, None)


@pytest.mark.parametrize("named", [".fixloop", ".fixloop/redis/seal.key", "link/redis"])
def test_a_project_cannot_reveal_hidden_paths(scene: Scene, named: str) -> None:
    (scene.project / "link").symlink_to(".fixloop")
    place = str(scene.project / named)

    assert scene.run(f"cat {scene.project}/.fixloop/redis/seal.key", place).exit_code not in (0, None)


@pytest.mark.parametrize("module", ["go.mod", "lib/go.mod", "lib/shop/go.mod"])
def test_build_caches_of_other_languages_are_writable_and_their_tools_are_not(
    scene: Scene, module: str
) -> None:
    folder = scene.ground.workspace.directory
    (folder / module).parent.mkdir(parents=True, exist_ok=True)
    (folder / module).write_text("module shop\n")
    (folder / "Cargo.toml").write_text("[package]\n")
    (scene.home / ".cargo" / "bin").mkdir(parents=True)
    scene = scene._replace(site=replace(scene.site, remembers=True))
    for cache in (".cache/go-build", "go/pkg/mod", ".cargo/registry"):
        assert scene.run(f"echo 1 > ~/{cache}/entry").exit_code == 0
    assert scene.run("echo 1 > ~/.cargo/bin/cargo").exit_code not in (0, None)


def test_a_daemon_does_not_outlive_its_command(scene: Scene, mode: str) -> None:
    marker = scene.ground.workspace.directory / "begun"

    ran = scene.run(
        f"(setsid sh -c 'touch {marker}; sleep 600; true' &); while ! test -e {marker}; do :; done"
    )

    assert ran.exit_code == 0
    assert running(marker) == []


def test_without_a_network_nothing_is_reached(scene: Scene) -> None:
    asks = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5)"
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        command = f"{sys.executable} -c {shlex.quote(asks)} {listening.getsockname()[1]}"

        assert scene.run(command).exit_code == 0
        assert scene.run(command, network=False).exit_code == 1


def test_the_exit_of_a_command_is_reported_through_the_sandbox(scene: Scene, mode: str) -> None:
    assert scene.run("exit 7").exit_code == 7
    assert scene.run("kill -KILL $$").injured
    assert scene.run("ulimit -c 0; kill -ABRT $$").signal == signal.SIGABRT
    env = {"PATH": os.environ["PATH"]}
    folder = scene.ground.workspace.directory
    confined = scene.site.confined(folder, env)
    absent = run_guarded(["no-such-tool"], cwd=folder, env=env, timeout_seconds=60, confined=confined)
    assert absent.not_found


def test_setup_runs_in_its_own_copy_of_the_project(scene: Scene) -> None:
    setup = {"workspace": {"setup": ["sh", "-c", "test -e shop.py"]}}
    site = replace(scene.site, configuration=Configuration.model_validate(setup), name="made")

    with site.ground(site.snapshot.commit) as ground:
        assert ground.problem == ""


@pytest.mark.proves("I3")
def test_setup_with_a_fix_s_build_scripts_writes_only_what_checks_may(scene: Scene) -> None:
    planted = scene.home / "planted"
    setup = {"workspace": {"setup": ["sh", "-c", f"echo . >> made && touch {planted}-$(cat setup.cfg)"]}}
    site = replace(scene.site, configuration=Configuration.model_validate(setup), name="made")
    git, own = mirror_of(site.snapshot, site.cache).git, site.snapshot.commit
    commits = {}
    for number, parents in (("1", ()), ("2", (own,))):
        blob = git.text("hash-object", "-w", "--stdin", stdin=number.encode())
        tree = tree_with(git, own, {b"setup.cfg": Entry("100644", blob)})
        commits[number] = commit_tree(git, tree, parents, "a fix")
    base = commits["1"]
    head = commit_tree(git, f"{own}^{{tree}}", (base,), "the feature")
    site = replace(site, snapshot=site.snapshot.model_copy(update={"commit": head}))

    with site.ground(commits["2"]) as ground:
        assert "[workspace] setup" in ground.problem
        assert "`[sandbox] writable`" in ground.problem
    with replace(site, shared=True).ground(base) as ground:
        assert "[workspace] setup" in ground.problem
    with site.ground(base) as ground:
        assert ground.problem == ""
    assert [path.name for path in scene.home.iterdir()] == ["planted-1"]


def test_a_command_in_a_runner_is_confined_there(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "runner"
    monkeypatch.setenv(RUNNER, str(place))
    with serving(place):
        assert scene.run("echo 1 > new").exit_code == 0
        assert scene.run(f"echo 1 > {scene.project}/shop.py").exit_code not in (0, None)


def test_a_command_in_a_runner_cannot_have_it_start_another_one(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    place = tmp_path / "runner"
    monkeypatch.setenv(RUNNER, str(place))
    asks = """
import socket, sys
with socket.socket(socket.AF_UNIX) as asking:
    asking.settimeout(20)
    asking.connect(sys.argv[1])
    sys.exit(asking.recv(1) != b"")
"""
    with serving(place):
        assert scene.run(f"{sys.executable} -c {shlex.quote(asks)} {place}").exit_code == 0


def test_a_required_sandbox_that_is_missing_is_a_problem_of_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    project = make_repository(tmp_path / "shop", {"shop.txt": ""})
    snapshot = take_snapshot(project, issue=1, cache=tmp_path / "cache")
    asked = Configuration.model_validate({"sandbox": {"mode": "require"}})

    with Site(snapshot, asked, tmp_path / "cache", "mine").ground(snapshot.commit) as ground:
        assert ground.problem == (
            "a sandbox is required, and there is none: this system has neither bubblewrap nor Landlock"
        )


def test_the_embedded_server_answers_only_those_who_can_read_its_data(tmp_path: Path) -> None:
    with embedded_redis(tmp_path) as url:
        place = Place(tmp_path)
        with closing(redis.Redis.from_url(url)) as client:
            assert client.ping()
        stranger = redis.Redis(unix_socket_path=str(place.recorded_socket()))
        with closing(stranger), pytest.raises(redis.AuthenticationError):
            stranger.ping()
        assert (place.data / "access.conf").stat().st_mode & 0o077 == 0


def test_a_command_that_was_refused_something_is_told_which_key_allows_it(scene: Scene) -> None:
    refused = scene.run(f"touch {scene.home}/notes")
    other = scene.run("cat nothing")

    assert "`[sandbox] writable`, or FIXLOOP_SANDBOX_WRITABLE" in refused.refusal
    assert scene.unconfined("echo Permission denied").refusal == ""
    assert other.refusal == ""


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller has a variable that no code of a project may see, and a sandbox."""
    monkeypatch.delenv("FIXLOOP_SANDBOX_WRITABLE", raising=False)
    if means_in_use().name == "none":
        pytest.skip("there is no sandbox here")
    monkeypatch.setenv("DEPLOY_TOKEN", "hunter2")


@pytest.mark.usefixtures("secret")
def test_listing_the_tests_of_a_project_writes_nothing_and_sees_no_secret(tmp_path: Path) -> None:
    left = tmp_path / "left"
    write(tmp_path / "shop", {"lib/test_cart.py": "def test_total():\n    assert True\n"})
    installed = Installed(Interpreter(sys.executable, "", "PATH"), tmp_path / "shop", tmp_path / "shop")
    assert installed.collects()

    steal = f"import os, pathlib\npathlib.Path({str(left)!r}).write_text(os.environ['DEPLOY_TOKEN'])\n"
    write(tmp_path / "shop", {"lib/conftest.py": steal})

    assert installed.collects()
    assert not left.exists()
    write(tmp_path / "shop", {"lib/conftest.py": "import os\nassert 'DEPLOY_TOKEN' not in os.environ\n"})
    (tmp_path / "shop/lib/test_cart.py").unlink()
    assert not installed.collects()


@pytest.mark.usefixtures("secret")
def test_an_interpreter_of_the_project_is_asked_in_the_sandbox(tmp_path: Path) -> None:
    steals = f'#!/bin/sh\necho "$DEPLOY_TOKEN" > {tmp_path}/left\nexec {sys.executable} "$@"\n'
    write(tmp_path / "shop", {".venv/pyvenv.cfg": "", ".venv/bin/python": steals})
    program = tmp_path / "shop/.venv/bin/python"
    program.chmod(0o755)
    interpreter = Interpreter(str(program), str(program.parent.parent), "checkout")

    assert importable_modules(interpreter, tmp_path / "shop", ["json", "no_such"]) == {"json"}
    assert not (tmp_path / "left").exists()


def test_no_code_of_a_project_that_requires_a_sandbox_runs_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, left = tmp_path / "shop", tmp_path / "left"
    steals = f'#!/bin/sh\necho > {left}\nexec {sys.executable} "$@"\n'
    write(
        shop, {".venv/pyvenv.cfg": "", ".venv/bin/python": steals, "test_cart.py": "def test_total(): ...\n"}
    )
    (shop / ".venv/bin/python").chmod(0o755)
    monkeypatch.delenv("FIXLOOP_SANDBOX", raising=False)
    # A system without bubblewrap, whose Landlock is too old.
    (tmp_path / "git").symlink_to(str(shutil.which("git")))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(landlock, "OLDEST", 1000)

    load_configuration(shop, installed=installed_at(shop))
    assert left.exists()

    left.unlink()
    write(shop, {"fixloop.toml": '[sandbox]\nmode = "require"\n'})
    assert [each.name for each in load_configuration(shop, installed=installed_at(shop)).specialists]
    assert not left.exists()
