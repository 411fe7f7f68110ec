"""Replaces a guard if commands run in another container: passes the command and its pipes to the runner there.

A separate program, started as `python -I -S remote_guard.py SOCKET MODE LIFE STATUS RULES ARGV…` in place of
`guard_program.py`, standard library only. It forwards the guard's reports to STATUS.
A runner that is away for long is an injury: this program ends without a report.
"""

import json
import os
import re
import socket
import sys
import time

WORDS = re.compile(
    rb"(?:starting|alive|ending|(?:unavailable|unconfined) [^\n]{0,200}"
    rb"|(?:started|exited|signalled|unstartable) [0-9]{1,10})\n"
)
PATIENCE_SECONDS = 30.0
"""How long a runner may take to restart."""


def main() -> None:
    """Pass the command on, and forward the reports on it."""
    mode, life, status = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    argv, rules = sys.argv[6:], sys.argv[5]
    command = {"mode": mode, "rules": rules, "argv": argv, "cwd": os.getcwd(), "env": dict(os.environ)}
    asked = json.dumps(command).encode()
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        runner = socket.socket(socket.AF_UNIX)
        try:
            runner.connect(sys.argv[1])
            break
        except OSError:
            runner.close()
            if time.monotonic() > until:
                sys.exit(1)
            time.sleep(0.1)
    with runner:
        socket.send_fds(runner, [len(asked).to_bytes(8, "big")], [0, 1, 2, life])
        runner.sendall(asked)
        nothing = os.open(os.devnull, os.O_RDWR)
        for pipe in (0, 1, 2, life):
            os.dup2(nothing, pipe)
        for line in runner.makefile("rb"):
            if WORDS.fullmatch(line):
                # The command is no process of this side, so this process stands for it.
                is_named = line.startswith(b"started ") and line != b"started 0\n"
                os.write(status, b"started %d\n" % os.getpid() if is_named else line)


if __name__ == "__main__":
    main()
