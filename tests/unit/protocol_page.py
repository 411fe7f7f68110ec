"""docs/protocol.md, made from the code and the tests: `python -m tests.unit.protocol_page` writes it again."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.proofs import ROOT, Proof, collect, statements
from tests.unit import protocol_tables as tables

PAGE: Final = ROOT / "docs" / "protocol.md"
GLOSSARY: Final = ROOT / "docs" / "glossary.md"
REGENERATE: Final = "python -m tests.unit.protocol_page"

PROMISED: Final = {"A": 95, "B": 68, "C": 67, "D": 56, "E": 48}
"""By section of the protocols: its number of requirements. Each is stated and has a test."""

UNFOLDED: Final = 4
"""The number of tests shown at first; a reader opens the others."""

HEAD: Final = f"""\
# The protocol

This page is made from the code and the tests; `{REGENERATE}` writes it again.
"""


def page() -> str:
    """The whole of docs/protocol.md."""
    parts = [
        HEAD,
        _section("Words", "As in the [glossary](glossary.md).", _words()),
        _section(
            "Statuses", "One specialist's loop; the workflow's status follows from them.", tables.diagram()
        ),
        _section("Transitions", "No other is legal.", tables.transitions()),
        _section("Who sets a status", "Another role's status is refused and logged.", tables.roles()),
        _section(
            "Who brings an event",
            "From anybody else it is refused, and the log tells of it.",
            tables.senders(),
        ),
        _section("Specialists", "In the order of their phases.", tables.specialists()),
        _section("Messages", "`{time}` reads `YYYYMMDDTHHMMSSZ`, in UTC.", tables.messages()),
        _section("Routes", "Everything else is refused.", tables.routes()),
        _section(
            "Time limits",
            "Clocks begin with the work and stand still while the engine is away.",
            tables.operations(),
        ),
        _section(
            "Limits and attempts", "Attempts include the first; `None` switches a limit off.", tables.limits()
        ),
        _section("Escalations", "One for each pause.", tables.escalations()),
        _section("Errors", "Recovery is tried before anybody is asked.", tables.errors()),
        _section("Decisions", "After each kind of escalation, for a loop that is tried.", tables.decisions()),
        *_requirements(),
    ]
    return "\n".join(parts)


def _section(title: str, sentence: str, body: str) -> str:
    return f"## {title}\n\n{sentence}\n\n{body}"


def _words() -> str:
    rows = GLOSSARY.read_text(encoding="utf-8").splitlines()
    return "".join(f"{row}\n" for row in rows if row.startswith("|"))


def _requirements() -> Iterable[str]:
    proofs = collect()
    cited = {number for proof in proofs for number in proof.requirements}
    yield (
        "## What is promised, and which tests show it\n\n"
        'The numbers are those that tests cite as `@pytest.mark.proves("A1")`.\n'
        "One test proves at most four, and every A, B, C, D and E has one.\n"
    )
    for title, told in statements().items():
        rows = [
            [number, sentence, _tests(number, proofs)]
            for number, sentence in told.items()
            if number in cited or number[0] in PROMISED
        ]
        if rows:
            yield f"### {title}\n\n{tables.table(['', 'what holds', 'tests'], rows)}"


def _tests(number: str, proofs: Iterable[Proof]) -> str:
    by_file: dict[str, list[str]] = {}
    for proof in proofs:
        if number in proof.requirements:
            by_file.setdefault(proof.path, []).append(f"`{proof.name}`")
    count = sum(map(len, by_file.values()))
    listed = "<br>".join(
        f"[{Path(path).stem}](../{path}): {', '.join(found)}" for path, found in by_file.items()
    )
    return listed if count <= UNFOLDED else f"<details><summary>{count} tests</summary>{listed}</details>"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
