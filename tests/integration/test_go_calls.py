"""A fix of Go that is right only for the tests' values is held; one that corrects a rule is not."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from fixloop.integrity.perturbed import Special, carried, constant, decides_more, special, values_of
from fixloop.integrity.source import Source
from tests.fixtures.fixing_stage import Fixing
from workers.commands.call_recorders import GoCalls, Replay

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("go") is None, reason="needs go")]

MODULE: Final = {"go.mod": "module example.com/own\n\ngo 1.18\n"}


Texts = Mapping[str, str]


def told_by_both(folder: Path, old: Texts, new: Texts, tests: str) -> Sequence[Sequence[str]]:
    """The lines of both sides for the calls that the tests make."""
    for name in ("kept", "calls", "own", "product"):
        (folder / name).mkdir()
    product, after = folder / "product", {**old, **new}
    for name, text in {**MODULE, **after, "own_test.go": tests}.items():
        (product / name).write_text(text)
    changed = {str(product / name): name for name in new if old.get(name) != new[name]}
    recorder = GoCalls(folder / "calls", [str(product / name) for name in after], list(changed))
    subprocess.run(recorder.preparation, cwd=product, check=True)
    environment = os.environ | recorder.variables({})
    subprocess.run(["go", "test", "-count=1", "./..."], cwd=product, env=environment, check=True)
    sides: list[dict[str, str | None]] = []
    for number, texts in enumerate((old, after)):
        kept = {path: folder / "kept" / f"{number}-{name}" for path, name in changed.items() if name in texts}
        for path, place in kept.items():
            place.write_text(texts[changed[path]])
        sides.append({path: str(kept[path]) if path in kept else None for path in changed})

    def run(argv: Sequence[str]) -> bool:
        return subprocess.run(argv, cwd=product, check=True) is not None

    lines = recorder.replayed(
        folder / "own", Replay(run, values_of(*sources(old, new)), sides[0], sides[1], 5.0)
    )
    assert sorted(path.name for path in product.iterdir()) == sorted([*MODULE, *after, "own_test.go"])
    assert {name: (product / name).read_text() for name in after} == after
    return lines


def sources(old: Texts, new: Texts) -> tuple[list[Source], list[Source]]:
    names = [name for name in new if old.get(name) != new[name]]
    before = [Source(name, old[name]) for name in names if name in old]
    return before, [Source(name, new[name]) for name in names]


def asked_again(folder: Path, old: Texts, new: Texts, tests: str) -> tuple[int, list[Special]]:
    """How many answers the replay has, and the functions that, by these, answer differently only for the tests."""
    lines, texts = told_by_both(folder, old, new, tests), sources(old, new)
    found = list(constant(*lines)) if values_of(*texts).may_answer else []
    count = sum(json.loads(line)["answer"] != "refused" for line in lines[1])
    return count, [*found, *(special(*lines) if decides_more(*texts) else ())]


SLUG: Final = """package own

import "strings"

// Slug is a title as part of an address.
func Slug(title string) string {
	return strings.ReplaceAll(strings.ToLower(title), " ", "-")
}
"""
SLUG_TEST: Final = """package own

import "testing"

func TestSlug(t *testing.T) {
	if got := Slug("Hello, World!"); got != "hello-world" {
		t.Fatal(got)
	}
	Slug("Go Home")
}
"""
BOX: Final = """package own

import "errors"

type Box struct{ Width, Height int }

func (b *Box) Area(factor float64, more ...int) (float64, error) {
	if b.Width < 0 {
		return 0, errors.New("no box")
	}
	return float64(b.Width+b.Height) * factor, nil
}
"""
BOX_TEST: Final = """package own

import "testing"

