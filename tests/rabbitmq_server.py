"""A RabbitMQ of a test's own: on loopback, with its own port mapper, node, data and user, ended by its process ids."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import amqp
import pytest

from tests.ports import free_port

_START_SECONDS: Final = 60.0
_PACKAGED: Final = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
_OWN_USER: Final = "rabbitmq"


def server_script() -> Path:
    """The program behind Debian's wrapper, which insists on its own folders; skips the test at home, fails it in CI."""
    if _PACKAGED.exists() and shutil.which("epmd"):
        return _PACKAGED.resolve()
    if os.environ.get("CI"):
        pytest.fail("no rabbitmq-server here, and CI has to have one")
    pytest.skip("no rabbitmq-server here (Debian: apt install rabbitmq-server)")


class RabbitServer:
    """A RabbitMQ that can be killed and started again, with the same data."""

    def __init__(self, **settings: int) -> None:
        """`settings` are those of its application `rabbit` that differ from the usual."""
        self.folder = Path(tempfile.mkdtemp(prefix="fixloop-"))
        self._settings = settings
        self._ports = {name: free_port() for name in ("node", "distribution", "mapper")}
        self._mapper: subprocess.Popen[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._as_user = _user()
        if self._as_user:
            os.chown(self.folder, self._as_user["user"], self._as_user["group"])

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"amqp://guest:guest@127.0.0.1:{self._ports['node']}//"

    def start(self) -> "RabbitServer":
        """Return when it answers."""
        script = server_script()
        environment = self._environment()
        if self._mapper is None:
            address = ["-port", str(self._ports["mapper"]), "-address", "127.0.0.1"]
            self._mapper = self._run(["epmd", *address], environment)
        (self.folder / "pid").unlink(missing_ok=True)
        self._process = self._run([str(script)], environment)
        self._wait_until_it_answers(self._process)
        return self

    def signal(self, number: signal.Signals) -> None:
        """Stop, continue or kill it."""
        os.kill(int((self.folder / "pid").read_text()), number)
        if number is signal.SIGKILL:
            assert self._process is not None
            self._process.wait(_START_SECONDS)

    def end(self) -> None:
        """Kill it and remove its folder."""
        if self._process is not None:
            with contextlib.suppress(OSError, ValueError):
                self.signal(signal.SIGKILL)
            self._process.kill()
            self._process.wait(_START_SECONDS)
        if self._mapper is not None:
            self._mapper.kill()
            self._mapper.wait(_START_SECONDS)
        shutil.rmtree(self.folder, ignore_errors=True)

    def connect(self) -> Any:
        """A connection of the driver's, for a look at queues."""
        made = amqp.Connection(f"127.0.0.1:{self._ports['node']}", connect_timeout=2)
        made.connect()
        return made

    def said(self) -> str:
        """The end of its log."""
        return (self.folder / "log").read_text(errors="replace")[-3000:]

    def _run(self, command: list[str], environment: dict[str, str]) -> "subprocess.Popen[bytes]":
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                command,
                env=environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **self._as_user,
            )

    def _environment(self) -> dict[str, str]:
        configuration, advanced = self.folder / "rabbitmq.conf", self.folder / "advanced.config"
        configuration.write_text(f"listeners.tcp.1 = 127.0.0.1:{self._ports['node']}\n")
        told = ",".join(f"{{{name},{value}}}" for name, value in self._settings.items())
        advanced.write_text(f"[{{rabbit,[{told}]}}].\n")
        plugins = self.folder / "plugins"
        plugins.write_text("[].\n")
        return {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(self.folder),
            "ERL_EPMD_PORT": str(self._ports["mapper"]),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"{self.folder.name}@localhost",
            "RABBITMQ_DIST_PORT": str(self._ports["distribution"]),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.folder / "logs"),
            "RABBITMQ_PID_FILE": str(self.folder / "pid"),
            "RABBITMQ_CONFIG_FILE": str(configuration),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(advanced),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(plugins),
            "RABBITMQ_CONF_ENV_FILE": os.devnull,
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 -kernel inet_dist_use_interface {127,0,0,1}",
        }

    def _wait_until_it_answers(self, process: "subprocess.Popen[bytes]") -> None:
        give_up = time.monotonic() + _START_SECONDS
        while process.poll() is None and time.monotonic() < give_up:
            try:
                self.connect().close()
            except (OSError, amqp.AMQPError):
                time.sleep(0.1)
            else:
                return
        pytest.fail(f"rabbitmq-server did not start: {self.said()}")


def _user() -> dict[str, Any]:
    """Root lends it the user that its package made."""
    if os.geteuid() != 0:
        return {}
    try:
        found = pwd.getpwnam(_OWN_USER)
    except KeyError:
        return {}
    return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
