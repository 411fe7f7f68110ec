"""What `fixloop backup` and `fixloop restore` cost, beside reading every key by DUMP in the same run.

Two Redis with the configuration we ship: the one that is backed up, and the one that it is restored into.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from redis import Redis

from bench import stage
from bench.serve import made

PROJECT: Final = "0a1b2c3d"
PROGRAM: Final = (
    "import resource, sys; from fixloop.cli import main; code = main(sys.argv[1:]); "
    "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024); sys.exit(code)"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workflows", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=2)
    options = parser.parse_args()
    with (
        TemporaryDirectory(prefix="backup-") as folder,
        stage.redis_server() as source,
        stage.redis_server() as target,
    ):
        made(source, options.workflows, options.workflows // 20)
        file = Path(folder) / "project.backup"
        for _ in range(options.turns):
            dumped(Redis.from_url(source))
            command(source, "backup", str(file), "--project", PROJECT)
            print(f"  {file.stat().st_size / 1e6:.2f} MB")
            Redis.from_url(target).flushall()
            command(target, "restore", str(file))
            command(target, "restore", str(file))


def dumped(client: Any) -> None:
    """Print the time and size of every key by DUMP."""
    began = time.perf_counter()
    sizes = [len(client.dump(name) or b"") for name in client.scan_iter(count=500)]
    seconds = time.perf_counter() - began
    print(f"DUMP of {len(sizes):,} keys: {seconds:.2f} s, {sum(sizes) / 1e6:.2f} MB")


def command(url: str, *words: str) -> None:
    """Print the time and peak memory of one command in a process of its own. Raises CalledProcessError: it failed."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        env=os.environ | {"FIXLOOP_STATE_URL": url},
        check=True,
        capture_output=True,
        text=True,
    )
    print(f"{words[0]}: {time.perf_counter() - began:.2f} s, peak {int(done.stdout)} MB")


if __name__ == "__main__":
    main()
