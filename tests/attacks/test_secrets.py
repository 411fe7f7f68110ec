"""Random secrets of every alphabet, in every encoding, through every channel: none is found anywhere afterwards."""

import json
import random
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from fixloop.store.redis_store import RedisStore
from tests.attacks.sizes import size
from tests.e2e.test_run import values_in
from tests.fixtures.project import MEND, Project, worker
from tests.fixtures.redis_server import RedisServer
from tests.unit.test_disguises import ALPHABETS, ENCODINGS

pytestmark = pytest.mark.slow

NAMES: Final = ("DEPLOY_TOKEN", "GH_PAT", "SSH_KEY", "MYSQL_PWD", "REGISTRY_AUTH", "AWS_SECRET_ACCESS_KEY")
#: Every output channel of a command: its streams, its report and the texts in that.
LEAK: Final = """\
import json, os, pathlib, sys
from xml.sax.saxutils import quoteattr
texts = json.loads(pathlib.Path({texts!r}).read_text())
print("begins", *texts, sep="\\n")
print(*reversed(texts), "ends", sep="\\n", file=sys.stderr)
if len(sys.argv) > 1:
    cases = "".join(
        f"<testcase classname={{quoteattr('t.' + text)}} name={{quoteattr(text)}} file={{quoteattr(text)}}>"
        f"<failure message={{quoteattr('is ' + text)}}>{{'calc.py:1: '}}&lt;![CDATA[{{quoteattr(text)[1:-1]}}</failure>"
        "</testcase>"
        for text in texts
    )
    report = f'<testsuite name="s" tests="{{len(texts)}}" failures="{{len(texts)}}">{{cases}}</testsuite>'
    report = "".join(letter if letter >= " " else "#x%02X" % ord(letter) for letter in report)
    pathlib.Path(sys.argv[1]).write_text(report)
elif "FIXLOOP_ANSWER" in os.environ:
    pathlib.Path("calc.py").write_text("# tried again\\n" + pathlib.Path("calc.py").read_text())
    sys.exit(0)
sys.exit(1)
"""
TOML: Final = """\
max_iterations = 2
[fixer]
command = "python leak.py"
[specialist.test-runner]
command = "python leak.py {junit}"
"""


def secrets(count: int, seed: int = 1) -> Iterator[str]:
    """As operators have them: no blank at either end, and no character that an environment cannot hold."""
    chance = random.Random(seed)
    while count:
        alphabet = chance.choice(ALPHABETS)
        secret = "".join(chance.choices(alphabet, k=chance.randint(8, 48))).strip()
        if len(secret) >= 8 and sum(map(str.isalnum, secret)) > 5:
            count -= 1
            yield chance.choice(["", "/", "~/"]) + secret


def everything_said(url: str, folder: Path) -> Iterator[str]:
    """All texts that are kept: of Redis' values every form, histories, states and artifacts unpacked, and each file."""
    for value in values_in(url):
        yield value.decode("utf-8", "replace")
    store = RedisStore(url)
    for workflow, _ in store.workflows():
        found = store.read(workflow)
        assert found is not None
        yield from texts_in(json.loads(found.snapshot))
        for entry in store.history(workflow):
            yield from texts_in(entry.body)
            for digest in sorted(set(digests_in(entry.body))):
                data = store.get_artifact(workflow, digest)
                if data is not None:
                    yield from texts_of(data, folder)
    store.close()
    for file in folder.rglob("*"):
        if file.is_file() and not file.is_symlink() and ".git" not in file.parts:
            yield file.read_text(errors="replace")


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts_in(inner)
    if isinstance(value, dict):
        yield from value


def digests_in(value: Any) -> Iterator[str]:
    return (text for text in texts_in(value) if len(text) == 64 and set(text) <= set("0123456789abcdef"))


def texts_of(data: bytes, folder: Path) -> Iterator[str]:
    """An artifact: text, JSON, or a bundle, every object of which is searched."""
    yield data.decode("utf-8", "replace")
    if data.startswith(b"{") or data.startswith(b"["):
        yield from texts_in(json.loads(data))
    if data.startswith(b"# v"):
        bundle, place = folder / "looked-at.bundle", next(folder.glob("*/.git")).parent
        bundle.write_bytes(data)
        subprocess.run(["git", "bundle", "unbundle", bundle], cwd=place, capture_output=True, check=False)
        listed = ["git", "cat-file", "--batch-all-objects", "--batch"]
        yield subprocess.run(listed, cwd=place, capture_output=True, check=True).stdout.decode(
            errors="replace"
        )


def found_in(texts: Iterable[str], wanted: dict[str, str]) -> list[str]:
    """Which of `wanted` are in any text, in any case; each once, with the text around it."""
    left, found = dict(wanted), []
    for text in texts:
        folded = text.lower()
        for name in [name for name, value in left.items() if value.lower() in folded]:
            at = folded.find(left.pop(name).lower())
            found.append(f"{name}: {text[max(at - 60, 0) : at + 40]!r}")
    return found


