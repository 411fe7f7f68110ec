"""What a supervisor says of a process that ended by itself."""

import pytest

from fixloop.testing.processes import comes
from workers.processes.child import Child

pytestmark = pytest.mark.slow


def test_a_process_that_exits_by_itself_is_reported_with_its_last_line(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    child = Child("no-such-role", {})
    assert comes(child.tend), "it did not end"

    assert child.part.last_death == "exit code 1: KeyError: 'no-such-role'"
    assert child.part.heard_at is None
    assert (
        "no-such-role ended (exit code 1: KeyError: 'no-such-role'); it is started again in 0.1 s"
        in caplog.text
    )
    child.cut()
    assert "Traceback" in capfd.readouterr().err
