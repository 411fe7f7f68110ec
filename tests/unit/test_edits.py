"""A change to a file, as one sentence with file, field and value."""

import json
from typing import Any

import pytest

from fixloop.statefiles.sync import difference


def _json(document: Any) -> bytes:
    return json.dumps(document).encode()


@pytest.mark.proves("K23", "C5", "D19")
@pytest.mark.parametrize(
    ("found", "written", "said"),
    [
        ({"a": 1}, {"a": 2}, "a is 1, and was written as 2"),
        ({"a": {"b": True}}, {"a": {"b": 1}}, "a.b is true, and was written as 1"),
        ({"a": [1, 2]}, {"a": [1, 3]}, "a[1] is 2, and was written as 3"),
        ({"a": [1]}, {"a": [1, 3]}, "a is [1], and was written as [1, 3]"),
        ({}, {"a": None}, "a is not there, and was written as null"),
        ({"a": "é", "b": 1}, {"a": "é"}, "b is 1, and was written as not there"),
        ([], {"a": 1}, 'the document is [], and was written as {"a": 1}'),
        ({"a": "x" * 200}, {"a": ""}, f'a is "{"x" * 79}…, and was written as ""'),
    ],
)
def test_the_first_field_that_differs_is_named(found: Any, written: Any, said: str) -> None:
    assert difference("f.json", _json(found), _json(written)) == f"f.json was edited by hand: {said}"


@pytest.mark.parametrize(
    ("found", "written", "said"),
    [
        (None, b"x", "f was removed by hand"),
        (b"x", None, "f was made by hand"),
        (b'{"status": "accepted"}', None, 'f was made by hand: status is "accepted"'),
        (b"[1]", None, "f was made by hand"),
        (b"a\nc\n", b"a\nb\n", 'f was edited by hand: line 2 is "c", and was written as "b"'),
        (b"a\n", b"a\nb\n", 'f was edited by hand: line 2 is not there, and was written as "b"'),
        (b"a", b"a\n", "f was edited by hand: its line ends are others"),
        (b'{"a":1}', b'{"a": 1}', "f was edited by hand: it is laid out in another way"),
        (b"\xff", b"{}", 'f was edited by hand: line 1 is "\ufffd", and was written as "{}"'),
    ],
)
def test_a_file_that_is_not_a_document_is_reported_by_its_line(
    found: bytes | None, written: bytes | None, said: str
) -> None:
    assert difference("f", found, written) == said
