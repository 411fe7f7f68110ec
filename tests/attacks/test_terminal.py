"""What tools, agents and people write cannot control the terminal: every command's output on hostile text."""

import ast
import json
import logging
import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
import redis
from hypothesis import HealthCheck, Phase, example, given, settings, strategies as st

import fixloop
from fixloop.chat.channels import Channel, tagged
from fixloop.chat.vocabulary import Role
from fixloop.profiles.cycle import events as cyc
from fixloop.profiles.handoff import events as hnd
from fixloop.protocol.agent_events import AgentFailed
from fixloop.protocol.checks import Evidence
from fixloop.protocol.events import BlockerSignalled, DecisionMade, FixCompleted, Paused, RunFinished
from fixloop.protocol.failures import Failure
from fixloop.protocol.messages import Decision
from fixloop.protocol.state import Completion
from fixloop.store.redis_store import RedisStore
from tests.fixtures.command_stage import PROJECT, Agents, empty_store, said
from tests.fixtures.cycle_stage import reported
from tests.fixtures.profile_stage import Profiles
from workers.roles import OneRow

FORGED: Final = "#99 forged"
_HIDDEN: Final = (
    *("\u202e", "\u202a", "\u2066", "\u2069", "\u061c", "\u200e", "\u200f"),
    *("\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u180e", "\u034f", "\u115f", "\u3164"),
    *("\U000e0001", "\U000e0041", "\U000e007f", "\U000e0100", "\ufe0f", "\ufff9"),
    *("\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\x00", "\x07", "\x08", "\x7f", "\x85", "\x0b", "\x0c"),
)
_BREAKS: Final = ("\n", "\r\n", "\r", "\u2028", "\u2029", "\x85", "\x0b", "\x1c", "\n\n")
TEXTS: Final = st.lists(st.sampled_from([*_HIDDEN, "a", " ", "é", "漢"]), min_size=1, max_size=6).flatmap(
    lambda pieces: st.sampled_from(_BREAKS).map(lambda end: f"x{''.join(pieces)}{end}{FORGED}{end}y")
)
FULL: Final = bool(os.environ.get("ATTACKS"))


_ALLOWED: Final = re.compile("(?<=[é漢])(?:[\u200c\u200d](?=[é漢])|\ufe0f)")
"""Joiners between two letters of such scripts, and a selector after one."""


def acts(text: str) -> list[str]:
    """The characters of an output that a terminal obeys, or that are invisible."""
    return sorted({f"{ord(sign):04x}" for sign in _ALLOWED.sub("", text) if _acts(sign)})


def _acts(sign: str) -> bool:
    return sign not in "\n\t" and (
        unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") or sign in _HIDDEN
    )


def rows_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.lstrip(" -*#>|").startswith(FORGED.lstrip("#"))]


class Reader:
    """Calls the program and checks its output."""

    def __init__(self, capsys: Any) -> None:
        self._capsys = capsys
        self.wrong: list[str] = []

    def rows(self, *words: str) -> None:
        """A call whose output is rows: none is forged."""
        told = said(self._capsys, *words)
        self._look(words, told.out + told.err)
        self.wrong += [f"{' '.join(words)}: {row}" for row in rows_of(told.out) + rows_of(told.err)]

    def documents(self, *words: str) -> None:
        """A call whose output is a document: it may quote a text with its own lines."""
        told = said(self._capsys, *words)
        self._look(words, told.out + told.err)

    def _look(self, words: Sequence[str], text: str) -> None:
        found = acts(text)
        if found:
            self.wrong.append(f"{' '.join(words)}: {' '.join(found)}")


