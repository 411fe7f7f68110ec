"""`report` for profiles whose steps are agent runs, made from what `status` and `log` show."""

import html
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fixloop.commands.presenter import Logged, Presenter, documented
from fixloop.protocol import markdown
from fixloop.store.records import Snapshot

Row = Sequence[str]


class Parts:
    """A report as headed tables and lists, the source of every format."""

    def __init__(self, heading: str) -> None:
        self.heading = heading
        self.tables: list[tuple[str, Row, list[Row]]] = []

    def table(self, title: str, names: Row, rows: Iterable[Sequence[object]]) -> "Parts":
        """Add a table, unless it is empty."""
        listed: list[Row] = [tuple(map(str, row)) for row in rows]
        if listed:
            self.tables.append((title, tuple(names), listed))
        return self


def as_markdown(parts: Parts) -> str:
    """As text to read."""
    text = [f"# {markdown.line(parts.heading)}"]
    for title, names, rows in parts.tables:
        text += [f"\n## {title}\n", f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
        text += (f"| {' | '.join(map(markdown.cell, row))} |" for row in rows)
    return "\n".join(text) + "\n"


_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#1b1b1f}"
    "table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;padding:.3rem .6rem;"
    "border-bottom:1px solid #d8d8de}th{font-weight:600}h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem}"
    "@media(prefers-color-scheme:dark){body{background:#17171a;color:#e6e6ea}td,th{border-color:#3a3a40}}"
)


def as_html(parts: Parts) -> str:
    """As one page; all foreign text is escaped."""
    title = html.escape(parts.heading)
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    head = (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>\n'
    )
    body = []
    for heading, names, rows in parts.tables:
        body.append(f"<h2>{html.escape(heading)}</h2>\n<table><thead>{_row('th', names)}</thead><tbody>")
        body += (_row("td", row) for row in rows)
        body.append("</tbody></table>")
    return "\n".join((f"{head}<body><h1>{title}</h1>", *body, "</body></html>\n"))


def _row(cell: str, values: Row) -> str:
    return f"<tr>{''.join(f'<{cell}>{html.escape(value)}</{cell}>' for value in values)}</tr>"


def reported(
    parts: Callable[[Iterable[Row], Any], Parts], presenter: Callable[[], Presenter[Any]]
) -> Callable[[Snapshot, Logged[Any], str], str]:
    """A profile's `report`, from the function that makes its parts; `presenter` is lazy, as it contains this one."""

    def report(found: Snapshot, logged: Logged[Any], form: str) -> str:
        shown = presenter()
        if form == "json":
            status = documented(shown.document(found, logged.state), logged.across)
            log = shown.log_document(logged)
            document = {"status": status, "statistics": log["statistics"], "entries": log["entries"]}
            return json.dumps(document, ensure_ascii=False, indent=2)
        details = list(shown.details(found, logged.state, False))
        if logged.across is not None:
            details.append((logged.across.label, logged.across.text))
        made = parts(details, logged.state)
        return as_html(made) if form == "html" else as_markdown(made)

    return report
