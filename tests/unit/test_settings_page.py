"""The settings' models: the pages generated from them, and their stored form."""

import tomllib
from importlib import import_module
from json import loads
from pathlib import Path
from typing import Any, Final

import pytest

from fixloop.configuration.loader import load_configuration
from fixloop.configuration.settings import SandboxSettings
from tests.fixtures.configuration_project import written
from tests.unit.settings_page import PAGE, REGENERATE, SCHEMA, page, schema

EXAMPLES: Final = sorted(Path(__file__).parents[2].glob("examples/*/fixloop.toml"))
EVERYTHING: Final = """\
project = "shop"
max_iterations = 7
base = "main"
notify = "notify-send it"
bundle_fix_request = false
[workspace]
setup = "uv sync"
copy = ["src/**/_version.py"]
[fixer]
command = "claude -p"
timeout_minutes = 12.5
env = ["KEY"]
[limits]
fix_minutes = false
extend_minutes = 10
deadlock_window = 4
[[specialist.security.check]]
name = "scan"
command = "scan {sarif} {coverage}"
output = "clippy"
optional = true
fail_on = "note"
coverage_percent = 70
baseline = "all"
env = ["A"]
[specialist.security]
timeout_minutes = 5
[cycle]
attempts = 2
coverage_percent = 85
utc_offset_minutes = 0
[cycle.agent.EP]
env = ["B"]
command = "plan it"
timeout_minutes = false
depends_on = ["RA"]
[cycle.agent.RA]
outside = true
[handoff]
max_iterations = 3
timeout_minutes = 20
[handoff.agent.builder]
command = "build"
"""
STORED: Final = (
    '{"project":"shop","max_iterations":7,"notify":["notify-send","it"],"bundle_fix_request":false,"l'
    'imits":{"fix_minutes":0.0,"deadlock_window":4,"extend_minutes":10.0},"workspace":{"setup":["uv",'
    '"sync"],"copy":["src/**/_version.py"]},"base":"main","fixer":{"command":["claude","-p"],"timeout'
    '_minutes":12.5,"env":["KEY"]},"cycle":{"attempts":2,"agent":{"ep":{"command":["plan","it"],"time'
    'out_minutes":0.0,"env":["B"],"depends_on":["ra"]},"ra":{}},"coverage_percent":85.0,"utc_offset_m'
    'inutes":0},"handoff":{"max_iterations":3,"timeout_minutes":20.0,"agent":{"builder":{"command":["'
    'build"]}}},"specialists":[{"name":"security","checks":[{"name":"scan","command":["scan","{sarif}'
    '","{coverage}"],"output":"clippy","optional":true,"fail_on":"note","coverage_percent":70.0,"env"'
    ':["A"],"baseline":"all"}],"timeout_minutes":5.0}]}'
)
"""As it has been stored since the first version: in this order, or its digest would be another."""
DIGEST: Final = "7da0adfc7ff03606387d4a28333256146eee9629cc8eda9c1c51e7da779fe344"


def refusal(text: str) -> str:
    """The error that an editor shows for a file of `text`; empty if the schema accepts it."""
    validator: Any = import_module("jsonschema").Draft202012Validator(loads(schema()))
    return "; ".join(error.message for error in validator.iter_errors(tomllib.loads(text)))


def test_the_settings_page_and_the_schema_are_current() -> None:
    found = PAGE.read_text(encoding="utf-8")

    assert found == page(found), f"run `{REGENERATE}`"
    assert SCHEMA.read_text(encoding="utf-8") == schema(), f"run `{REGENERATE}`"


def test_the_stored_form_of_a_configuration_has_not_changed(tmp_path: Path) -> None:
    configuration = load_configuration(written(tmp_path, {"fixloop.toml": EVERYTHING}))

    assert configuration.sandbox.mode == "auto"
    unconfined = configuration.model_copy(update={"sandbox": SandboxSettings()})
    assert unconfined.to_json() == STORED
    assert unconfined.digest() == DIGEST
    assert type(configuration).model_validate_json(STORED) == unconfined, "as it was when it was stored"


@pytest.mark.parametrize("text", [EVERYTHING, *(path.read_text(encoding="utf-8") for path in EXAMPLES)])
def test_the_schema_accepts_what_loads(text: str) -> None:
    assert refusal(text) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("max_iteration = 3", "'max_iteration' was unexpected"),
        ("max_iterations = 0", "0 is less than the minimum of 1"),
        ("[limits]\nextend_minutes = false", "False is not of type 'number'"),
        ("[limits]\nfix_minutes = true", "True is not valid under any of the given schemas"),
        ("[specialist.securty]", "'securty' is not one of ['unit-test', "),
        ("[specialist.security]\nfail_on = 'eror'", "'eror' is not one of ['error', 'warning', 'note']"),
        ("[cycle.agent.'a b']", "'a b' does not match"),
        ("[fixer]\nenv = ['A=b']", "'A=b' does not match"),
        ("[workspace]\nsetup = []", "[] is not valid under any of the given schemas"),
    ],
)
def test_the_schema_refuses_what_the_models_refuse(text: str, expected: str) -> None:
    assert expected in refusal(text)
