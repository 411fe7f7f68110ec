"""The program `fixloop`: what takes longest to load is loaded by two processes at once."""

import sys


def main() -> int:
    """Call the command line, see `fixloop.cli`; returns the exit code."""
    words = sys.argv[1:]
    if words[:1] == ["run"] and not {"-h", "--help", "--dry"}.intersection(words):
        from fixloop.machine.attached import start_waiting

        start_waiting()
    from fixloop.cli import main as command_line

    return command_line()


if __name__ == "__main__":
    sys.exit(main())
