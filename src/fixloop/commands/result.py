"""What came of following a workflow: its last lines on stdout, and the exit code."""

from fixloop.commands.exit_codes import ExitCode
from fixloop.commands.screen import print_lines
from fixloop.commands.session import Seen


def print_result(seen: Seen) -> ExitCode:
    """The reason, the failures and the commands where a person has to act; returns what to exit with."""
    print_lines(*seen.view.result(seen.state))
    return seen.standing.exit_code
