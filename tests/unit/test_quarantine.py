"""Which tests may fail by chance, and until when."""

from datetime import date
from pathlib import Path

import pytest

from fixloop.configuration.loader import load_configuration
from fixloop.errors import UsageError
from tests.fixtures.configuration_project import written
from workers.commands.flakes import quarantine_of

TEST = "tests/test_net.py::test_retry[a b]"


@pytest.mark.parametrize("pattern", [TEST, "tests/test_net.py::test_retry", "tests/test_net.py::*"])
def test_an_entry_means_a_test_its_parameters_or_a_pattern(pattern: str) -> None:
    assert quarantine_of(TEST, [f"{pattern} ann 2027-01-31"], date(2027, 1, 31)) == (
        "in quarantine until 2027-01-31, ann"
    )


def test_a_quarantine_ends_after_its_last_day() -> None:
    assert quarantine_of(TEST, [f"{TEST} ann 2027-01-31"], date(2027, 2, 1)) == ""


def test_another_test_is_in_no_quarantine() -> None:
    assert quarantine_of(TEST, ["tests/test_net.py::test_ret ann 2027-01-31"], date(2027, 1, 1)) == ""


@pytest.mark.parametrize(
    "entry", ["tests/test_net.py::test_retry", "test_retry ann 2027-02-30", "ann 2027-01-31"]
)
def test_an_entry_without_a_test_an_owner_or_a_day_is_refused(tmp_path: Path, entry: str) -> None:
    text = f"[specialist.test-runner]\ncommand = 'make test'\n[integrity]\nquarantine = ['{entry}']\n"

    with pytest.raises(UsageError, match="who mends it, and the last day"):
        load_configuration(written(tmp_path, {"fixloop.toml": text}))