@pytest.fixture
def folder(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with empty_store(redis_url, tmp_path, monkeypatch):
        yield tmp_path


def validation(store: Any, text: str) -> None:
    """Loops in every state shown to a person, in which all free text is `text`."""
    agents = Agents(store)
    failure = Failure(
        name=text, file=text, line=1, error_type=text, message=text, suggestion=text, check=text
    )
    evidence = Evidence(check=text, command=text, exit_code=1, tree="tree-0", interpreter=text)
    for issue in (1, 2, 3, 4):
        agent = "coder" if issue == 2 else ""
        flow = agents.start(issue, script="1", name=text, fixer="outside", agent=agent)
        agents.apply(
            flow,
            RunFinished(
                step="validate",
                specialist="test-runner",
                iteration=1,
                outcome="failed",
                tree="tree-0",
                failures=(failure,),
                evidence=(evidence,),
                skipped_checks=(text,),
            ),
        )
        agents.run(flow)
    named = [f"{PROJECT}-{issue}-1" for issue in (1, 2, 3, 4)]
    agents.apply(named[1], BlockerSignalled(by=text, text=text))
    agents.apply(named[2], Paused(by=text, reason=text))
    completion = Completion(
        iteration=1, by=text, summary=text, fixes=(text,), files=(text,), tip="c1", tree="t1", marks=(text,)
    )
    agents.apply(named[3], FixCompleted(specialist="test-runner", completion=completion))
    agents.apply(named[1], DecisionMade(decision=Decision.ABORT, by=text, reason=text))


def profiles(store: Any, text: str) -> None:
    """A cycle and a workflow of handoffs whose agents print `text`."""
    flows = Profiles(store)
    cycle = flows.cycle(5, name=text)
    flows.apply(cycle, cyc.AgentStarted(agent="ra"), reported("ra", "partial", issues=json.dumps([text])))
    handoff = flows.handoff(6, name=text)
    flows.apply(
        handoff, hnd.AgentActivated(agent="planner"), AgentFailed(agent="planner", reason=text, fatal=True)
    )


@pytest.mark.slow
@settings(
    max_examples=15,
    phases=[Phase.explicit, Phase.generate, Phase.shrink] if FULL else [Phase.explicit],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@example(text=f"x\n{FORGED}\u202e\u200b\x1b[2J\U000e0041")
@example(text=f"\r\n{FORGED}\u2028{FORGED}\x85{FORGED}\ufeff\u2066\x9b31m\xad")
@given(text=TEXTS)
def test_no_command_s_output_acts_on_the_terminal_or_forges_a_row(
    redis_url: str, folder: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    with closing(RedisStore(redis_url)) as store:
        redis.Redis.from_url(redis_url).flushall()
        validation(store, text)
        profiles(store, text)
    call = Reader(capsys)
    words: tuple[str, ...]

    for words in (("status",), ("inbox",), ("audit", "verify")):
        call.rows(*words)
    for words in (("status", "--json"), ("inbox", "--json")):
        call.documents(*words)
    for issue in map(str, range(1, 7)):
        for words in (("status", issue), ("log", issue), ("log", issue, "--all"), ("audit", "verify", issue)):
            call.rows(*words)
        for words in (
            ("status", issue, "--json"),
            ("log", issue, "--format", "markdown"),
            ("log", issue, "--json"),
            *(("report", issue, "--output", "-", "--format", kind) for kind in ("markdown", "html", "json")),
            ("ack", issue, *(() if issue in "56" else ("--show", "F1"))),
        ):
            call.documents(*words)
    call.rows("watch", "2")
    for agent in ("coder", "ra", "planner"):
        call.documents("mailbox", agent)
        call.documents("mailbox", agent, "--json")
    for words in (("cancel", "1", "--reason", text), ("pause", "4", "--reason", text), ("continue", "4")):
        call.rows(*words)
    for words in (("status", text), ("log", text), ("decide", "6", text), ("chat", "new", text), (text,)):
        call.rows(*words)

    call.rows("archive", "--older-than", "0")

    assert "\n".join(call.wrong) == ""


def test_a_worker_s_log_has_a_row_for_each_message() -> None:
    record = logging.LogRecord(
        "fixloop.tasks", logging.ERROR, "x.py", 1, "refused: %s", (f"a\n{FORGED}\u202e",), None
    )

    assert OneRow("%(levelname)s %(message)s").format(record) == f"ERROR refused: a\\n{FORGED}\\u202e"


def test_other_output_of_a_chat_s_agents_is_shown() -> None:
    (line,) = tagged(Role.ENGINEER, Channel.TOOL, "\x1b[2Jdone\u202e")

    assert line == "engineer/tool: \\x1b[2Jdone\\u202e"


def _writes(tree: ast.AST) -> Iterator[int]:
    """The lines of a module that write by themselves."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in (
                "print",
                "typer.echo",
                "typer.secho",
                "click.echo",
                "os.write",
                "Text",
                "console.print",
            ) or (
                name.startswith(("sys.stdout.", "sys.stderr."))
                and name.rpartition(".")[2].startswith("write")
            ):
                yield node.lineno


@pytest.mark.heavy
def test_all_output_of_commands_goes_through_one_module() -> None:
    package = Path(fixloop.__file__).parent
    modules = [package / "cli.py", *sorted((package / "commands").rglob("*.py"))]

    found = [
        f"{path.relative_to(package)}:{line}"
        for path in modules
        if path.name != "screen.py"
        for line in _writes(ast.parse(path.read_text()))
    ]

    assert found == []
