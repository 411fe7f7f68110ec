"""Which interpreter is chosen."""

import os
import sys
from functools import partial
from pathlib import Path

import pytest

from fixloop.machine.interpreter_answers import remembered
from fixloop.machine.interpreters import Interpreter, choose_interpreter
from tests.fixtures.repositories import write


def choose(
    *, made: Path | None = None, source: Path | None = None, active: str = "", path: str = ""
) -> Interpreter:
    return choose_interpreter(
        made=made, source=source, subdirectory="sub", variables={"VIRTUAL_ENV": active, "PATH": path}
    )


def fake_venv(folder: Path) -> Path:
    write(folder, {"pyvenv.cfg": "", "bin/python": "#!/bin/sh\n"})
    (folder / "bin/python").chmod(0o755)
    return folder


def test_the_order_is_setup_checkout_virtual_env_path(tmp_path: Path) -> None:
    made, source, active = tmp_path / "made", tmp_path / "source", fake_venv(tmp_path / "active")
    fake_venv(made / ".venv")
    fake_venv(source / "venv")
    program = fake_venv(tmp_path / "system") / "bin"
    choose_with = partial(choose, active=str(active), path=str(program))

    assert choose_with(made=made, source=source).prefix == str(made / ".venv")
    assert choose_with(source=source).prefix == str(source / "venv")
    fake_venv(source / "sub/.venv")
    assert choose_with(source=source) == Interpreter(
        str(source / "sub/.venv/bin/python"), str(source / "sub/.venv"), "checkout"
    )
    assert choose_with(source=tmp_path).origin == "VIRTUAL_ENV"
    assert choose(source=tmp_path, path=str(program)) == Interpreter(str(program / "python"), "", "PATH")
    assert choose(source=None).origin == "none"


def test_the_only_environment_in_a_folder_comes_after_an_active_one(tmp_path: Path) -> None:
    active, program = fake_venv(tmp_path / "active"), fake_venv(tmp_path / "system") / "bin"
    source = tmp_path / "source"
    below = fake_venv(source / "backend/.venv")
    choose_with = partial(choose, source=source, path=str(program))

    assert choose_with(active=str(active)).origin == "VIRTUAL_ENV"
    assert choose_with() == Interpreter(f"{below}/bin/python", str(below), "checkout")
    fake_venv(source / "tools/venv")
    assert choose_with().origin == "PATH"


def test_the_environment_that_pre_commit_made_for_fixloop_is_not_the_projects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks, program = fake_venv(tmp_path / "hooks"), tmp_path / "bin"
    write(program, {"python": "#!/bin/sh\n"})
    (program / "python").chmod(0o755)
    monkeypatch.setattr(sys, "prefix", str(hooks))
    variables = {"VIRTUAL_ENV": str(hooks), "PATH": f"{hooks}/bin:{program}"}

    def chosen(**more: str) -> str:
        given = variables | more
        return choose_interpreter(made=None, source=None, subdirectory="", variables=given).path

    assert chosen() == f"{hooks}/bin/python"
    assert chosen(PRE_COMMIT="1") == f"{program}/python"


def test_a_broken_venv_is_ignored(tmp_path: Path) -> None:
    fake_venv(tmp_path / ".venv")
    (tmp_path / ".venv/bin/python").unlink()
    (tmp_path / ".venv/bin/python").symlink_to("/nowhere")

    assert choose(source=tmp_path).origin == "none"


def test_the_environment_of_fixloop_itself_is_not_taken_from_the_path(tmp_path: Path) -> None:
    own, system = Path(sys.prefix) / "bin", fake_venv(tmp_path / "system") / "bin"

    assert choose(path=f"{own}{os.pathsep}{system}").path == str(system / "python")
    assert choose(path=str(own)).origin == "none"
    assert choose(active=sys.prefix, path=str(own)).path == str(own / "python")


