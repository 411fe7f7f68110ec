"""The schema of meta.yaml: a valid file, and each error with its line."""

import pytest

from fixloop.chat.meta import read_meta
from tests.fixtures.chat_stage import meta

OPTIONAL = {
    "closed": "'2025-09-07T00:00:00Z'",
    "non_goals": "[writing issues]",
    "gh": "{sync_mode: issue-dryrun, title_pattern: x, labels: [dx], issue_body_source: SUMMARY.md}",
    "ci_gates": "[meta-schema, pr-title]",
    "notes": "some",
}


@pytest.mark.proves("U5", "E4", "K18")
def test_a_contract_with_every_field_is_read() -> None:
    found = read_meta(meta(id="0005", **OPTIONAL))

    assert found.findings == ()
    assert found.meta is not None
    assert (found.meta.id, found.meta.directory) == ("0005", "0005-dx-gh-sync")
    assert (found.meta.area, found.meta.slug) == ("dx", "gh-sync")
    assert found.meta.gh is not None
    assert found.meta.gh.labels == ("dx",)


@pytest.mark.proves("U5", "E39")
@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("id", "5", "id is '5'; it has to be four digits"),
        ("id", "٠٠٠٥", "four digits"),
        ("slug", "GH-Sync", "slug is 'GH-Sync'"),
        ("title", "ab", "at least three characters"),
        ("owner", "none", "owner is 'none'; it has to be one of twin, architect, engineer"),
        ("state", "done", "one of open, review, merged, closed"),
        ("branch", "feat/dx-gh-sync", "such as 'feat/dx-gh-sync-0005'"),
        ("branch", "feat/dx-gh-sync-0005x", "such as"),
        ("created", "2025-09-06", "a date and time"),
        ("closed", "later", "a date and time"),
        ("scope", "everything", "scope is 'everything'; it has to be a list of texts"),
        ("scope", "[]", "a list of texts"),
        ("outputs", "['']", "outputs.0 is ''"),
        ("acceptance", "[{a: b}]", "acceptance.0 is"),
        ("gh", "{sync_mode: always}", "gh.sync_mode is 'always'; it has to be one of none"),
        ("gh", "{colour: red}", "gh.colour is no field of meta.yaml"),
        ("gh", "live", "gh is 'live'; it has to be a mapping"),
        ("notes", "[a]", "notes is"),
        ("surplus", "1", "surplus is no field of meta.yaml; remove it"),
        ("branch", "absent", "branch is missing"),
    ],
)
def test_each_error_is_named_with_field_and_line(field: str, value: str, words: str) -> None:
    text = meta(**{field: value})

    (found,) = read_meta(text).findings

    lines = [number for number, line in enumerate(text.split("\n"), 1) if line.startswith(f"{field}:")]
    assert words in found.message
    assert found.field.partition(".")[0] == field
    assert found.line == (lines or [1])[0]
