"""The title of a chat's pull request: `0005 [dx] gh-sync` (E40)."""

import re
from typing import Final

from fixloop.chat.findings import Finding, shown
from fixloop.chat.roles import AREAS

PLACE: Final = "pull-request"
"""What findings about a title name as their file."""

_TITLE: Final = re.compile(r"[0-9]{4} \[([a-z]{2})\] [a-z0-9-]+")


def title_findings(title: str) -> list[Finding]:
    """What is wrong with `title`; a line end that a shell left there is not."""
    text = title.removesuffix("\n").removesuffix("\r")
    hit = _TITLE.fullmatch(text)
    if hit is None:
        told = (
            f"the title is {shown(text)}; it has to be {{id}} [{{area}}] {{slug}}, such as 0005 [dx] gh-sync"
        )
        return [Finding("pull-request", PLACE, told, field="title", value=text)]
    if hit[1] not in AREAS:
        told = f"the area in {shown(text)} is {hit[1]}; it has to be one of {', '.join(AREAS)}"
        return [Finding("pull-request", PLACE, told, field="title", value=text)]
    return []
