"""The API called by its own description: no request makes it fail, and every answer is one that it describes."""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.fixtures.serve_stage import Stage, on_redis

pytestmark = pytest.mark.slow

stage = pytest.fixture(on_redis)
CHECKS: list[Any] = [
    not_a_server_error,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
]
EXAMPLES = 25


@pytest.mark.parametrize("role", ["admin", "decider", "agent"])
def test_every_answer_conforms_to_the_openapi_document(stage: Stage, role: str) -> None:
    workflow = stage.escalated()
    known = {"Authorization": f"Bearer {stage.token(role)}"}
    described = schemathesis.openapi.from_asgi("/v1/openapi.json", stage.app)

    found: list[Any] = list(described.get_all_operations())
    # The answer of a stream has no end.
    for operation in (each.ok() for each in found if each.ok().path != "/v1/events"):

        @settings(
            max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck)
        )
        @given(case=operation.as_strategy())
        def call(case: Any) -> None:
            if "workflow" in case.path_parameters and len(case.path_parameters["workflow"]) % 2:
                case.path_parameters["workflow"] = workflow
            # Nothing here would end a long wait.
            case.query.pop("wait_seconds", None)
            case.call_and_validate(headers=known, checks=CHECKS)

        call()
