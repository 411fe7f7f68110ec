"""What a whole run confines by default."""

from pathlib import Path

import pytest

from fixloop.machine.sandbox import means_in_use
from tests.fixtures.project import TOML, Project

pytestmark = pytest.mark.slow

PLANTS = "[fixer]\ncommand = \"sh -c 'sed -i s/-/+/ calc.py && touch ~/planted'\"\n"


def test_a_fixer_s_writes_elsewhere_are_refused_and_explained_by_default(tmp_path: Path) -> None:
    means = means_in_use()
    if means.name == "none":
        pytest.skip(f"no sandbox here: {means.reason}")
    kept = {"FIXLOOP_SANDBOX_WRITABLE": ""}
    confined = Project(tmp_path / "one" / "shop", toml=PLANTS + TOML, variables=kept)
    free = Project(tmp_path / "two" / "shop", toml=f'{PLANTS}[sandbox]\nmode = "off"\n{TOML}', variables=kept)

    told, other = confined.run(), free.run()

    assert told.code == 3, told.out
    assert f"{means.name} keeps it to its workspace, and `[sandbox] writable`," in confined.log()
    assert f"sandbox {means.name}" in confined.log()
    assert not (confined.home / "planted").exists()
    assert other.code == 0, other.out
    assert (free.home / "planted").exists()


def test_a_coding_agent_in_a_new_home_has_its_own_folder_there(tmp_path: Path) -> None:
    starts = "mkdir ~/.qwen/tmp && sed -i s/-/+/ calc.py"
    shop = Project(tmp_path / "shop", toml=f'[fixer]\ncommand = ["sh", "-c", \'{starts} # qwen\'] \n{TOML}')

    told = shop.run()

    assert told.code == 0, told.out
    assert (shop.home / ".qwen/tmp").is_dir()
    assert not (shop.home / ".codex").exists()