def test_the_interpreter_behind_a_version_manager_is_chosen_for_the_folder(tmp_path: Path) -> None:
    one, other = fake_venv(tmp_path / "one") / "bin/python", fake_venv(tmp_path / "other") / "bin/python"
    shim = f"#!/bin/sh\ntest -f .python-version && echo {other} || echo {one}\n"
    write(tmp_path, {"shims/python": shim, "project/sub/.python-version": "", "plain/sub/a.py": ""})
    (tmp_path / "shims/python").chmod(0o755)
    path = f"{tmp_path}/shims:/usr/bin:/bin"

    assert choose(source=tmp_path / "plain", path=path) == Interpreter(str(one), "", "PATH")
    assert choose(source=tmp_path / "project", path=path).path == str(other)


@pytest.mark.parametrize(
    ("said", "variable", "found"),
    [
        ("3.12.1\n", "", "versions/3.12.1/bin/python"),
        ("3.12.1\n", "3.9.2", "versions/3.9.2/bin/python"),
        # Only pyenv knows which one of these has the program, and what else a file may hold.
        ("3.12.1 3.9.2", "", "shims/python"),
        ("3.12", "", "shims/python"),
        # pyenv refuses a path.
        ("../versions/3.12.1", "", "shims/python"),
        ("", "", "shims/python"),
    ],
)
def test_pyenv_s_interpreter_is_known_if_one_full_version_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, variable: str, found: str
) -> None:
    monkeypatch.setenv("PYENV_VERSION", variable)
    programs = ("shims/python", "versions/3.12.1/bin/python", "versions/3.9.2/bin/python")
    write(
        tmp_path, dict.fromkeys(programs, "#!/bin/sh\nexit 1\n") | {"a/.python-version": said, "a/b/c.py": ""}
    )
    for name in programs:
        (tmp_path / name).chmod(0o755)

    assert choose(source=tmp_path / "a/b", path=f"{tmp_path}/shims").path == f"{tmp_path}/{found}"


def test_a_version_file_that_is_no_text_is_left_to_the_shim(tmp_path: Path) -> None:
    write(tmp_path, {"shims/python": "#!/bin/sh\nexit 1\n", "a/b.py": ""})
    (tmp_path / "shims/python").chmod(0o755)
    (tmp_path / "a/.python-version").write_bytes(b"\xff\xfe3\x00")

    assert choose(source=tmp_path / "a", path=f"{tmp_path}/shims").path == f"{tmp_path}/shims/python"


def test_a_shim_that_starts_no_interpreter_is_chosen_itself(tmp_path: Path) -> None:
    write(tmp_path, {"shims/python": "#!/bin/sh\necho no version is set >&2; exit 127\n", "sub/a.py": ""})
    (tmp_path / "shims/python").chmod(0o755)

    assert choose(source=tmp_path, path=f"{tmp_path}/shims").path == f"{tmp_path}/shims/python"


@pytest.mark.parametrize("is_own", [True, False])
def test_only_an_environment_without_the_systems_packages_is_remembered(tmp_path: Path, is_own: bool) -> None:
    venv = fake_venv(tmp_path / "venv")
    write(venv, {"pyvenv.cfg": f"include-system-site-packages = {'false' if is_own else 'true'}\n"})
    interpreter, answers = Interpreter(str(venv / "bin/python"), str(venv), "checkout"), iter(["[1]", "[2]"])

    first, second = (
        remembered(tmp_path / "cache", interpreter, "where?", lambda: next(answers)) for _ in range(2)
    )

    assert (first, second) == ("[1]", "[1]" if is_own else "[2]")


def test_answers_do_not_accumulate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    venv = fake_venv(tmp_path / "venv")
    write(venv, {"pyvenv.cfg": "include-system-site-packages = false\n"})
    monkeypatch.setattr("fixloop.machine.interpreter_answers.MOST", 3)
    for number in range(10):
        interpreter = Interpreter(str(venv / "bin/python"), str(venv), "checkout")
        remembered(tmp_path / "cache", interpreter, number, lambda: "[]")

    assert len(list((tmp_path / "cache/interpreters").iterdir())) <= 3
