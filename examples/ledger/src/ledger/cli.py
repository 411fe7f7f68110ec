"""The command line: `python -m ledger statement FILE ACCOUNT YEAR MONTH`."""

import argparse
import sys
from pathlib import Path

from ledger.budget import parse_limits, warnings
from ledger.exchange import export, read_csv
from ledger.statement import build_statement, render, totals_by_category


def main(argv: list[str] | None = None) -> int:
    """Exit code 0, 1 when a budget was exceeded, 2 for bad input."""
    arguments = _parser().parse_args(argv)
    try:
        journal = read_csv(arguments.file, arguments.account)
    except (OSError, ValueError) as problem:
        print(f"ledger: {problem}", file=sys.stderr)
        return 2
    statement = build_statement(journal, arguments.account, arguments.year, arguments.month)
    if arguments.out:
        print(export(statement, arguments.out, arguments.hook))
    else:
        text = render(statement)
        print(text, end="")
    if not arguments.limits:
        return 0
    limits = parse_limits(arguments.limits.read_text(encoding="utf-8"))
    found = warnings(totals_by_category(statement), limits)
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


def _parser() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="ledger")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("statement", help="print or export a monthly statement")
    command.add_argument("file", type=Path)
    command.add_argument("account")
    command.add_argument("year", type=int)
    command.add_argument("month", type=int)
    command.add_argument("--limits", type=Path, help="file with a limit for each category")
    command.add_argument("--out", type=Path, help="folder to export to")
    command.add_argument("--hook", default="", help="command to run on the exported file")
    return parser
