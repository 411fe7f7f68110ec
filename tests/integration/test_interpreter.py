"""No editable install makes a check import the checkout."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fixloop.machine.interpreter_answers import importable_modules
from fixloop.machine.interpreters import Interpreter, choose_interpreter
from fixloop.repository.snapshot import mirror_of, take_snapshot
from tests.fixtures.repositories import make_repository, write
from tests.unit.test_interpreter import fake_venv
from workers.workspaces.environment import environment_for
from workers.workspaces.interpreter import import_roots, probe_imports
from workers.workspaces.workspace import Workspace, open_workspace

pytestmark = pytest.mark.slow

OWN = Interpreter(sys.executable, "", "PATH")

# What setuptools writes for an editable install without a plain path, and what others do in the first place.
FINDER = """
import importlib.util, sys
class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == "shop":
            return importlib.util.spec_from_file_location(
                name, {init!r}, submodule_search_locations=[{folder!r}])
sys.meta_path.{how}
"""


def make_venv(folder: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder


def site_packages(venv: Path) -> Path:
    return next((venv / "lib").glob("python*/site-packages"))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return make_repository(
        tmp_path / "shop", {"src/shop/__init__.py": "", "top.py": "", "tests/__init__.py": ""}
    )


@pytest.fixture
def workspace(checkout: Path, tmp_path: Path) -> Workspace:
    snapshot = take_snapshot(checkout, issue=1, cache=tmp_path / "cache")
    mirror = mirror_of(snapshot, tmp_path / "cache")
    return open_workspace(tmp_path / "cache", mirror, snapshot.commit, name="t.1")


def probe(workspace: Workspace, interpreter: Interpreter, cache: Path | None = None) -> str | None:
    variables = environment_for(workspace, interpreter) | {"PYTHONNOUSERSITE": "1"}
    return probe_imports(interpreter, workspace.directory, workspace.path, variables, cache=cache)


def test_a_clean_interpreter_takes_the_project_from_the_workspace(
    workspace: Workspace, tmp_path: Path
) -> None:
    venv = make_venv(tmp_path / "venv")

    assert probe(workspace, Interpreter(str(venv / "bin/python"), str(venv), "checkout")) is None


def test_an_editable_install_by_path_does_not_fool_a_check(workspace: Workspace, checkout: Path) -> None:
    venv = make_venv(checkout / ".venv")
    (site_packages(venv) / "__editable__.shop.pth").write_text(f"{checkout / 'src'}\n{checkout}\n")
    (checkout / "src/shop/__init__.py").write_text("raise SystemExit('the checkout was imported')\n")
    interpreter = choose_interpreter(made=None, source=checkout, subdirectory="", variables=os.environ)

    assert interpreter.origin == "checkout"
    assert probe(workspace, interpreter) is None
    env = environment_for(workspace, interpreter)
    done = subprocess.run(
        ["python", "-c", "import shop; print(shop.__file__)"], env=env, capture_output=True, check=True
    )
    assert done.stdout.decode().startswith(str(workspace.path))


@pytest.mark.parametrize("is_below", [False, True])
def test_packages_installed_editable_from_any_folder_come_from_the_workspace(
    tmp_path: Path, is_below: bool
) -> None:
    files = dict.fromkeys(
        ("lib/shop/__init__.py", "packages/a/src/alpha/__init__.py", "packages/b/beta.py"), ""
    )
    checkout = make_repository(tmp_path / "shop", files)
    venv = make_venv(checkout / ".venv")
    finder = FINDER.format(init=f"{checkout}/packages/b/beta.py", folder="", how="append(Finder)")
    editable = {
        "shop.pth": f"{checkout}/lib\n",
        "_alpha.pth": f"{checkout}/packages/a/src\n",
        "__editable___beta_finder.py": finder.replace('"shop"', '"beta"'),
        "__editable__.beta.pth": "import __editable___beta_finder\n",
    }
    write(site_packages(venv), editable)
    place = checkout / "packages/b" if is_below else checkout
    snapshot = take_snapshot(place, issue=1, cache=tmp_path / "cache")
    mirror = mirror_of(snapshot, tmp_path / "cache")
    workspace = open_workspace(
        tmp_path / "cache", mirror, snapshot.commit, name="t.1", subdirectory=snapshot.subdirectory
    )
    interpreter = choose_interpreter(made=None, source=checkout, subdirectory="", variables=os.environ)

    assert probe(workspace, interpreter) is None
    env = environment_for(workspace, interpreter)
    asked = "import shop, alpha, beta; print(*(each.__file__ for each in (shop, alpha, beta)))"
    done = subprocess.run(["python", "-c", asked], env=env, capture_output=True, check=True, cwd="/")
    assert done.stdout.decode().split() == [str(workspace.path / file) for file in files]


def test_an_environment_with_a_path_file_that_cannot_be_read_stops_no_check(
    workspace: Workspace, tmp_path: Path
) -> None:
    venv = make_venv(tmp_path / "venv")
    (site_packages(venv) / "gone.pth").symlink_to(tmp_path / "nowhere")
    os.mkfifo(site_packages(venv) / "pipe.pth")
    interpreter = Interpreter(str(venv / "bin/python"), str(venv), "checkout")

    assert workspace.directory in import_roots(interpreter, workspace.directory, workspace.path)


@pytest.mark.parametrize("place", ["site-packages", "dist-packages"])
def test_a_package_installed_editable_without_an_environment_comes_from_the_workspace(
    workspace: Workspace, checkout: Path, tmp_path: Path, place: str
) -> None:
    write(tmp_path / "usr", {"bin/python": "", f"lib/python3.11/{place}/tool.pth": f"{checkout}/lib\n"})
    (workspace.path / "lib").mkdir()

    interpreter = Interpreter(str(tmp_path / "usr/bin/python"), "", "PATH")

    assert import_roots(interpreter, workspace.directory, workspace.path)[-1] == workspace.path / "lib"


@pytest.mark.parametrize(("how", "is_fooled"), [("append(Finder)", False), ("insert(0, Finder)", True)])
def test_an_import_hook_that_wins_over_the_workspace_is_an_error_with_both_paths(
    workspace: Workspace, checkout: Path, how: str, is_fooled: bool
) -> None:
    venv = make_venv(checkout / ".venv")
    inside = checkout / "src/shop"
    write(
        site_packages(venv),
        {
            "__editable___shop_finder.py": FINDER.format(
                init=str(inside / "__init__.py"), folder=str(inside), how=how
            ),
            "__editable__.shop.pth": "import __editable___shop_finder\n",
        },
    )
    (inside / "__init__.py").write_text("raise SystemExit('the checkout was imported')\n")
    interpreter = choose_interpreter(made=None, source=checkout, subdirectory="", variables=os.environ)

    problem = probe(workspace, interpreter)

    if is_fooled:
        assert problem is not None
        assert str(inside) in problem
        assert str(workspace.path / "src/shop") in problem
        assert "\n" not in problem
    else:
        assert problem is None


def test_an_installed_copy_that_wins_over_the_workspace_is_not_called_editable(
    workspace: Workspace, tmp_path: Path
) -> None:
    venv = make_venv(tmp_path / "venv")
    place = site_packages(venv) / "shop/__init__.py"
    # As for a namespace that several distributions share: the module is there when Python has started.
    start = f"import sys, importlib.util as u; s = u.spec_from_file_location('shop', {str(place)!r}); "
    write(
        site_packages(venv),
        {"shop/__init__.py": "", "nspkg.pth": f"{start}sys.modules['shop'] = u.module_from_spec(s)\n"},
    )

    problem = probe(workspace, Interpreter(str(venv / "bin/python"), str(venv), "checkout"))

    assert problem is not None
    assert "an installed copy wins there; uninstall it, or name a [workspace] setup" in problem
    assert "editable" not in problem


def test_a_program_and_a_package_in_the_root_folder_itself_are_no_modules(
    workspace: Workspace, checkout: Path, tmp_path: Path
) -> None:
    write(workspace.path, {"__main__.py": "raise SystemExit('run')\n", "__init__.py": ""})
    venv = make_venv(tmp_path / "venv")
    interpreter = Interpreter(str(venv / "bin/python"), str(venv), "checkout")

    assert probe(workspace, interpreter) is None


def test_namespace_packages_are_checked_too(workspace: Workspace, checkout: Path, tmp_path: Path) -> None:
    write(workspace.path, {"src/team/tool/__init__.py": "raise SystemExit('imported')\n"})
    venv = make_venv(tmp_path / "venv")
    interpreter = Interpreter(str(venv / "bin/python"), str(venv), "checkout")
    assert probe(workspace, interpreter) is None

    write(
        site_packages(venv), {"team/__init__.py": "", "team/tool/__init__.py": "", "a.pth": "import team\n"}
    )

    problem = probe(workspace, interpreter)
    assert problem is not None
    assert "imports team.tool from" in problem


def test_an_interpreter_that_does_not_run_is_one_sentence(workspace: Workspace, tmp_path: Path) -> None:
    broken = fake_venv(tmp_path / "v")

    assert "does not run" in str(probe(workspace, Interpreter(str(tmp_path / "absent"), "", "PATH")))
    assert "cannot say where" in str(probe(workspace, Interpreter(str(broken / "bin/python"), "", "PATH")))


def test_a_project_without_python_needs_no_interpreter(workspace: Workspace) -> None:
    assert probe(workspace, Interpreter("", "", "none")) is None


def test_an_editable_install_after_the_first_check_is_noticed(workspace: Workspace, tmp_path: Path) -> None:
    venv, elsewhere = make_venv(tmp_path / "venv"), tmp_path / "elsewhere/shop"
    interpreter = Interpreter(str(venv / "bin/python"), str(venv), "checkout")
    assert probe(workspace, interpreter, tmp_path / "cache") is None

    finder = FINDER.format(
        init=str(elsewhere / "__init__.py"), folder=str(elsewhere), how="insert(0, Finder)"
    )
    write(elsewhere.parent, {"shop/__init__.py": ""})
    write(site_packages(venv), {"finder.py": finder, "finder.pth": "import finder\n"})

    assert f"from {elsewhere}" in str(probe(workspace, interpreter, tmp_path / "cache"))


def test_an_interpreter_that_answered_is_not_started_again_for_the_same_packages(
    workspace: Workspace, tmp_path: Path
) -> None:
    venv = make_venv(tmp_path / "venv")
    interpreter = Interpreter(str(venv / "bin/python"), str(venv), "checkout")
    assert probe(workspace, interpreter, tmp_path / "cache") is None
    kept = list((tmp_path / "cache/interpreters").iterdir())
    for each in kept:
        each.write_text(f"{each.read_text()} ")

    assert probe(workspace, interpreter, tmp_path / "cache") is None
    (workspace.path / "new.py").touch()
    assert probe(workspace, interpreter, tmp_path / "cache") is None
    assert [each.read_text().endswith(" ") for each in (tmp_path / "cache/interpreters").iterdir()].count(
        True
    ) == 1
    assert len(kept) == 1


def test_an_interpreter_that_runs_code_of_the_project_is_asked_each_time(
    workspace: Workspace, tmp_path: Path
) -> None:
    venv = make_venv(tmp_path / "venv")
    interpreter = Interpreter(str(venv / "bin/python"), str(venv), "checkout")
    write(workspace.path, {"src/sitecustomize.py": ""})

    assert probe(workspace, interpreter, tmp_path / "cache") is None
    write(workspace.path, {"src/sitecustomize.py": "import sys; sys.path[:] = []\n"})
    assert "cannot say" in str(probe(workspace, interpreter, tmp_path / "cache"))


def test_a_tool_is_found_after_it_was_installed(workspace: Workspace, tmp_path: Path) -> None:
    venv = make_venv(tmp_path / "venv")
    interpreter = Interpreter(str(venv / "bin/python"), str(venv), "checkout")
    assert importable_modules(interpreter, workspace.path, ["pytest", "json"]) == {"json"}

    write(site_packages(venv), {"pytest/__init__.py": ""})
    assert importable_modules(interpreter, workspace.path, ["pytest", "json"]) == {"json", "pytest"}

    (site_packages(venv) / "pytest/__init__.py").unlink()
    assert importable_modules(interpreter, workspace.path, ["pytest", "json"]) == {"json"}
    write(workspace.path, {"src/pytest.py": ""})
    assert importable_modules(interpreter, workspace.path, ["pytest", "json"]) == {"json", "pytest"}


def test_modules_are_found_from_a_relative_folder_of_a_checkout_in_the_shared_tmp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv = make_venv(tmp_path / ".venv")
    interpreter = Interpreter(str(venv / "bin/python"), str(venv), "checkout")
    monkeypatch.chdir(tmp_path)

    assert importable_modules(interpreter, Path(), ["json", "absent"]) == {"json"}


def test_looking_for_modules_runs_no_file_of_the_project(workspace: Workspace, tmp_path: Path) -> None:
    planted = f"open({str(tmp_path / 'ran')!r}, 'w')\n"
    write(workspace.path, {"json.py": planted, "importlib/__init__.py": planted, "src/json.py": planted})
    venv = make_venv(tmp_path / "venv")

    for each in (Interpreter(str(venv / "bin/python"), str(venv), "checkout"), OWN):
        assert importable_modules(each, workspace.path, ["json", "absent"]) == {"json"}
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "said", ["[1]", '{"shop": 5}', '{"shop": [5, ""]}', '{"shop": ["/a\\u0000", ""]}', "{}"]
)
def test_an_answer_that_the_project_made_up_is_one_sentence_and_is_not_remembered(
    workspace: Workspace, tmp_path: Path, said: str
) -> None:
    venv = make_venv(tmp_path / "venv")
    interpreter = Interpreter(str(venv / "bin/python"), str(venv), "checkout")
    write(workspace.path, {"src/json.py": f"import os\nprint({said!r}, flush=True)\nos._exit(0)\n"})

    assert "cannot say where it imports from" in str(probe(workspace, interpreter, tmp_path / "cache"))

    (workspace.path / "src/json.py").unlink()
    assert probe(workspace, interpreter, tmp_path / "cache") is None


@pytest.mark.parametrize("left", [b"", b"\0\0", b"\xff"])
def test_an_answer_that_a_power_loss_emptied_is_asked_for_again(
    workspace: Workspace, tmp_path: Path, left: bytes
) -> None:
    venv = make_venv(tmp_path / "venv")
    interpreter = Interpreter(str(venv / "bin/python"), str(venv), "checkout")
    assert probe(workspace, interpreter, tmp_path / "cache") is None
    [file] = (tmp_path / "cache/interpreters").iterdir()
    answer = file.read_bytes()
    file.write_bytes(left)

    assert probe(workspace, interpreter, tmp_path / "cache") is None
    assert file.read_bytes() == answer


def test_an_answer_is_not_remembered_if_the_environment_starts_a_module_of_the_project(
    workspace: Workspace, tmp_path: Path
) -> None:
    venv = make_venv(tmp_path / "venv")
    interpreter = Interpreter(str(venv / "bin/python"), str(venv), "checkout")
    write(
        site_packages(venv), {"hook.pth": "import hook\n", "hook.py": "", "shop.pth": "/home/me/shop/src\n"}
    )
    lies = json.dumps({"shop": [str(workspace.path / "elsewhere"), ""], "top": ["", "no"]})
    write(workspace.path, {"src/hook.py": f"import os\nos.write(1, {lies!r}.encode())\nos._exit(0)\n"})
    forged = probe(workspace, interpreter, tmp_path / "cache")

    (workspace.path / "src/hook.py").unlink()

    assert forged is not None
    assert probe(workspace, interpreter, tmp_path / "cache") is None
