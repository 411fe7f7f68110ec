"""What a Python project's own files speak for about its security: bandit, with the project's settings."""

from collections.abc import Iterator
from typing import Final

from fixloop.configuration import layout
from fixloop.configuration.declarations import Declarations, Signs
from fixloop.configuration.model import Check
from fixloop.configuration.proposal import Need, Proposal
from fixloop.configuration.python_project import PythonProject

SPECIALIST: Final = "security"
BANDIT_SIGNS: Final = Signs(
    dependencies=("bandit",), tables=("bandit",), files=(".bandit", "bandit.yaml", "bandit.yml")
)
# SARIF is an extra of bandit that may be absent; these lines are not, and name file and line as well.
LINES: Final = ("--format", "custom", "--msg-template", "{relpath}:{line}: {test_id} {severity}: {msg}")


def scanners(project: PythonProject) -> Iterator[Proposal]:
    """bandit from medium up, its search for passwords, and a parser for what bandit leaves out."""
    declared = project.declared
    hook = next((hook.why for hook in project.hooks if hook.id == "bandit"), "")
    why = declared.place(BANDIT_SIGNS) or hook
    sources = layout.sources_of(project.directory)
    if not why or not sources:
        return
    options = _configuration(declared)
    bandit = ("bandit", "-q", "-r", *options)
    need = project.program("bandit")
    # From medium up: stricter than the gate's "high", because bandit has no "critical" and rates injection and
    # weak cryptography medium. Its low findings are hints (an assert, an import of subprocess) that sound code
    # has everywhere, so "any finding loops" would never end.
    yield _proposal("bandit", (*bandit, "--severity-level", "medium", *LINES), sources, why, need)
    keys = {*declared.table("bandit"), *(declared.section(".bandit", "bandit") or {})}
    # A YAML file may hold such keys. Assuming they are there costs one check; assuming not, an error.
    is_yaml = options[:1] == ("-c",) and options[1] != "pyproject.toml"
    if not is_yaml and keys.isdisjoint({"tests", "skips"}):
        # bandit rates hard-coded passwords low. A project that selects its own tests has decided about these
        # too, and bandit refuses a test that is both selected here and skipped there.
        yield _proposal("secrets", (*bandit, "--tests", "B105,B106,B107", *LINES), sources, why, need)
    # bandit leaves out files it cannot parse and still exits 0.
    yield _proposal("parse", ("python", "-m", "compileall", "-q"), sources, why, need)


def _proposal(
    name: str, command: tuple[str, ...], sources: tuple[str, ...], why: str, need: Need
) -> Proposal:
    check = Check(name=name, command=(*command, *sources), paths=sources)
    return Proposal(SPECIALIST, check, "bandit", why, (need,))


def _configuration(declared: Declarations) -> tuple[str, ...]:
    """The options that make bandit read the project's settings; by itself it finds none of them."""
    if "bandit" in declared.tools:
        return ("-c", "pyproject.toml")
    if declared.section(".bandit", "bandit") is not None:
        return ("--ini", ".bandit")
    for name in (".bandit", "bandit.yaml", "bandit.yml"):
        if (declared.directory / name).is_file():
            return ("-c", name)
    return ()
