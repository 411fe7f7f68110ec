"""Projects of other languages, without any configuration: green as they are, red with a defect."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.fixtures.project import FIXLOOP, environment
from tests.fixtures.reports.samples import written

pytestmark = pytest.mark.slow

NODE: Final = {
    "package.json": '{"name": "shop", "type": "module", "scripts": {"test": "node --test"}}\n',
    "sum.js": "export const sum = (a, b) => a + b;\n",
    "sum.test.js": (
        'import test from "node:test";\nimport assert from "node:assert";\nimport { sum } from "./sum.js";\n'
        'test("adds", () => assert.equal(sum(1, 2), 3));\n'
    ),
}
GO: Final = {
    "go.mod": "module example.com/shop\n\ngo 1.19\n",
    "sum.go": "package shop\n\n// Sum adds.\nfunc Sum(a, b int) int { return a + b }\n",
    "sum_test.go": (
        'package shop\n\nimport "testing"\n\nfunc TestSum(t *testing.T) {\n\tif Sum(1, 2) != 3 {\n'
        '\t\tt.Fatal("wrong")\n\t}\n}\n'
    ),
}
RUST: Final = {
    "Cargo.toml": '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/lib.rs": (
        "pub fn sum(a: i32, b: i32) -> i32 { a + b }\n\n"
        "#[test]\nfn adds() {\n    assert_eq!(sum(1, 2), 3);\n}\n"
    ),
}


def looked_at(home: Path, folder: Path, files: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    """What a dry run says of a repository with `files`; what compilers keep is in `home`."""
    written(folder, files)
    given = environment(home) | {
        name: os.environ.get(name, str(Path.home() / default))
        for name, default in (("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo"))
    }
    person = ["-c", "user.name=A Person", "-c", "user.email=person@example.org"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], [*person, "commit", "-qm", "all"]):
        subprocess.run(["git", *words], cwd=folder, env=given, check=True)
    return subprocess.run(
        [FIXLOOP, "run", "--dry"],
        cwd=folder,
        env=given,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize(
    ("program", "files", "source", "check", "failing"),
    [
        ("node", NODE, "sum.js", "node --test", "test::adds"),
        ("go", GO, "sum.go", "go test", "example.com/shop.TestSum"),
        ("cargo", RUST, "src/lib.rs", "cargo test", "shop::adds"),
    ],
)
def test_an_unconfigured_project_of_another_language_passes_and_fails_with_a_defect(
    tmp_path: Path, program: str, files: Mapping[str, str], source: str, check: str, failing: str
) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not on the PATH")

    home, defect = tmp_path / "home", {source: files[source].replace("a + b", "a - b")}
    right = looked_at(home, tmp_path / "right" / "shop", files)
    wrong = looked_at(home, tmp_path / "wrong" / "shop", {**files, **defect})

    assert right.returncode == 0, right.stdout + right.stderr
    assert f"{check}: passed" in right.stdout
    assert wrong.returncode == 1, wrong.stdout + wrong.stderr
    assert f"{check}: 1 failure" in wrong.stdout
    assert failing in wrong.stdout
