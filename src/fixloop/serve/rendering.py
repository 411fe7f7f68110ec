"""Renders pages as HTML: templates that escape every text and show hidden characters, and the static files."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment
from markupsafe import Markup, escape

from fixloop.protocol.rendering import compile_messages
from fixloop.serve.access import Caller
from fixloop.serve.identity import CSRF_HEADER
from fixloop.summary.model import clean
from fixloop.summary.pages import TEMPLATES, environment

_HERE: Final = Path(__file__).parent
_CODE: Final = re.compile("`([^`]+)`")
_KINDS: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_STEPS: Final = ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))


class Static(NamedTuple):
    """A static file."""

    body: bytes
    kind: str
    version: str
    """The beginning of its digest, which is part of its address, so that browsers may cache it."""


@cache
def static_files() -> Mapping[str, Static]:
    """By name; no other file on the disk is served."""
    paths = [*(_HERE / "static").iterdir(), TEMPLATES / "report.css"]
    bodies = {path: path.read_bytes() for path in paths if path.suffix in _KINDS}
    return {
        path.name: Static(body, _KINDS[path.suffix], sha256(body).hexdigest()[:12])
        for path, body in bodies.items()
    }


def compile_templates() -> None:
    """Compile all templates before the first page is requested."""
    for name in _environment().list_templates(["j2"]):
        _environment().get_template(name)
    compile_messages()


def page(
    request: Request, template: str, caller: Caller | None, status: int = 200, **shown: Any
) -> HTMLResponse:
    """A page from one of the templates, for a signed-in caller or an unknown one."""
    made = _environment().get_template(f"{template}.html.j2")
    return HTMLResponse(made.render(caller=caller, path=request.url.path, **shown), status)


def wants_page(request: Request) -> bool:
    """Whether the client is a browser, not a program."""
    return not request.url.path.startswith("/v1") and "text/html" in request.headers.get("Accept", "")


def ago(at: datetime | str) -> str:
    """How long ago a time is: `4 s`, `12 min`, `3 h 5 min`, `2 d 1 h`."""
    return _words((datetime.now(UTC) - _time(at)).total_seconds())


def left(at: datetime | str) -> str:
    """The time left until a time: `12 min left`, or `due`."""
    seconds = (_time(at) - datetime.now(UTC)).total_seconds()
    return f"{_words(seconds)} left" if seconds > 0 else "due"


def coded(text: str) -> Markup:
    """A text with its backticks rendered as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(clean(text)))))  # nosec B704: escaped


def _words(seconds: float) -> str:
    whole = max(0, int(seconds))
    for size, unit, smaller, fraction in _STEPS:
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size} {unit}" + (f" {rest} {fraction}" if rest and size > 60 else "")
    return f"{whole} s"


def _time(at: datetime | str) -> datetime:
    return at if isinstance(at, datetime) else datetime.fromisoformat(at)


@cache
def _environment() -> Environment:
    made = environment(
        _HERE / "templates",
        autoescape=True,
        # Safe text comes from a template.
        finalize=lambda value: clean(value) if type(value) is str else value,
    )
    made.filters |= {"ago": ago, "left": left, "coded": coded}
    made.globals["static"] = lambda name: f"/static/{name}?v={static_files()[name].version}"
    made.globals["csrf_header"] = CSRF_HEADER
    return made
