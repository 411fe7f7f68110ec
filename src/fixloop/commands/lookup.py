"""Finds the workflow a person means; does not guess between projects or live workflows."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fixloop.errors import ProtocolError, UsageError
from fixloop.protocol.durations import stamp
from fixloop.repository.identity import top_of
from fixloop.repository.snapshot import issues_handed_in
from fixloop.servers.redis_url import shown_url
from fixloop.statefiles.named_files import records_below
from fixloop.store.contract import Store
from fixloop.store.keys import is_workflow, project_hash

SHOWN_ISSUES: Final = 10
"""The most that a sentence names."""
_HASH: Final = re.compile(r"[0-9a-f]{8}")


class NothingYet(UsageError):
    """No workflow here yet: this project has no `.fixloop`, and no Redis is named."""


@dataclass(frozen=True)
class Lookup:
    """Finds workflows from one project's directory."""

    store: Store
    hash8: str
    """The project's."""
    directory: Path
    state_url: str
    archive_dir: Path | None

    def meant(self, issue: int | str | None, project: str | None) -> str:
        """The workflow a person means; refuses if there is none, or several that `project` does not tell apart."""
        text = str(issue).removeprefix("#")
        if isinstance(issue, str) and is_workflow(issue):
            try:
                is_there = self.store.read(issue) is not None
            except ProtocolError:
                # Whatever reads it next raises this itself; `repair` does not read it.
                is_there = True
            if not is_there:
                hash8, found_issue, _ = issue.split("-")
                self._refuse_retired(hash8, int(found_issue))
                raise UsageError(f"no workflow {issue}; `fixloop status` lists all workflows")
            return issue
        if issue is not None and not (text.isascii() and text.isdigit() and 0 < int(text[:16]) < 10**15):
            raise UsageError(f"{str(issue)[:60]!r} is not an issue; use a positive whole number such as 47")
        hash8 = self.hash8 if project is None else _hash_of(project)
        if issue is None:
            return self._only_one(hash8)
        number = int(text)
        found = self.store.latest(hash8, number)
        if found is not None:
            return found
        self._refuse_retired(hash8, number)
        if project is not None:
            raise UsageError(f"project {project} has no issue {number}; `fixloop status` lists all workflows")
        return self._elsewhere(number)

    def stored_of(self, project: str | None = None) -> list[str]:
        """All workflows of a project, by default this one, by issue; includes those of which only parts are left."""
        prefix = f"{self.hash8 if project is None else _hash_of(project)}-"
        names = {name for name, _ in self.store.workflows()}.union(self.store.unlisted())
        return sorted((name for name in names if name.startswith(prefix)), key=_order)

    def nothing_here(self) -> str:
        """The sentence for a Redis without workflows: there were none yet, or it lost them."""
        return self._lost(None) or "no workflow here yet; `fixloop run` starts one"

    def _only_one(self, hash8: str) -> str:
        live = [name for name, _ in self.store.workflows(live_only=True) if name.startswith(f"{hash8}-")]
        if len(live) == 1:
            return live[0]
        if live:
            # The latest of several would be a guess, and `cancel` and `decide` act on it.
            issues = [name.split("-")[1] for name in sorted(live, key=_order)]
            more = ", …" if len(issues) > SHOWN_ISSUES else ""
            told = f"{len(live)} workflows are live here (issues {_listed(issues)}{more}); name one"
            raise UsageError(told)
        known = self.store.workflows()
        ended = [(kept.get("updated_at", ""), name) for name, kept in known if name.startswith(f"{hash8}-")]
        if not ended:
            raise NothingYet(self.nothing_here())
        return max(ended)[1]

    def _elsewhere(self, number: int) -> str:
        # A workflow that works for another has the same issue, and is named by its id.
        found = [name for name in self.store.search(number) if not self._fields(name).get("parent")]
        if not found:
            lost = self._lost(number)
            raise UsageError(lost or f"no workflow of issue {number}; `fixloop status` lists all workflows")
        if len(found) > 1:
            known = {workflow: self._fields(workflow).get("project", "") for workflow in found[:SHOWN_ISSUES]}
            names = (f"{name} ({each[:8]})" if name else each[:8] for each, name in known.items())
            told = f"issue {number} is in {len(found)} projects: {', '.join(names)}; name one with --project"
            raise UsageError(told)
        return found[0]

    def _fields(self, workflow: str) -> Mapping[str, str]:
        try:
            known = self.store.read(workflow)
        except ProtocolError:
            # A damaged one is still found: `audit verify` says what is wrong with it.
            return {}
        return known.fields if known is not None else {}

    def _lost(self, issue: int | None) -> str:
        handed_in = issues_handed_in(top_of(self.directory)[0])
        meant = (number for number in handed_in if issue in (None, number))
        unknown = [number for number in meant if self.store.retired(self.hash8, number) is None]
        return lost_by(f"Redis at {shown_url(self.state_url)}", unknown, self.directory)

    def _refuse_retired(self, hash8: str, issue: int) -> None:
        """Say where a workflow went that once existed."""
        retired = self.store.retired(hash8, issue)
        if retired is None:
            return
        said = f"workflow {retired.workflow} was {retired.how.replace('-', ' ')} on {stamp(retired.at)} UTC"
        if retired.how == "set-aside":
            told = f"{said}, because it was damaged; the file that `fixloop repair` printed has all of it"
            raise UsageError(told)
        if retired.how == "purged":
            raise UsageError(f"{said}; nothing of it is left")
        raise UsageError(
            f"{said}, and is not in {self.archive_dir or 'a configured archive'}; "
            "set FIXLOOP_ARCHIVE_DIR to where the workers keep it"
        )


def prefix_of(project: str | None) -> str:
    """The prefix of the ids of a project's workflows; empty for all projects."""
    return f"{_hash_of(project)}-" if project is not None else ""


def project_of(workflow: str) -> str:
    """The prefix of the ids of all workflows of this one's project."""
    return f"{workflow.partition('-')[0]}-"


def lost_by(where: str, issues: list[int], directory: Path) -> str:
    """One sentence if the repository has workflows that its Redis does not know; else nothing."""
    if not issues:
        return ""
    first, names = issues[0], _listed([str(number) for number in issues])
    live = [record.issue for record in records_below(files_root(directory)) if not record.ended]
    kept = next((number for number in issues if number in live), 0)
    way_out = f"rebuild it from its files with `fixloop files {kept} --rebuild`, or " if kept else ""
    return (
        f"{where} has no workflow of issue {names}, although refs/fixloop/{first}/base shows that it was submitted: "
        f"the data was lost, or this is another Redis; restore its backup, {way_out or 'or '}start again with "
        f"`fixloop run --issue {first}`"
    )


def files_root(directory: Path) -> Path:
    """The folder that contains a project's named files: the directory itself, else the project's top."""
    return directory if (directory / ".fixloop" / "files").is_dir() else top_of(directory)[0]


def _listed(issues: list[str]) -> str:
    return ", ".join(dict.fromkeys(issues[:SHOWN_ISSUES]))


def _hash_of(project: str) -> str:
    return project if _HASH.fullmatch(project) else project_hash(project)


def _order(workflow: str) -> tuple[int, int]:
    _, issue, number = workflow.split("-")
    return int(issue), int(number)
