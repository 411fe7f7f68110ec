"""Reading what is said about a fix and its re-check: completion, trigger, result, success (A31-A43, B33-B43)."""

import re

from fixloop.protocol.failures import Comparison
from fixloop.protocol.markdown import unescape
from fixloop.protocol.messages import FixCompletion, Reason, RevalidationResult, RevalidationTrigger, Success
from fixloop.testing.parsing.document import Document, Part
from fixloop.testing.parsing.values import counts, member, number, seconds


def fix_completion(document: Document) -> FixCompletion:
    summary, ready = document.part("Completion Summary"), document.part("Ready for Re-validation")
    answer = ready.search(r"(Yes - please|No - not yet ready to) re-run (.*)\.", "the words `Yes` or `No`")
    duration, files = summary.field("Fix Duration"), document.part("Files Modified")
    return FixCompletion(
        specialist=unescape(answer[2]),
        summary=unescape(summary.written("Iteration").partition("\n")[2].strip("\n")),
        fixes=document.part("Fixes Applied").items(),
        files=files.items(),
        ready=answer[1].startswith("Yes"),
        duration_seconds=seconds(duration, summary, "Fix Duration"),
        marks=summary.listed("Marks"),
        unchanged=files.listed("Named But Not Changed"),
        unnamed=files.listed("Changed But Not Named"),
    )


def revalidation_trigger(document: Document) -> RevalidationTrigger:
    request = document.part("Re-validation Request")
    before = request.field("Previous Status")
    return RevalidationTrigger(
        phase=request.field("Phase"),
        confirms=member(before, {"Passed": True, "Failed": False}, request, "Previous Status"),
        previous_failures=document.part("Previous Failures").items(),
        fixes=document.part("Fixes Applied").items(),
    )


def revalidation_result(document: Document) -> RevalidationResult:
    summary, details = document.part("Result Summary"), document.part("Details")
    passed = member(summary.field("Status"), {"PASS": True, "FAIL": False}, summary, "Status")
    return RevalidationResult(
        passed=passed,
        failures=() if passed else document.part("Failure Details").items(),
        failure_count=0 if passed else _remaining(details),
        comparison=Comparison(
            resolved=details.nested("Failures resolved"),
            persisting=details.nested("Failures persisting"),
            new=details.nested("New failures introduced"),
        ),
        history=counts(details.listed("Iteration History"), details),
        likely_cause=details.optional("Likely Cause"),
        escalates=None if passed else _escalates(document.part("Next Action")),
        fix_seconds=seconds(details.field("Total Fix Time"), details, "Total Fix Time"),
        next_phase=_next_phase(document.part("Next Action")) if passed else "",
        coverage=summary.optional("Coverage"),
        evidence=details.listed("Evidence"),
        marks=details.listed("Marks"),
    )


def success(document: Document) -> Success:
    summary, status = document.part("Success Summary"), document.part("Final Status")
    said = summary.search(
        r"Validation phase (.*) completed successfully after (-?[0-9]+) iterations?\.",
        "the phase and its iterations",
    )
    following = document.part("Next Phase").search(r"Proceeding to:(?: (.*))?", "the next phase")
    total = status.search(r"Total time: (.*)", "the total time")[1]
    phases = re.search(
        r"^- Phases completed: (-?[0-9]{1,9}) of (-?[0-9]{1,9})$", status.written(), re.MULTILINE
    )
    return Success(
        phase=unescape(said[1]),
        iterations=number(said[2], summary, "iterations"),
        history=counts(summary.listed("Iteration History"), summary),
        total_seconds=seconds(total, status, "Total time"),
        next_phase=unescape(following[1] or ""),
        phases_done=int(phases[1]) if phases is not None else 0,
        phases_total=int(phases[2]) if phases is not None else 0,
        marks=status.nested("Marks:"),
    )


def _remaining(details: Part) -> int:
    return int(details.search(r"([0-9]{1,9}) failures? remains?\.", "the number of failures that remain")[1])


def _next_phase(action: Part) -> str:
    found = action.search(r"Proceed to next phase:(?: (.*))?", "the words `Proceed to next phase`")
    return unescape(found[1] or "")


def _escalates(action: Part) -> Reason | None:
    found = action.search(r"(?:Continue|Escalate).*", "the words `Continue` or `Escalate`")[0]
    texts = (reason for reason in Reason if found.startswith(f"Escalate: {reason.text} ("))
    return next(texts, None)
