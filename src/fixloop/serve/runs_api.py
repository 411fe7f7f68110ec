"""`/v1/workflows/…/checks` and `…/compare`: what ran, and what became of failures between two runs."""

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel

from fixloop.serve.api import PROBLEMS, Workflow
from fixloop.serve.requests import Known, Serving
from fixloop.serve.workflow_pages import Runs, Specialist, compared

router = APIRouter(prefix="/v1/workflows/{workflow}", responses=PROBLEMS)


class Checks(BaseModel):
    """Each check that ran, with its evidence."""

    checks: list[dict[str, Any]]


class Failures(BaseModel):
    """Failures that went the same way."""

    total: int
    failures: list[dict[str, Any]]
    """The first of them."""


class Difference(BaseModel):
    """Two runs of one specialist."""

    specialist: str
    first: int
    second: int
    fixed: Failures
    new: Failures
    persisting: Failures
    vanished: Failures
    """They failed in the first, and were not run in the second."""
    fixes: list[dict[str, Any]]
    """What was changed between them."""


@router.get("/checks", responses={200: {"model": Checks}})
def checks(caller: Known, service: Serving, workflow: Workflow) -> dict[str, Any]:
    """Each check that ran, with command, exit code, counts, tree and what confined it."""
    return {"checks": service.checks(caller, workflow)}


@router.get("/compare/{runs}", responses={200: {"model": Difference}})
def compare(
    caller: Known, service: Serving, workflow: Workflow, runs: Runs, specialist: Specialist = ""
) -> dict[str, Any]:
    """What is fixed, new, persisting and vanished between two runs of a specialist, and the fixes between them."""
    phase, found, _ = compared(service.look(caller, workflow), runs, specialist)
    groups = {
        change.word: {
            "total": change.total,
            "failures": [each.model_dump(mode="json", exclude_defaults=True) for each in change.failures],
        }
        for change in found.changes
    }
    fixes = [each.model_dump(mode="json", exclude_defaults=True) for each in found.fixes]
    told = {"specialist": phase.name, "first": found.first.number, "second": found.second.number}
    return {**told, **groups, "fixes": fixes}
