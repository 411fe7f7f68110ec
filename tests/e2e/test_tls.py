"""Redis with TLS, its own user and certificates on both sides: for state, messages, mailboxes and Flower."""

import base64
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from fixloop.cli import main
from fixloop.commands.doctor import examine
from fixloop.errors import InfrastructureError
from fixloop.outside.mailbox import Mailboxes
from fixloop.servers.settings import RedisUrls, load_settings
from fixloop.store.redis_store import RedisStore
from tests.contract.test_mailboxes import PROJECT, issues, letter
from tests.e2e.certificates import Certificates, make_certificates
from tests.fixtures.deployment import Deployment, wait_until
from tests.fixtures.ports import free_port
from tests.fixtures.redis_server import RedisServer, needs_tls

pytestmark = pytest.mark.slow

PASSWORD: Final = "pa:ss@w/rd"
QUOTED: Final = "pa%3Ass%40w%2Frd"
RIGHTS: Final = ("~*", "&*", "+@all", "-@admin", "-@dangerous", "+info")
"""What docs/operations.md says that the user needs."""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def port(certificates: Certificates) -> Iterator[int]:
    needs_tls()
    chosen = free_port()
    server = RedisServer(
        *("--tls-port", str(chosen), "--bind", "127.0.0.1"),
        *("--tls-cert-file", str(certificates.server.cert)),
        *("--tls-key-file", str(certificates.server.key)),
        *("--tls-ca-cert-file", str(certificates.authority)),
        *("--user", "default", "off"),
        *("--user", "fixloop", "on", f">{PASSWORD}", *RIGHTS),
    )
    try:
        server.start()
        yield chosen
    finally:
        server.end()


@pytest.fixture
def named(port: int, certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> str:
    """The variables of a deployment that may use it; its URL."""
    url = f"rediss://fixloop:{QUOTED}@localhost:{port}/0"
    monkeypatch.setenv("FIXLOOP_STATE_URL", url)
    monkeypatch.setenv("FIXLOOP_TLS_CA", str(certificates.authority))
    monkeypatch.setenv("FIXLOOP_TLS_CERT", str(certificates.client.cert))
    monkeypatch.setenv("FIXLOOP_TLS_KEY", str(certificates.client.key))
    return url


def urls() -> RedisUrls:
    found = load_settings().urls()
    assert found is not None
    return found


def test_a_loop_passes_over_tls_and_no_log_has_the_password(named: str, tmp_path: Path) -> None:
    own = Deployment(urls().state, tmp_path, FIXLOOP_STATE_URL=named, FIXLOOP_TASK_EVENTS="1")
    own.environment["FIXLOOP_BROKER_URL"] = ""  # the state's, completed by the worker itself
    page, port = "", free_port()
    flower = subprocess.Popen(
        [sys.executable, "-m", "fixloop.cli", "flower", "--port", str(port)],
        env=os.environ | {"FIXLOOP_FLOWER_AUTH": "me:secret"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=tmp_path,
    )
    try:
        own.start()
        wait_until(lambda: shown(port, "/broker") != "", seconds=60)
        started = own.begin("a -")
        own.finished(started.workflow)
        wait_until(lambda: started.workflow in shown(port, "/api/tasks"), seconds=60)
        page = shown(port, "/broker")
        assert own.story(started.workflow).statuses
        own.stop()
    finally:
        flower.send_signal(signal.SIGTERM)
        said = flower.communicate(timeout=90)[0].decode()
        own.end()

    assert re.search(r"rediss://fixloop:\*+@localhost", page)
    for told in (page, said, own.log()):
        assert PASSWORD not in told
        assert QUOTED not in told


def test_mailboxes_and_doctor_use_the_same_certificates(
    named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mailboxes = Mailboxes(urls().broker)
    mailboxes.put("coder", letter(1), 3)
    assert issues(mailboxes, PROJECT) == [1]
    mailboxes.close()

    found = {finding.name: finding for finding in examine(load_settings(), tmp_path)}

    assert found["redis"].ok
    assert f"fixloop:***@{named.partition('@')[2]}" in found["redis"].detail
    main(["doctor"])
    said = capsys.readouterr()
    assert "***" in said.out
    assert PASSWORD not in said.out + said.err
    assert QUOTED not in said.out + said.err


@pytest.mark.parametrize("store", [True, False], ids=["state", "broker"])
def test_a_certificate_problem_is_one_sentence_with_its_remedy(
    store: bool, named: str, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(url: str = named, **variables: Path | None) -> str:
        with monkeypatch.context() as changed:
            changed.setenv("FIXLOOP_STATE_URL", url)
            for name, value in variables.items():
                changed.setenv(f"FIXLOOP_{name}".upper(), str(value or ""))
            with pytest.raises(InfrastructureError) as caught:
                RedisStore(urls().state).ping() if store else Mailboxes(urls().broker).take(PROJECT, "coder")
        said = str(caught.value)
        assert "\n" not in said
        assert PASSWORD not in said
        assert QUOTED not in said
        return said

    assert re.search("certificate is refused.*FIXLOOP_TLS_CA", refused(tls_ca=certificates.other_authority))
    assert re.search("certificate is refused.*FIXLOOP_TLS_CA", refused(tls_ca=None))
    assert re.search("mismatch.*a host name that stands in", refused(named.replace("localhost", "127.0.0.1")))
    assert re.search(
        "certificate.*name a certificate that it accepts in FIXLOOP_TLS_CERT",
        refused(tls_cert=None, tls_key=None),
    )


def test_a_command_ends_with_exit_code_4(
    named: str,
    certificates: Certificates,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FIXLOOP_TLS_CA", str(certificates.other_authority))

    assert main(["status"]) == 4

    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "its certificate is refused" in said
    assert PASSWORD not in said


def shown(port: int, place: str) -> str:
    """A page of Flower, empty while there is no answer."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{place}")
    request.add_header("Authorization", f"Basic {base64.b64encode(b'me:secret').decode()}")
    try:
        with urllib.request.urlopen(request, timeout=90) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""