def test_no_secret_is_stored_whatever_prints_it(tmp_path: Path) -> None:
    chosen = dict(zip(NAMES, secrets(len(NAMES)), strict=True))
    several = list(secrets(size(2, 40), seed=2))
    variables = {
        f"{name}_{number}": f"{value}" for number, value in enumerate(several) for name in ("A_TOKEN",)
    }
    variables |= chosen
    encoded = {
        f"{name} {encoding}": made.strip("\"'")
        for name, value in variables.items()
        for encoding, encode in ENCODINGS.items()
        if len((made := encode(value)).strip("\"'")) >= 8
    }
    texts, place = tmp_path / "outside" / "texts.json", tmp_path / "kept"
    texts.parent.mkdir()
    texts.write_text(json.dumps([f"is {text} so" for text in encoded.values()]))
    server = RedisServer().start()
    try:
        project = Project(
            place / "shop",
            toml=TOML,
            files={"leak.py": LEAK.format(texts=str(texts))},
            variables={"FIXLOOP_STATE_URL": server.url},
        )
        with worker(place / "home", server.url, "-c", "1", log=place / "worker.log", **variables):
            told = project.submit()
        said = [told.out, told.err, project.log(), *(project.fixloop(*words).out for words in PAGES)]
        kept = [*everything_said(server.url, place), *said]
    finally:
        server.end()

    assert told.code == 3, told.err
    assert any("is *** so" in text for text in kept)
    assert found_in(kept, {**encoded, **variables}) == []


PAGES: Final = (
    ("log", "1", "--json"),
    ("status", "1"),
    ("status", "1", "--json"),
    ("report", "1"),
    ("inbox",),
)


FIXES: Final = {
    "content": 'printf "%s\\n" "$DEPLOY_TOKEN" >> calc.py',
    "base64": 'printf %s "$DEPLOY_TOKEN" | base64 > settings.txt',
    "name": 'touch "for-$DEPLOY_TOKEN.txt"',
    "known": "echo '# default-word' >> calc.py",
}


def test_a_fix_that_writes_a_secret_into_the_repository_is_refused(tmp_path: Path) -> None:
    """But not one that writes what the repository already has, secret or not."""
    secret, place, told = "aB3-dEf6+hIj9", tmp_path / "kept", {}
    toml = TOML.replace("python leak.py {junit}", "python check.py {junit}")
    toml = toml.replace('"python leak.py"', '["sh", "fix.sh"]\nenv = ["DEPLOY_TOKEN"]')
    allowed = {"DEPLOY_TOKEN": secret, "FIXLOOP_ALLOW_ENV": "DEPLOY_TOKEN", "DB_PASSWORD": "default-word"}
    server = RedisServer().start()
    try:
        with worker(place / "home", server.url, "-c", "2", log=place / "worker.log", **allowed):
            for issue, (name, fix) in enumerate(FIXES.items(), 1):
                project = Project(
                    place / name,
                    toml=toml,
                    files={"fix.sh": f"{MEND}\n{fix}\n", "compose.yml": "password: default-word\n"},
                    variables={"FIXLOOP_STATE_URL": server.url},
                )
                told[name] = (project.submit(issue=issue), project.log(issue))
        kept = [*everything_said(server.url, place), *(text for _, text in told.values())]
    finally:
        server.end()

    assert {name: done.code for name, (done, _) in told.items()} == {
        "content": 3,
        "base64": 3,
        "name": 3,
        "known": 0,
    }
    for name in ("content", "base64", "name"):
        assert "the change puts the value of DEPLOY_TOKEN into" in told[name][1]
    assert found_in(kept, {"it": secret, "its base64": ENCODINGS["base64"](secret)[:16]}) == []


def test_secrets_in_a_person_s_fix_and_answer_are_redacted_too(tmp_path: Path) -> None:
    """The diff, the answer, and its messages."""
    token, password = "ghp_" + "a1B2c3D4e5F6" * 3, "hunter2222"
    server = RedisServer().start()
    place = tmp_path / "kept"
    try:
        project = Project(
            place / "shop", toml='[specialist.test-runner]\ncommand = "python check.py {junit}"\n'
        )
        project.variables = {"FIXLOOP_STATE_URL": server.url, "SHOP_PASSWORD": password}
        with worker(place / "home", server.url, "-c", "1", log=place / "worker.log"):
            assert project.submit().code == 3
            # A key in the tree is the project's responsibility; no stored text repeats it.
            project.write("calc.py", f"def add(a, b):\n    return a - b\n\n\nKEY = '{token}'\n")
            told = project.fixloop("fixed", "1", "--here")
            assert project.fixloop("watch", "1").code == 3
            project.fixloop("fixed", "1", "--blocked", f"no way in with {password} nor {token}")
            project.fixloop("decide", "1", "abort", "--reason", f"{password} was changed")
        store = RedisStore(server.url)
        (workflow,) = [name for name, _ in store.workflows()]
        entries = [entry.body for entry in store.history(workflow)]
        kept = [text for entry in entries for text in texts_in(entry)]
        diffs = [store.get_artifact(workflow, digest) for entry in entries for digest in digests_in(entry)]
        store.close()
        said = [project.log(), *(project.fixloop(*words).out for words in PAGES)]
    finally:
        server.end()

    assert told.code == 0, told.err
    assert any("+KEY = '***'" in text for text in kept)
    plain = [data.decode(errors="replace") for data in diffs if data is not None]
    assert found_in([*kept, *said, *plain], {"token": token, "password": password}) == []
