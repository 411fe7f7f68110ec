"""`fixloop hook`: the answer to an agent that wants to stop, and the hooks in its settings."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fixloop.outside.hook_dialects import DIALECTS, worded
from tests.fixtures.project import FIXLOOP, RIGHT, TOML, Project, environment, until

pytestmark = pytest.mark.slow

SLEEPS = "[specialist.security]\ncommand = \"sh -c 'echo >> {place}; sleep 60'\"\n"


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    return Project(tmp_path / "shop")


def call(project: Project) -> str:
    return json.dumps({"session_id": "s1", "cwd": str(project.folder), "stop_hook_active": False, "new": 1})


def hook(project: Project, *words: str, sent: str | None = None, role: str = "") -> dict[str, Any]:
    """What it answers: always with exit code 0, and with nothing else on its standard output."""
    told = project.fixloop("hook", *(words or ["claude"]), stdin=sent or call(project), FIXLOOP_ROLE=role)
    assert told.code == 0, told.err
    answer: dict[str, Any] = told.document
    return answer


def test_an_agent_is_made_to_continue_until_the_checks_pass(shop: Project) -> None:
    blocked = hook(shop)
    shop.write("calc.py", RIGHT)
    passed = hook(shop)

    assert blocked["decision"] == "block"
    assert "1 failure in 1 of 1 checks" in blocked["reason"]
    assert "F1 test_calc.py::adds (test_calc.py)" in blocked["reason"]
    assert passed == {"systemMessage": "fixloop: passed (1 check); 1 fixed; was 1"}


def test_every_dialect_is_answered_in_its_own_format(shop: Project) -> None:
    for name, dialect in DIALECTS.items():
        answer = hook(shop, name)

        assert answer.keys() == worded(dialect.block, "why").keys()
        assert "F1 test_calc.py::adds" in json.dumps(answer)


def test_a_session_that_changed_nothing_may_stop_at_once(shop: Project) -> None:
    assert hook(shop, "claude", "--start") == {}
    assert hook(shop) == {}
    assert not (shop.home / "cache/fixloop/checks").exists()

    shop.write("new.py", "\n")

    assert hook(shop)["decision"] == "block"


def test_an_agent_that_fails_alike_may_stop_and_a_person_is_told_until_checks_pass(shop: Project) -> None:
    answers = [hook(shop, "claude", "--alike", "2") for _ in range(3)]
    listed = shop.fixloop("inbox", "--json").document["items"]

    assert ["decision" in answer for answer in answers] == [True, False, False]
    assert "the same failures were found 2 times in a row" in answers[1]["systemMessage"]
    assert [(item["profile"], item["name"], item["waits_for"]) for item in listed] == [
        ("hook", "claude", "user")
    ]
    assert listed[0]["reason"].startswith("1 failure in 1 of 1 checks")
    shop.write("calc.py", RIGHT)
    assert shop.fixloop("check").code == 0
    assert shop.fixloop("inbox", "--json").document["items"] == []


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("[specialist", "fixloop.toml"),
        ('[specialist.test-runner]\ncommand = "no-such-tool"\n', "no-such-tool"),
    ],
)
def test_a_broken_configuration_or_a_missing_tool_never_stops_an_agent_from_ending(
    tmp_path: Path, toml: str, said: str
) -> None:
    answer = hook(Project(tmp_path / "shop", toml=toml))

    assert list(answer) == ["systemMessage"]
    assert answer["systemMessage"].startswith("fixloop could not check: ")
    assert said in answer["systemMessage"]


@pytest.mark.parametrize("sent", ["nothing", "[]", '{"cwd": "/no/such/folder"}'])
def test_unreadable_input_never_stops_an_agent_from_ending(shop: Project, sent: str) -> None:
    answer = hook(shop, sent=sent)

    assert list(answer) == ["systemMessage"]
    assert answer["systemMessage"].startswith("fixloop could not check: ")


def test_an_unwritable_session_never_stops_an_agent_from_ending(shop: Project) -> None:
    hook(shop)
    (place,) = (shop.home / "cache/fixloop/hooks").iterdir()
    sessions = place / "sessions"
    for path in sessions.iterdir():
        path.unlink()
    sessions.rmdir()
    sessions.write_text("no folder can be made here")

    answer = hook(shop)

    assert "decision" not in answer
    assert "could not check" in answer["systemMessage"]


def test_a_killed_check_never_stops_an_agent_from_ending(tmp_path: Path) -> None:
    place = tmp_path / "started"
    shop = Project(tmp_path / "shop", toml=SLEEPS.replace("{place}", str(place)))
    with subprocess.Popen(
        [FIXLOOP, "hook", "claude"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(shop.home),
        cwd=shop.folder,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(call(shop).encode())
        process.stdin.close()
        until(place.exists)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert len(children) == 1
        os.kill(int(children[0]), signal.SIGKILL)
        answer = json.loads(process.stdout.read())
        assert process.wait(60) == 0

    assert answer == {"systemMessage": "fixloop could not check: the check ended with exit code -9"}


def test_checks_that_take_too_long_are_left_out_and_named(tmp_path: Path) -> None:
    place = tmp_path / "started"
    shop = Project(tmp_path / "shop", toml=TOML + SLEEPS.replace("{place}", str(place)), calc=RIGHT)

    # The first time other checks may take most of it.
    told = [shop.fixloop("check", "--within", "10") for _ in range(2)]
    tried = len(place.read_text().splitlines())
    told.append(shop.fixloop("check", "--within", "10"))

    assert [each.code for each in told] == [3] * 3
    assert all(each.out.startswith("passed (1 check); not run within 10 s: security/sh") for each in told)
    assert max(each.seconds for each in told) < 40
    assert len(place.read_text().splitlines()) == tried


def test_the_hook_asks_nothing_of_a_workflow_s_own_agent(shop: Project) -> None:
    assert hook(shop, role="fixer") == {}


def test_the_hook_accepts_that_a_person_ended_the_turn(shop: Project) -> None:
    sent = {"conversation_id": "c", "status": "aborted", "workspace_roots": [str(shop.folder)]}

    assert hook(shop, "cursor", sent=json.dumps(sent)) == {}


def test_hooks_are_installed_shown_by_doctor_and_removed(shop: Project) -> None:
    before = '{\n  "model": "x",\n  "hooks": {\n    "Stop": [\n      {\n        "hooks": []\n      }\n    ]\n  }\n}\n'
    shop.write(".claude/settings.json", before)
    shop.write("AGENTS.md", "# Shop\n")

    dry = shop.fixloop("hook", "install", "--agent", "claude,copilot", "--dry")
    assert '+            "command": "fixloop hook claude --start",' in dry.out
    assert shop.read(".claude/settings.json") == before
    told = shop.fixloop("hook", "install", "--agent", "claude,copilot")

    assert told.code == 0
    settings = json.loads(shop.read(".claude/settings.json"))
    assert settings["model"] == "x"
    assert settings["hooks"]["Stop"][1]["hooks"][0]["command"] == "fixloop hook claude"
    assert "fixloop check" in shop.read("AGENTS.md")
    found = {each["name"]: each for each in shop.fixloop("doctor", "--json").document["findings"]}
    assert found["hook claude"]["ok"] is None
    assert "never run" in found["hook claude"]["detail"]
    hook(shop)
    found = {each["name"]: each for each in shop.fixloop("doctor", "--json").document["findings"]}
    assert found["hook claude"]["ok"] is True
    assert "told to go on: 1 failure" in found["hook claude"]["detail"]
    assert found["hook copilot"]["ok"] is None

    assert shop.fixloop("hook", "uninstall").code == 0
    assert shop.read(".claude/settings.json") == before
    assert shop.read("AGENTS.md") == "# Shop\n"
    assert not (shop.folder / ".github/hooks/fixloop.json").exists()


@pytest.mark.parametrize("settings", ["{ // mine\n}\n", "[]\n", '{"hooks": []}\n'])
def test_settings_that_cannot_be_read_are_left_as_they_are(shop: Project, settings: str) -> None:
    shop.write(".claude/settings.json", settings)

    told = shop.fixloop("hook", "install", "--agent", "codex,claude")

    assert told.code == 2
    assert "add the hook by hand" in told.refusal
    assert shop.read(".claude/settings.json") == settings
    assert not (shop.folder / ".codex").exists()


def test_an_agents_page_that_is_no_text_is_left_as_it_is(shop: Project) -> None:
    (shop.folder / "AGENTS.md").write_bytes(b"\xff\xfe")

    assert "AGENTS.md as text" in shop.fixloop("hook", "install", "--agent", "claude").refusal
    assert not (shop.folder / ".claude").exists()


def test_an_unknown_agent_is_refused(shop: Project) -> None:
    assert "choose from claude, codex" in shop.fixloop("hook", "install", "--agent", "bard").refusal


def test_hooks_are_not_written_through_a_link_out_of_the_project(shop: Project, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("# mine\n")
    (shop.folder / "AGENTS.md").symlink_to(tmp_path / "mine")

    told = shop.fixloop("hook", "install", "--agent", "claude")

    assert "outside the project" in told.refusal
    assert (tmp_path / "mine").read_text() == "# mine\n"
    assert not (shop.folder / ".claude").exists()
