"""Renders messages as Markdown, in the layout of the protocol's templates (A15-A48, A53, B19-B25, B47-B52).

Owns the templates, one per message type. They escape every expression that is not `Verbatim`, so that text of tools and
agents cannot become layout. The text contains only facts of the message.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from fixloop.protocol import durations, markdown
from fixloop.protocol.failures import Severity, common_prefix
from fixloop.protocol.markdown import Verbatim
from fixloop.protocol.messages import MAIN_AGENT, ORCHESTRATOR, FailureReport, Message, RevalidationResult
from fixloop.protocol.specialists import SPECIALISTS

if TYPE_CHECKING:
    from jinja2 import Environment

DELIVERY_CHARACTERS: Final = 40_000
"""10,000 tokens of an agent's context."""
ENVELOPE: Final = "<!-- fixloop ", " -->"
"""Surrounds a comment below the message with the facts that its layout does not show (A22, K3, K24)."""
_ENVELOPE_FACTS: Final = (
    *("uid", "at", "issue", "specialist", "iteration", "max_iterations"),
    *("number", "summary", "status_before", "status_after"),
)
_RULE: Final = "\n---\n\n"
_SIGNATURES: Final = MappingProxyType(
    {
        ORCHESTRATOR: "Validation Orchestrator (recursive-communicator skill)",
        MAIN_AGENT: "Feature Implementer Main Agent",
        **{entry.handle: entry.title for entry in SPECIALISTS},
        **{f"@{entry.name}": entry.title for entry in SPECIALISTS},
    }
)


def render(message: Message) -> str:
    """`message` without its attachment; the envelope is the last line (A22)."""
    body = message.body
    name: str = body.kind
    if isinstance(body, RevalidationResult):
        name = f"{name}-{'pass' if body.passed else 'fail'}"
    facts = json.dumps({fact: getattr(message, fact) for fact in _ENVELOPE_FACTS}, default=datetime.isoformat)
    # One line, which no text in it can end.
    envelope = facts.replace("<", "\\u003c").replace(">", "\\u003e").join(ENVELOPE)
    return f"{fill(name, m=message, body=body)}\n{envelope}\n"


def render_whole(message: Message) -> str:
    """`message` and, after a rule, its attachment (K9)."""
    return join(render(part) for part in (message, message.attached) if part is not None)


def join(texts: Iterable[str]) -> str:
    """Join the texts of one delivery with rules."""
    return _RULE.join(texts)


def render_delivery(report: Message, *, to_command: bool = False) -> str:
    """The main agent's text: the facts of a failure report and its request, each once, and the rules for a fix. At most
    DELIVERY_CHARACTERS; groups of failures that do not fit are counted."""
    body, request = report.body, report.attached.body if report.attached is not None else None
    assert isinstance(body, FailureReport), "only failure reports are delivered"
    names = ([other.partition(" ")[2] for other in failure.others] for failure in body.failures)
    facts = {
        "m": report,
        "report": body,
        "body": request,
        "prefixes": list(map(common_prefix, names)),
        "to_command": to_command,
    }
    for listed in range(len(body.failures), 0, -1):
        shown = body.failures[:listed]
        further = body.total - sum(failure.alike for failure in shown)
        elsewhere = further or any(failure.alike > 1 for failure in shown)
        text = fill("delivery", failures=shown, further=further, elsewhere=elsewhere, **facts)
        if len(text) <= DELIVERY_CHARACTERS:
            break
    return text


def render_answer_format(issue: int, iteration: int, specialist: str) -> str:
    """A blank Fix Completion, for requests and violation notices."""
    facts = {"issue": issue, "iteration": iteration, "specialist": specialist}
    return fill("answer-format", **facts).removesuffix("\n")


def fill(template: str, **facts: object) -> str:
    """Render the template `template` with `facts`; a missing fact raises."""
    return _environment().get_template(f"{template}.md.j2").render(facts)


def compile_messages() -> None:
    """Compile all templates before a message has to be rendered."""
    environment = _environment()
    for name in environment.list_templates():
        environment.get_template(name)


def _history(counts: Sequence[int]) -> Verbatim:
    """One line per run with its failure count (B40)."""
    rows = (
        f"- Iteration {run}: {count} failure{'' if count == 1 else 's'}{'' if count else ' (PASS)'}"
        for run, count in enumerate(counts, 1)
    )
    return Verbatim("\n".join(rows))


def templates(*folders: Path, **options: Any) -> "Environment":
    """Loads templates from these folders, in this order. `options` have to define the escaping."""
    # Imported late: most commands and steps render no message, and jinja2 takes a tenth of a second to load.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(  # nosec B701
        loader=FileSystemLoader(folders),
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **options,
    )


@cache
def _environment() -> "Environment":
    # `finalize` escapes: autoescape would write HTML entities into Markdown.
    environment = templates(Path(__file__).parent / "templates", finalize=markdown.escaped)
    environment.filters |= {
        "bullets": markdown.bullets,
        "cell": markdown.cell,
        "code": markdown.code,
        "critical": lambda failures: sum(each.priority is Severity.CRITICAL for each in failures),
        "fence": markdown.fence,
        "history": _history,
        "hours_minutes_seconds": durations.hours_minutes_seconds,
        "label": str.capitalize,
        # Names on one line; a line for each would be mostly blank.
        "listing": lambda names: Verbatim(", ".join(map(markdown.line, names))),
        "lines": markdown.lines,
        "minutes_seconds": durations.minutes_seconds,
        "numbered": markdown.numbered,
        "period": durations.period,
        # The name an agent signs with (A20, A34), or its address if it is unknown.
        "signature": lambda agent: _SIGNATURES.get(agent, agent),
        "stamp": durations.stamp,
        "text": markdown.text,
        # `F2 name` for each, without the names' common prefix.
        "without": lambda names, prefix: [
            f"{number} {name.removeprefix(prefix)}"
            for number, _, name in (each.partition(" ") for each in names)
        ],
    }
    return environment
