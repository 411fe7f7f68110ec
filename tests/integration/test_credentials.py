"""Credentials are left to git: the user's helper provides them, and none is ever stored or shown."""

import base64
import os
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import pytest

from fixloop.errors import InfrastructureError
from fixloop.repository.publication import push
from fixloop.repository.snapshot import mirror_of, take_snapshot_of_url
from tests.fixtures.repositories import git, make_repository

pytestmark = pytest.mark.slow

SECRET = "t0k3n-3141592653"


class _Server(ThreadingHTTPServer):
    """Git over HTTP, with a password."""

    folder: Path
    asked: list[str]


class _Answers(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        """Pass the request on to git's own program, as a web server would."""
        expected = "Basic " + base64.b64encode(f"bot:{SECRET}".encode()).decode()
        self.server.asked.append(self.path)
        if self.headers["Authorization"] != expected:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.end_headers()
            return
        head, _, body = self._said_by_git().partition(b"\r\n\r\n")
        lines = [line.partition(": ")[::2] for line in head.decode().splitlines()]
        self.send_response(int(dict(lines).get("Status", "200").split()[0]))
        for name, value in lines:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """It is not read."""

    def _said_by_git(self) -> bytes:
        asked = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        variables = {
            "GIT_PROJECT_ROOT": str(self.server.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REMOTE_USER": "bot",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": asked.path,
            "QUERY_STRING": asked.query,
            "CONTENT_TYPE": self.headers.get("Content-Type") or "",
            "CONTENT_LENGTH": str(length),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding") or "",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol") or "",
        }
        done = subprocess.run(
            ["git", "http-backend"],
            env=os.environ | variables,
            input=self.rfile.read(length),
            capture_output=True,
            check=True,
        )
        return done.stdout


@pytest.fixture
def server(tmp_path: Path) -> Iterator[_Server]:
    exec_path = Path(
        subprocess.run(["git", "--exec-path"], capture_output=True, text=True, check=True).stdout.strip()
    )
    if not (exec_path / "git-http-backend").exists():
        pytest.skip("this git has no http-backend")
    make_repository(tmp_path / "shop", {"price": "wrong\n"})
    git(tmp_path, "clone", "-q", "--bare", "shop", "served/shop.git")
    running = _Server(("127.0.0.1", 0), _Answers)
    running.folder, running.asked = tmp_path / "served", []
    thread = Thread(target=running.serve_forever, args=(0.02,))
    thread.start()
    yield running
    running.shutdown()
    thread.join()
    running.server_close()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return folder


def url_of(server: _Server) -> str:
    return f"http://127.0.0.1:{server.server_port}/shop.git"


def test_a_credential_helper_serves_fetch_and_push_and_its_secret_is_not_stored(
    server: _Server, home: Path, tmp_path: Path
) -> None:
    (home / ".gitconfig").write_text("[credential]\n\thelper = store\n")
    (home / ".git-credentials").write_text(f"http://bot:{SECRET}@127.0.0.1:{server.server_port}\n")
    cache = tmp_path / "cache"

    taken = take_snapshot_of_url(url_of(server), issue=47, cache=cache)
    mirror = mirror_of(taken, cache)
    push(mirror, issue=47, tip=taken.commit, ours=())

    assert git(server.folder / "shop.git", "rev-parse", "fixloop/47") == taken.commit
    assert SECRET not in taken.model_dump_json()
    for file in filter(Path.is_file, cache.rglob("*")):
        assert SECRET.encode() not in file.read_bytes(), file


def test_without_a_credential_helper_nothing_prompts_and_one_sentence_says_so(
    server: _Server, home: Path, tmp_path: Path
) -> None:
    with pytest.raises(
        InfrastructureError, match=f"cannot fetch {url_of(server)} from .*: .*could not read Username"
    ):
        take_snapshot_of_url(url_of(server), issue=47, cache=tmp_path / "cache")


def test_a_token_that_a_rewrite_rule_puts_into_the_address_is_not_shown(
    server: _Server, home: Path, tmp_path: Path
) -> None:
    plain = f"http://127.0.0.1:{server.server_port}/"
    (home / ".gitconfig").write_text(
        f'[url "{plain.replace("//", f"//bot:{SECRET}x@")}"]\n\tinsteadOf = {plain}\n'
    )

    with pytest.raises(InfrastructureError) as refused:
        take_snapshot_of_url(url_of(server), issue=47, cache=tmp_path / "cache")

    assert SECRET not in str(refused.value)
    assert "127.0.0.1" in str(refused.value)
    assert server.asked
