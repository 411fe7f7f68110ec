"""The set of templates: every document of the protocol has one, and each can be rendered by its name."""

from pathlib import Path
from typing import get_args

import pytest

import fixloop.protocol
from fixloop.protocol.messages import Body
from fixloop.protocol.rendering import render
from tests.fixtures.message_samples import SAMPLES
from tests.unit.protocol_page import PAGE

FOLDER = Path(next(iter(fixloop.protocol.__path__))) / "templates"
NAMES = {path.name.removesuffix(".md.j2") for path in FOLDER.iterdir()}


@pytest.mark.proves("B58", "U4")
def test_every_document_of_the_protocol_has_a_template() -> None:
    six = {"failure-report", "fix-request", "revalidation-trigger", "success", "escalation", "full-log"}
    results = {"revalidation-result-pass", "revalidation-result-fail", "fix-completion", "timeout-reminder"}

    assert six | results | {"error-notification", "protocol-violation", "log-entry", "flow-log"} <= NAMES


@pytest.mark.proves("B58", "B57")
def test_every_message_is_rendered_from_a_template() -> None:
    kinds = {message.body.kind for message in SAMPLES.values()}

    assert kinds == {body.model_fields["kind"].default for body in get_args(get_args(Body)[0])}
    for message in SAMPLES.values():
        assert render(message).startswith("## ")
    assert {kind for kind in kinds if not any(name.startswith(kind) for name in NAMES)} == set()


@pytest.mark.proves("B58")
def test_the_protocol_s_document_covers_formats_flows_statuses_times_and_errors() -> None:
    page = PAGE.read_text(encoding="utf-8")

    for title in ("Messages", "Routes", "Statuses", "Transitions", "Time limits", "Escalations", "Errors"):
        assert f"\n## {title}\n" in page
