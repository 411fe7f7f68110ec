"""The ground of a command: workspace, interpreter, environment, new places for its reports."""

import math
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from fixloop.configuration.commands import only_reads
from fixloop.configuration.model import Configuration
from fixloop.errors import FixloopError
from fixloop.files.folders import is_in_place
from fixloop.intake.redaction_scope import redaction_of
from fixloop.machine.guard import Confined
from fixloop.machine.interpreters import Interpreter, choose_interpreter
from fixloop.machine.sandbox import confined, means_in_use, required
from fixloop.machine.variables import allowed_variables
from fixloop.repository.snapshot import Snapshot, mirror_of
from fixloop.secrets.redaction import Redaction
from fixloop.servers.settings import load_settings
from workers.workspaces.bytecode import give_back, lend
from workers.workspaces.confinement import confinement_in, setup_confinement
from workers.workspaces.environment import allowed_names, environment_for, in_own_home, with_named
from workers.workspaces.go_caches import own_caches
from workers.workspaces.interpreter import probe_imports
from workers.workspaces.mypy_cache import date_by, is_due, is_mypy, lend_cache, mypy_cache, runs_other_code
from workers.workspaces.node_modules import lend_generated, lend_node_modules
from workers.workspaces.own_modules import OwnModules
from workers.workspaces.setup import Setup, prepare
from workers.workspaces.workspace import Workspace, open_workspace

if TYPE_CHECKING:
    from workers.steps.step import Step

_ENDINGS = {"junit": ".xml", "sarif": ".sarif", "go-test": ".jsonl", "cargo-test": ".txt", "clippy": ".jsonl"}


