"""What a fixer command finds in the file that FIXLOOP_REQUEST names, and the schema of that file.

Owns the shape; the starter of the command adds the two paths. Refuses a message that is not a failure report.
"""

import re
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from fixloop.errors import ProtocolError
from fixloop.protocol.messages import FailureReport, FixRequest, Message

#: The numbers of requirements, which mean nothing to who writes a fixer.
_REFERENCES: Final = re.compile(r" \([A-Z][0-9A-Z, -]*\)")


class FailureReportMessage(Message):
    """Exactly what failed."""

    body: FailureReport
    attached: None = Field(default=None, exclude=True)


class FixRequestMessage(Message):
    """What to do about it."""

    body: FixRequest
    attached: None = Field(default=None, exclude=True)


class _FixerRequest(BaseModel):
    """The failure report, the fix request and where the fixer works."""

    model_config = ConfigDict(title="FIXLOOP_REQUEST")

    failure_report: FailureReportMessage
    fix_request: FixRequestMessage
    workspace: Annotated[
        str, Field(description="Directory of the checkout to edit; also the working directory.")
    ]
    answer: Annotated[str, Field(description="Where an optional Fix Completion may be written.")]


def request_json(report: Message) -> dict[str, Any]:
    """`{failure_report, fix_request}` of FIXLOOP_REQUEST as JSON-able values, of a report with its request attached
    (K9)."""
    request = report.attached
    if not isinstance(report.body, FailureReport) or request is None or request.body.kind != "fix-request":
        raise ProtocolError(f"{report.message_id} is not a failure report with a fix request attached")
    return {
        "failure_report": report.model_dump(mode="json", exclude={"attached"}),
        "fix_request": request.model_dump(mode="json", exclude={"attached"}),
    }


def request_schema() -> dict[str, Any]:
    schema = _FixerRequest.model_json_schema(mode="serialization")
    for definition in schema["$defs"].values():
        definition["description"] = _REFERENCES.sub("", definition["description"])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
