"""The main agent as a command: it gets the request and works in a workspace; the changes it leaves there are the fix.

Its output is evidence and is never parsed. Exit code 0: the final tree is the fix; otherwise its changes are dropped.
"""

import json
import os
import stat
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from fixloop.configuration.model import Configuration, Fixer
from fixloop.engine.history import Said, all_failures, open_report
from fixloop.errors import ProtocolError
from fixloop.machine.guard import GuardedResult
from fixloop.outside.declining import signalled
from fixloop.outside.transfer import NotKept, facts_of_change, keep_bundle
from fixloop.protocol.answers import LIMIT_BYTES, Answer, InvalidAnswer, decode_answer, parse_answer
from fixloop.protocol.claims import Differences, differences
from fixloop.protocol.events import AnswerRejected, BlockerSignalled, FixCompleted, FixFailed
from fixloop.protocol.failure_report import request_json
from fixloop.protocol.limits import clean
from fixloop.protocol.rendering import render_delivery
from fixloop.protocol.roles import worker_of
from fixloop.protocol.state import Completion
from fixloop.protocol.tracing import VARIABLE, traceparent
from workers.commands import child_workflows
from workers.steps.step import Step, with_grace
from workers.steps.validation_steps import fix_failed
from workers.workspaces.confinement import writable_by
from workers.workspaces.ground import Ground, Site, open_ground, site_of
from workers.workspaces.node_modules import written_into

TAIL_CHARACTERS: Final = 4000
SAID_CHARACTERS: Final = 1000
Done = FixCompleted | FixFailed | AnswerRejected | BlockerSignalled


def fix(work: Step, configuration: Configuration, cache: Path) -> Done | None:
    """Run the fixer on the open request, see `Commands`."""
    if configuration.fixer is None:
        raise ProtocolError("a fix was asked of a workflow without a fixer")
    if configuration.fixer.is_handoffs:
        return child_workflows.fix(work, configuration, cache)
    report = open_report(work.store, work.holding.ticket.workflow, work.holding.version)
    with open_ground(work, configuration, cache) as ground:
        began = time.time()
        result = _run(work, configuration.fixer, site_of(work, configuration, cache), ground, report)
        if result is None:
            return None
        if injury := ground.workspace.injury() or written_into(ground.donors, began):
            hide = ground.redaction.text
            return _failed(work, hide(f"the fixer {injury}"), hide(result.output))
        return _answer(work, ground, result)


def _run(work: Step, fixer: Fixer, site: Site, ground: Ground, report: Said) -> GuardedResult | None:
    ticket, own = work.holding.ticket, _own_folder(ground)
    own.mkdir(exist_ok=True)
    request, answer, failures = own / "request.json", own / "answer", own / "failures.json"
    wanted = request_json(report.message)
    wanted |= {"workspace": str(ground.workspace.directory), "answer": str(answer)}
    request.write_text(json.dumps(wanted, indent=2))
    failures.write_bytes(all_failures(work.store, work.holding.state))
    folder = ground.workspace.directory
    env = ground.environment(fixer.env) | {
        "FIXLOOP_REQUEST": str(request),
        "FIXLOOP_ANSWER": str(answer),
        "FIXLOOP_FAILURES": str(failures),
        "FIXLOOP_ROLE": worker_of(ticket),
        VARIABLE: traceparent(ticket),
        "FIXLOOP_ISSUE": str(work.holding.state.issue),
        "FIXLOOP_SPECIALIST": ticket.specialist,
        "FIXLOOP_ITERATION": str(ticket.iteration),
    }
    configured = None if site.shared else fixer.writable
    writable = writable_by(fixer.command) if configured is None else configured
    return work.run(
        fixer.command,
        cwd=folder,
        env=env,
        confined=site.confined(folder, env, writable=writable, network=fixer.network),
        stdin=render_delivery(report.message, to_command=True).encode(),
        unheard_seconds=with_grace(work.holding.state.patience_seconds),
    )