@dataclass(frozen=True)
class Ground:
    """Where and how the commands of one step run."""

    workspace: Workspace
    interpreter: Interpreter
    shared: bool
    """Whether the worker is shared, so that a project gets only the variables that the operator allows."""
    redaction: Redaction
    donors: tuple[Path, ...] = ()
    """Other checkouts' `node_modules`, which are lent."""
    sees_home: bool = False
    """Its checks see the real home folder, because the project requests it."""
    setup: str = ""
    """The state of the dependency files for which `[workspace] setup` ran; empty if there is no setup."""
    problem: str = ""
    """Why nothing can be checked here, in one sentence; empty if all is well."""
    lend: Callable[[Mapping[str, str]], Mapping[str, str]] = lambda made: {}
    """Puts existing results into the new caches of an environment; returns the variables of further caches."""
    has_mypy: bool = False
    """Its modules get dates derived from their content."""

    @cached_property
    def tree(self) -> str:
        """The workspace's tree before commands run."""
        tree = self.workspace.tree_hash()
        if self.has_mypy:
            date_by(f"{tree} {self.workspace.copied}", self.workspace.path)
        return tree

    @cached_property
    def _environment(self) -> dict[str, str]:
        made = environment_for(self.workspace, self.interpreter)
        if self.has_mypy:
            # pytest's bytecode contains the date of its module.
            _ = self.tree
        return {**made, **self.lend(made)}

    def environment(self, names: Sequence[str]) -> dict[str, str]:
        """A command's environment, with `names` from the configuration; all commands here share its caches."""
        return self._with(self._environment, names)

    def check_environment(self, names: Sequence[str]) -> dict[str, str]:
        """A check's environment: the same, in a home folder of its own."""
        made = self._environment
        return self._with(made if self.sees_home else in_own_home(made, self.workspace, os.environ), names)

    def _with(self, made: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
        allowed = allowed_names(names, shared=self.shared, operators=load_settings().allow_env)
        return with_named(made, allowed, os.environ)

    def report_path(self, check: str, kind: str) -> Path:
        """Where a check has to write its report; the file does not exist, and no other check gets this path."""
        name = re.sub(r"[^\w.-]", "_", check)
        folder = tempfile.mkdtemp(prefix="report-", dir=self.workspace.scratch)
        return Path(folder, f"{name}{_ENDINGS.get(kind, '.json')}")


@dataclass(frozen=True)
class Site:
    """What an attempt's grounds are made from, and for whom."""

    snapshot: Snapshot
    configuration: Configuration
    cache: Path
    name: str
    """The name of the workspace's folder. Checks use the same one each time, because compilers cache by path."""
    issue: int = 0
    shared: bool = False
    cancelled: Callable[[], bool] = lambda: False
    began: float = math.inf
    """When the workflow started, in seconds since the epoch: later bytecode may be a fixer's."""
    probed: set[tuple[str, str]] | None = None
    """Interpreters that were seen to import the project from a workspace, each with its commit; None: check each time,
    as a fixer may have changed the interpreter."""
    probes: bool = True
    """Whether the import check is needed: not for a fixer, or for tools that only read."""
    remembers: bool = False
    """No fix was requested, so the caches of mypy and Go may be kept."""

    @property
    def source(self) -> Path | None:
        """The user's checkout, if it is on this machine."""
        return None if self.snapshot.is_url else Path(self.snapshot.source)

    def confined(
        self, cwd: Path, env: Mapping[str, str], *, writable: Sequence[str] = (), network: bool = True
    ) -> Confined:
        """The confinement of a command in `cwd`, in one of this site's workspaces. On a shared worker a project can
        neither switch it off nor name places of the operator's."""
        named = (*writable, *(() if self.shared else self.configuration.sandbox.writable))
        what = confinement_in(self.cache, self.source, cwd, env, named)._replace(network=network)
        return confined(what, env, cwd=cwd, mode=self._sandbox)

    def started(
        self, argv: Sequence[str], cwd: Path, env: Mapping[str, str], *, network: bool
    ) -> tuple[Mapping[str, str], Confined]:
        """The environment in which a check starts, and its confinement."""
        writable = []
        own = Path(env.get("MYPY_CACHE_DIR", ""))
        # A cache directory that the project names is kept.
        may_keep = not self.shared and is_mypy(argv) and is_in_place(own, self.cache / "work")
        if may_keep and not runs_other_code(argv, cwd):
            kept = mypy_cache(self.cache, Path(self.snapshot.source, self.snapshot.subdirectory))
            with suppress(OSError):
                if self.remembers and (self.began == math.inf or is_due(kept, time.time())):
                    kept.mkdir(parents=True, exist_ok=True)
                    writable, env = [str(kept)], {**env, "MYPY_CACHE_DIR": str(kept)}
                elif not own.exists():
                    lend_cache(kept, own, self.began)
        return env, self.confined(cwd, env, writable=writable, network=network)

    @property
    def is_confined(self) -> bool:
        """Whether its commands are confined."""
        return means_in_use(self._sandbox).name != "none"

    @property
    def _sandbox(self) -> str:
        mode = self.configuration.sandbox.mode or "off"
        return "auto" if self.shared and mode == "off" else mode

    def _modules(self, interpreter: Interpreter) -> OwnModules:
        project = os.path.join(self.snapshot.source, self.snapshot.subdirectory)
        return OwnModules(self.cache, interpreter, project)

    @contextmanager
    def ground(self, commit: str) -> Iterator[Ground]:
        """A prepared workspace at a commit in the snapshot's mirror; removed at the end."""
        with open_workspace(
            self.cache,
            mirror_of(self.snapshot, self.cache),
            commit,
            name=self.name,
            subdirectory=self.snapshot.subdirectory,
            copied=self.snapshot.copied,
            origin=self.snapshot.origin,
        ) as workspace:
            ground = self._made_ready(workspace)
            try:
                yield ground
            finally:
                made = workspace.scratch.glob("run-*/pycache")
                # Files are removed in there. A command may leave anything: names that are no text, folders without end.
                for pycache in (each for each in made if is_in_place(each, workspace.scratch)):
                    with suppress(OSError, ValueError, RecursionError):
                        if not self.shared:
                            self._modules(ground.interpreter).note(pycache, workspace.path)
                        give_back(pycache, self.cache, ground.interpreter)

    def _made_ready(self, workspace: Workspace) -> Ground:
        """Run setup, choose the interpreter, and check whether it imports the project from the workspace."""
        hidden, subdirectory = redaction_of(self.configuration), self.snapshot.subdirectory
        try:
            required(self._sandbox)
            made = self._set_up(workspace, hidden.text)
        except FixloopError as error:
            nothing = Interpreter("", "", "none")
            return Ground(workspace, nothing, self.shared, hidden, problem=hidden.text(str(error)))
        source = self.source
        places = [place for place in (made, source) if place]
        donors = lend_node_modules(workspace, places, may_overlay=self.is_confined)
        chosen = choose_interpreter(made=made, source=source, subdirectory=subdirectory, variables=os.environ)

        def lend_caches(made: Mapping[str, str]) -> Mapping[str, str]:
            pycache = Path(made["PYTHONPYCACHEPREFIX"])
            lend(pycache, self.cache, chosen, self.began)
            own = {} if self.remembers else own_caches(workspace, self.snapshot.commit, made, self.began)
            with suppress(OSError):
                if not self.shared:
                    how = self.confined(workspace.path, {**allowed_variables(os.environ), **own})
                    self._modules(chosen).lend(pycache, workspace.path, self.began, how)
            return own

        checks = (check for entry in self.configuration.specialists for check in entry.checks)
        ground = Ground(
            workspace,
            chosen,
            self.shared,
            hidden,
            donors,
            sees_home=self.configuration.workspace.home,
            # Without the suffix that distinguishes two copies for the same state.
            setup=made.parent.name.partition(".")[0] if made else "",
            lend=lend_caches,
            has_mypy=any(is_mypy(check.command) for check in checks),
        )
        key, probed = (chosen.path, workspace.commit), set() if self.probed is None else self.probed
        if not self.probes or key in probed:
            return ground
        environment = ground.check_environment(())
        how, fixer = self.confined(workspace.directory, environment), self.configuration.fixer
        # Where no fixer could write into the cache.
        keeps = self.remembers or (fixer is not None and not fixer.is_handoffs and self.is_confined)
        problem = probe_imports(
            chosen,
            workspace.directory,
            workspace.path,
            environment,
            hide=hidden.text,
            confined=how,
            cache=self.cache if keeps else None,
        )
        if problem:
            return replace(ground, problem=problem)
        probed.add(key)
        return ground

    def _set_up(self, workspace: Workspace, hide: Callable[[str], str]) -> Path | None:
        """The copy in which `[workspace] setup` has completed; None without a setup."""
        command, variables = self.configuration.workspace.setup, allowed_variables(os.environ)
        if not command:
            return None

        git, ours = workspace.mirror.git, (workspace.commit, self.snapshot.commit)
        is_fix = git.run("merge-base", "--is-ancestor", *ours, accept=(0, 1)).returncode == 1
        places = () if self.shared else self.configuration.sandbox.writable if is_fix else None

        def confined_setup(folder: Path) -> Confined:
            top = folder / "tree" / self.snapshot.subdirectory
            what = setup_confinement(self.cache, self.source, folder, top, places)
            return confined(what, variables, cwd=folder, mode=self._sandbox)

        setup = Setup(
            command,
            variables,
            self.snapshot.copied,
            cancelled=self.cancelled,
            confined=confined_setup,
            hide=hide,
        )
        below = self.snapshot.subdirectory
        made = prepare(self.cache, workspace.mirror, workspace.commit, subdirectory=below, setup=setup)
        lend_generated(workspace.path, workspace.directory, made)
        return made


def site_of(work: "Step", configuration: Configuration, cache: Path) -> Site:
    state, ticket = work.holding.state, work.holding.ticket
    # Imported late: it loads Redis's client, which `fixloop check` does not need.
    from fixloop.outside.transfer import snapshot_in

    snapshot, shared = snapshot_in(state), not state.queue
    is_check = ticket.step in ("validate", "recheck", "confirm")
    began, remembers = state.started_at.timestamp(), is_check and state.tip == snapshot.commit
    name = f"check.{ticket.specialist}" if is_check else f"{ticket.id}.{work.holding.fence}"
    made = Site(snapshot, configuration, cache, name, state.issue, shared, work.cancelled, began)
    checks = (
        check
        for entry in configuration.specialists
        for check in entry.checks
        if entry.name == ticket.specialist
    )
    imports = is_check and not all(only_reads(check.command) for check in checks)
    return replace(made, remembers=remembers, probes=imports)


@contextmanager
def open_ground(work: "Step", configuration: Configuration, cache: Path) -> Iterator[Ground]:
    """A prepared workspace for the ticket at the workflow's current tip; removed at the end."""
    from fixloop.outside.transfer import bring_work

    state = work.holding.state
    bring_work(work.store, state, cache)
    with site_of(work, configuration, cache).ground(state.tip) as ground:
        yield ground