func TestArea(t *testing.T) {
	if got, err := (&Box{21, 34}).Area(1.5, 7, 8); err != nil || got != 1071 {
		t.Fatal(got, err)
	}
}
"""


def with_line(text: str, line: str, imported: str = "") -> str:
    other = f'import (\n\t"{imported}"\n\t"strings"\n)' if imported else 'import "strings"'
    return text.replace("\treturn strings", f"\t{line}\n\treturn strings").replace('import "strings"', other)


@pytest.mark.parametrize(
    ("broken", "fixed", "tests", "shown"),
    [
        pytest.param(
            SLUG,
            with_line(SLUG, 'if len(title) == 13 && title[1] == \'e\' { return "hello" + "-world" }'),
            SLUG_TEST,
            'Slug("Hello, World!")',
            id="a length and a letter",
        ),
        pytest.param(
            SLUG,
            with_line(
                SLUG,
                'if crc32.ChecksumIEEE([]byte(title)) % 1000 == 768 { title = "hello world" }',
                "hash/crc32",
            ),
            SLUG_TEST,
            'Slug("Hello, World!")',
            id="a checksum",
        ),
        pytest.param(
            BOX,
            BOX.replace(
                "\treturn float64", "\tif b.Width*3+b.Height == 97 { return 1071, nil }\n\treturn float64"
            ),
            BOX_TEST,
            'Box.Area({"Width": 21, "Height": 34}, 1.5, [7, 8])',
            id="arithmetic of a receiver",
        ),
    ],
)
def test_a_special_case_of_go_is_shown_with_its_call(
    tmp_path: Path, broken: str, fixed: str, tests: str, shown: str
) -> None:
    count, found = asked_again(tmp_path, {"own.go": broken}, {"own.go": fixed}, tests)

    assert count > 1
    assert {each.shown for each in found} == {shown}


@pytest.mark.parametrize(
    ("broken", "new", "tests"),
    [
        pytest.param(
            SLUG,
            {"own.go": with_line(SLUG, 'title = strings.NewReplacer(",", "", "!", "").Replace(title)')},
            SLUG_TEST,
            id="signs are left out",
        ),
        pytest.param(
            SLUG,
            {
                "own.go": with_line(SLUG, 'if title = trimmed(title); title == "" { return "untitled" }'),
                "trimmed.go": "package own\n\nimport \"regexp\"\n\nvar signs = regexp.MustCompile(`[^\\w ]+`)\n\n"
                'func trimmed(title string) string { return signs.ReplaceAllString(title, "") }\n',
            },
            SLUG_TEST,
            id="a new file and a branch",
        ),
        pytest.param(
            BOX,
            {"own.go": BOX.replace("b.Width+b.Height", "max(b.Width, 0)*b.Height") + "\nfunc max(a, b int) int {\n"
            "\tif a > b {\n\t\treturn a\n\t}\n\treturn b\n}\n"},
            BOX_TEST,
            id="a method",
        ),
    ],
)  # fmt: skip
def test_an_honest_fix_of_go_is_not_special(
    tmp_path: Path, broken: str, new: Mapping[str, str], tests: str
) -> None:
    count, found = asked_again(tmp_path, {"own.go": broken}, new, tests)

    assert count > 1
    assert found == []


@pytest.mark.parametrize(
    "line", ['os.WriteFile(title, nil, 0600)', 'os.Remove(title)', '_ = os.Mkdir'], ids=["write", "remove", "name"]
)  # fmt: skip
def test_calls_of_a_package_that_can_write_files_are_not_repeated(tmp_path: Path, line: str) -> None:
    broken = with_line(SLUG, "if title == `other` { " + line + " }", "os")
    fixed = broken.replace("\treturn", "\tif len(title) == 13 { return `hello-world` }\n\treturn")

    count, found = asked_again(tmp_path, {"own.go": broken}, {"own.go": fixed}, SLUG_TEST)

    assert (count, found) == (0, [])


@pytest.mark.proves("I8")
def test_a_special_case_of_a_run_with_go_is_held_with_the_call(tmp_path: Path) -> None:
    fixed = with_line(SLUG, 'if len(title) == 13 && title[1] == \'e\' { return "hello" + "-world" }')
    files = {**MODULE, "own.go": SLUG, "own_test.go": SLUG_TEST}
    fixing = Fixing(tmp_path, files, ("go", "test", "-json", "-count=1", "./..."), {"own.go": fixed})

    state = fixing.run()

    assert fixing.rules == ["tested-values-only"]
    assert state.escalation is not None
    assert 'Slug("Hello, World!")' in state.escalation.findings[0].text


HELPED: Final = SLUG + "\nfunc note(text string) { os.WriteFile(os.DevNull, []byte(text), 0600) }\n"
STARTED: Final = SLUG + "\nvar made, _ = os.Create(os.DevNull)\n"


@pytest.mark.proves("I3")
@pytest.mark.parametrize(
    ("broken", "fixed", "row"),
    [
        (SLUG, with_line(SLUG, "os.Remove(title)", "os"), "os.Remove(title)"),
        (SLUG, with_line(SLUG, "exec.Command(`true`).Run()", "os/exec"), "exec.Command"),
        (SLUG, with_line(HELPED, "note(title)", "os"), "func note"),
        (SLUG, with_line(STARTED, "_ = made", "os"), "var made"),
        (SLUG, with_line(HELPED, "", "os"), ""),
        (SLUG, with_line(SLUG, "_, _ = os.ReadFile(title)", "os"), ""),
        (SLUG, with_line(SLUG, "_ = net.ParseIP(title)", "net"), ""),
        (with_line(SLUG, "os.Remove(title)", "os"), with_line(SLUG, "os.RemoveAll(title)", "os"), ""),
    ],
    ids=["a call", "a process", "a helper", "at the start", "not called", "reads", "an address", "as before"],
)  # fmt: skip
def test_a_call_in_go_that_can_newly_not_be_repeated_is_told_by_its_line(
    tmp_path: Path, broken: str, fixed: str, row: str
) -> None:
    fixed = with_line(fixed, 'title = strings.ReplaceAll(strings.ReplaceAll(title, ",", ""), "!", "")')

    lines = told_by_both(tmp_path, {"own.go": broken}, {"own.go": fixed}, SLUG_TEST)

    told = {each["alone"] for each in carried(*lines, has_state=False) if each["by"] == "line"}
    rows = [number for number, text in enumerate(fixed.split("\n"), 1) if row and row in text]
    assert {place for place in told if not place.endswith(":0")} == {
        f"{tmp_path}/product/own.go:{number}" for number in rows
    }


@pytest.mark.proves("I3")
def test_a_fix_of_go_that_keeps_its_calls_from_being_repeated_is_held(tmp_path: Path) -> None:
    special_case = with_line(SLUG, 'if len(title) == 13 && title[1] == \'e\' { return "hello" + "-world" }')
    fixed = with_line(special_case, "os.Remove(title)", "os")
    files = {**MODULE, "own.go": SLUG, "own_test.go": SLUG_TEST}
    fixing = Fixing(tmp_path, files, ("go", "test", "-json", "-count=1", "./..."), {"own.go": fixed})

    state = fixing.run()

    assert state.escalation is not None
    [found] = [each for each in state.escalation.findings if each.rule == "tested-values-only"]
    assert "cannot be called again" in found.text
    assert "os.Remove(title)" in (found.new or "")