def _answer(work: Step, ground: Ground, result: GuardedResult) -> Done:
    ticket, hide = work.holding.ticket, ground.redaction.text
    output = hide(result.output)
    if result.exit_code != 0:
        why = end_of(result, "the fixer", "the fixer's command")
        return _failed(work, why, output, undelivered=result.not_found)
    written = _read_answer(_own_folder(ground) / "answer")
    text = hide(written.decode("utf-8", "replace")) if written is not None else ""
    artifacts = work.keep(output, text)
    reply = None
    try:
        if written is not None:
            reply = parse_answer(
                hide(decode_answer(written)),
                issue=work.holding.state.issue,
                iteration=ticket.iteration,
                specialist=ticket.specialist,
            )
    except InvalidAnswer as invalid:  # A71
        return AnswerRejected(
            specialist=ticket.specialist,
            iteration=ticket.iteration,
            violations=invalid.violations,
            offending=text[:TAIL_CHARACTERS],
            artifacts=artifacts,
        )
    if reply is not None and not reply.ready:
        git = ground.workspace.mirror.git
        return signalled(
            work.holding.state, git, by="fixer", text=reply.blocker, kind=reply.declined, artifacts=artifacts
        )
    return _change(work, ground, reply, output, artifacts)


def _change(
    work: Step, ground: Ground, said: Answer | None, output: str, artifacts: tuple[str, ...]
) -> FixCompleted | FixFailed:
    state, ticket, hide = work.holding.state, work.holding.ticket, ground.redaction.text
    message = f"fixloop: issue {state.issue}, {ticket.specialist}, answer to run {ticket.iteration}\n"
    change = ground.workspace.capture(state.tip, message)
    try:
        bundle = keep_bundle(work.store, state, ground.workspace.mirror, change.commit)
    except NotKept as error:
        return _failed(work, str(error), output, fatal=True)
    fixes = said.fixes if said is not None else tuple(f"changed {name}" for name in change.files[:20])
    printed = clean(output).strip()[-SAID_CHARACTERS:]
    if left_out := hide(_left_out(ground.workspace.left_out())):
        fixes, printed = (*fixes, left_out), f"{printed}\n{left_out}".strip()[-SAID_CHARACTERS:]
    differ = differences(said.files, change.files) if said is not None else Differences()
    done = Completion(
        iteration=ticket.iteration,
        by="fixer",
        summary=said.summary if said is not None else "",
        fixes=fixes,
        said=printed,
        **differ._asdict(),
        **facts_of_change(work.store, state, ground.workspace.mirror, change, hide=hide),
    )
    return FixCompleted(specialist=ticket.specialist, completion=done, bundle=bundle, artifacts=artifacts)


def _left_out(files: Sequence[str]) -> str:
    """The note to a person and the next agent about changes that cannot be committed."""
    if not files:
        return ""
    more = f" and {len(files) - 5} more" if len(files) > 5 else ""
    return (
        f"left out {', '.join(files[:5])}{more}: what submodules hold and what git ignores is no part of a fix "
        "(`git add -f` takes an ignored file along)"
    )


def _failed(work: Step, error: str, output: str, **more: bool) -> FixFailed:
    return fix_failed(work.holding.ticket, error, output_tail=output[-TAIL_CHARACTERS:], **more)


def _own_folder(ground: Ground) -> Path:
    """The folder for the fixer's input files and its answer; never part of a tree. It is in the working directory
    because agents write only there, and some have no shell to read a variable."""
    return ground.workspace.directory / ".fixloop"


def _read_answer(path: Path) -> bytes | None:
    """The answer, truncated one byte above its limit; None if there is none."""
    if path.parent.is_symlink():
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return f"{path.name} is not a regular file".encode()
    with os.fdopen(descriptor, "rb") as file:
        return file.read(LIMIT_BYTES + 1)


def end_of(result: GuardedResult, who: str, command: str) -> str:
    """How a command failed, as a sentence."""
    if result.not_found:
        return f"{command} was not found or cannot be executed"
    if result.timed_out:
        return f"{who} did not end within {result.duration_seconds:.0f} s"
    if result.signal is not None:
        return f"{who} died of signal {result.signal}"
    return f"{who} ended with exit code {result.exit_code}{result.refusal}"
