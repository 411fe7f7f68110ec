"""The schema of the file that FIXLOOP_REQUEST names, in which a fixer command finds its request."""

import re
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from fixloop.protocol.messages import FailureReport, FixRequest, Message

#: The numbers of requirements, which mean nothing to the author of a fixer.
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


def request_schema() -> dict[str, Any]:
    schema = _FixerRequest.model_json_schema(mode="serialization")
    for definition in schema["$defs"].values():
        definition["description"] = _REFERENCES.sub("", definition["description"])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
