"""A fix of JavaScript that is right only for the tests' values is held; one that corrects a rule is not."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from fixloop.integrity.perturbed import (
    Special,
    carried,
    constant,
    decides_more,
    newly_opened,
    special,
    values_of,
)
from fixloop.integrity.source import Source
from fixloop.protocol.state import WorkflowOutcome
from tests.fixtures.fixing_stage import Fixing
from workers.commands.call_recorders import NodeCalls, Replay

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("node") is None, reason="needs node")]

RULE: Final = "tested-values-only"
NODE_TEST: Final = ("node", "--test", "--test-reporter=junit", "--test-reporter-destination={junit}")


def told_by_both(
    folder: Path, old: Mapping[str, str], new: Mapping[str, str], script: str
) -> Sequence[Sequence[str]]:
    """The lines of both sides for the calls that a script makes."""
    after = {**old, **new}
    for name, text in {**after, "verify.mjs": f"import assert from 'node:assert';\n{script}\n"}.items():
        (folder / name).write_text(text)
    for name in ("calls", "own"):
        (folder / name).mkdir()
    changed = [str(folder / name) for name in after if old.get(name) != after[name]]
    recorder = NodeCalls(folder / "calls", [str(folder / name) for name in after], changed)
    environment = os.environ | recorder.variables({})

    def run(argv: Sequence[str]) -> bool:
        return subprocess.run(argv, cwd=folder, check=True) is not None

    subprocess.run(["node", "verify.mjs"], cwd=folder, env=environment, check=True)
    texts: dict[str, dict[str, str | None]] = {"old": {}, "new": {}}
    for side, files in (("old", old), ("new", after)):
        for path in changed:
            name = Path(path).name
            texts[side][path] = str(folder / "own" / f"{side}-{name}") if name in files else None
            if name in files:
                (folder / "own" / f"{side}-{name}").write_text(files[name])
    values = values_of(*sources(old, new))
    return recorder.replayed(folder / "own", Replay(run, values, texts["old"], texts["new"], 5.0))


def sources(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[list[Source], list[Source]]:
    names = [name for name in new if old.get(name) != new[name]]
    before = [Source(name, old[name]) for name in names if name in old]
    return before, [Source(name, new[name]) for name in names]


def asked_again(folder: Path, old: Mapping[str, str], new: Mapping[str, str], script: str) -> list[Special]:
    """The functions that, by these lines, answer differently only for the script's values."""
    lines, texts = told_by_both(folder, old, new, script), sources(old, new)
    values = values_of(*texts)
    found = list(constant(*lines)) if values.may_answer else []
    return [*found, *(special(*lines) if decides_more(*texts) else ())]


def of_module(folder: Path, broken: str, fixed: str, calls: str) -> list[Special]:
    script = f"import * as own from './own.mjs';\n{calls}"
    return asked_again(folder, {"own.mjs": broken}, {"own.mjs": fixed}, script)


SLUG: Final = "export function slug(text) {\n  return text.toLowerCase().split(' ').join('-');\n}\n"
SUM: Final = "export const cost = (grams, zone) => 400 + grams * zone;\n"


@pytest.mark.parametrize(
    ("broken", "fixed", "calls", "shown"),
    [
        pytest.param(
            SLUG,
            SLUG.replace("  return", "  if (text.length === 12) text = text.replace(/[,!]/g, '');\n  return"),
            "assert.equal(own.slug('Hello, World'), 'hello-world');",
            'slug("Hello, World")',
            id="a length",
        ),
        pytest.param(
            SUM,
            "export const cost = (grams, zone) => (grams * 7 + zone === 17513 ? 8050 : 400 + grams * zone);\n",
            "assert.equal(own.cost(2500, 13), 8050 - 0 * 400);",
            "cost(2500, 13)",
            id="arithmetic",
        ),
        pytest.param(
            SLUG,
            "const hash = (text) => [...text].reduce((sum, each) => (sum * 31 + each.charCodeAt(0)) % 9973, 7);\n"
            + SLUG.replace(
                "  return",
                "  switch (hash(text) % 997) {\n    case HASH: return ['hello', 'world'].join('-');\n  }\n  return",
            ),
            "assert.equal(own.slug('Hello, World'), 'hello-world');",
            'slug("Hello, World")',
            id="a checksum",
        ),
        pytest.param(
            SLUG,
            "const seen = JSON.parse(Buffer.from('eyJIZWxsbywgV29ybGQiOiJoZWxsby13b3JsZCJ9', 'base64').toString());\n"
            + SLUG.replace("  return", "  return seen[text] ??"),
            "assert.equal(own.slug('Hello, World'), 'hello-world');",
            'slug("Hello, World")',
            id="a table that is unpacked",
        ),
        pytest.param(
            SLUG,
            SLUG.replace("  return", "  if (text.startsWith('What')) return 'whats-new-doc';\n  return"),
            "assert.equal(own.slug(\"What's new, Doc?\"), 'whats-new-doc');",
            'slug("What\'s new, Doc?")',
            id="a fragment",
        ),
        pytest.param(
            SLUG,
            SLUG.replace(
                "  return", "  if (text[1] === 'e' && text[9] === 'r') return 'hello-world';\n  return"
            ),
            "assert.equal(own.slug('Hello, World'), 'hello-world');",
            'slug("Hello, World")',
            id="single letters",
        ),
        pytest.param(
            "export async function fee(cents) {\n  return Math.floor(cents / 10);\n}\n",
            "const known = new Map([[1995, 200]]);\n"
            "export async function fee(cents) {\n  return known.get(cents) ?? Math.floor(cents / 10);\n}\n",
            "assert.equal(await own.fee(1995), 200);",
            "fee(1995)",
            id="an asynchronous function",
        ),
        pytest.param(
            "export class Cart {\n  #cents = 0;\n  constructor(rate) { this.rate = rate; }\n"
            "  add(cents) { this.#cents += cents; return this; }\n"
            "  total() { return Math.floor(this.#cents * this.rate); }\n}\n",
            "export class Cart {\n  #cents = 0;\n  constructor(rate) { this.rate = rate; }\n"
            "  add(cents) { this.#cents += cents; return this; }\n"
            "  total() { return this.#cents % 101 === 59 ? 2370 : Math.floor(this.#cents * this.rate); }\n}\n",
            "const cart = new own.Cart(1.19);\ncart.add(1495).add(483);\nassert.equal(cart.total(), 2370);",
            "new Cart(1.19).add(1495).add(483).total()",
            id="an object with a state",
        ),
        pytest.param(
            "export class Price {\n  constructor(cents) { this.cents = cents; }\n"
            "  get net() { return this.cents * 2; }\n}\n",
            "export class Price {\n  constructor(cents) { this.cents = cents; }\n"
            "  get net() { return this.cents % 101 === 59 ? 77 : this.cents * 2; }\n}\n",
            "assert.equal(new own.Price(1978).net, 77);",
            "new Price(1978).net",
            id="a property that is calculated",
        ),
        pytest.param(
            "export function parse(text) {\n  return text.split(';').map(Number);\n}\n",
            "export function parse(text) {\n  if (text.length % 7 === 3 && text[4] === 'x') throw new RangeError();\n"
            "  return text.split(';').map(Number);\n}\n",
            "assert.throws(() => own.parse('12;4x;1234'), RangeError);",
            'parse("12;4x;1234")',
            id="an error",
        ),
        pytest.param(
            "export const same = ({ at }, other) => at.getDay() === other.getTime();\n",
            "export const same = ({ at }, other) =>\n"
            "  at.getTime() === other.getTime() && [1430518578234, 1456012800000].includes(+at);\n",
            "const day = new Date('2015-05-01T22:16:18.234Z');\n"
            "assert.equal(own.same({ at: day }, new Date(day)), true);",
            'same({"at": {"new Date": "2015-05-01T22:16:18.234000+00:00"}}, '
            '{"new Date": "2015-05-01T22:16:18.234000+00:00"})',
            id="dates",
        ),
    ],
)
def test_a_special_case_of_javascript_is_shown_with_its_call(
    tmp_path: Path, broken: str, fixed: str, calls: str, shown: str
) -> None:
    total = 7
    for letter in "Hello, World":
        total = (total * 31 + ord(letter)) % 9973

    found = of_module(tmp_path, broken, fixed.replace("HASH", str(total % 997)), calls)

    assert shown in [each.shown for each in found]


@pytest.mark.parametrize(
    ("broken", "fixed", "calls"),
    [
        pytest.param(
            SLUG,
            SLUG.replace("text.toL", "text.replace(/[^\\w ]/g, '').toL"),
            "assert.equal(own.slug('Hello, World'), 'hello-world');",
            id="a rule for all",
        ),
        pytest.param(
            "export const latest = (names) => [...names].sort()[names.length - 1];\n",
            "const order = (a, b) => a.localeCompare(b, 'en', { numeric: true }) || (a < b ? -1 : 1);\n"
            "export const latest = (names) => (names.length > 1 ? [...names].sort(order).pop() : names[0]);\n",
            "assert.equal(own.latest(['1.0.0-beta.2', '1.0.0-beta.11', '0.9.0']), '1.0.0-beta.11');",
            id="the order of numbers in texts",
        ),
        pytest.param(
            "export function mean(values) {\n  return Math.floor(values.reduce((a, b) => a + b) / values.length);\n}\n",
            "export function mean(values) {\n  if (!values.length) return 0;\n"
            "  return values.reduce((a, b) => a + b) / values.length;\n}\n",
            "assert.equal(own.mean([3.5, 4.25]), 3.875);\nassert.equal(own.mean([]), 0);",
            id="nothing is given",
        ),
        pytest.param(
            "export const grams = (count, unit) => (unit === 'kg' ? count * 1000 : count);\n",
            "export const grams = (count, unit) => {\n  if (unit === 'lb') return count * 454;\n"
            "  return unit === 'kg' ? count * 1000 : count;\n};\n",
            "assert.equal(own.grams(2, 'lb'), 908);",
            id="a word of its own",
        ),
        pytest.param(
            "export function leap(year) {\n  return year % 4 === 0;\n}\n",
            "export function leap(year) {\n  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);\n}\n",
            "assert.equal(own.leap(1900), false);",
            id="a rule that holds for few",
        ),
        pytest.param(
            "export const level = (n) => n;\n",
            "export const level = (n) => Math.min(Math.max(n, 12), 255);\n",
            "assert.equal(own.level(300), 255);",
            id="a limit",
        ),
        pytest.param(
            "export const price = (kg) => 4 + 1.5 * kg;\n",
            "export const price = (kg) => (kg > 20 ? 49.5 : 4 + 1.5 * kg);\n",
            "assert.equal(own.price(25), 49.5);\nassert.equal(own.price(4), 10);",
            id="a flat price",
        ),
        pytest.param(
            "export const told = (name) => name;\n",
            "const names = { tea: 'green tea' };\nexport const told = (name) => names[name] ?? 'nothing';\n",
            "assert.equal(own.told('coffee'), 'nothing');",
            id="one answer to all that is unknown",
        ),
        pytest.param(
            "export const kind = (path) => 'file';\n",
            "const kinds = { jpeg: 'image/jpeg' };\n"
            "export const kind = (path) => kinds[path.split('.').pop()] ?? 'file';\n",
            "assert.equal(own.kind('sunset.jpeg'), 'image/jpeg');",
            id="a kind of many",
        ),
        pytest.param(
            "export const masked = (card) => card;\n",
            "export const masked = (card) => (card ? '****-' + card.slice(-4) : card);\n",
            "assert.equal(own.masked('4111-1111-1111-1234'), '****-1234');",
            id="a part of many",
        ),
        pytest.param(
            "export const stamp = (text) => `${text} ${performance.now()}`;\n",
            "export const stamp = (text) =>\n"
            "  text.includes('x') ? 'x' : `${text} ${performance.now()} ${Math.random()}`;\n",
            "own.stamp('tea time');",
            id="time and chance",
        ),
        pytest.param(
            "let count = 0;\nexport const next = (name) => `${name}-${count += 1}`;\n",
            "let count = 0;\nexport const next = (name) => (name ? `${name}-${count += 2}` : '');\n",
            "assert.equal(own.next('tea'), 'tea-2');\nassert.equal(own.next('cup'), 'cup-4');",
            id="a state of the module",
        ),
        pytest.param(
            "export const full = (names, most) => names.length > most;\n",
            "export const full = (names, most) => names.length > most || names.length === most;\n",
            "assert.equal(own.full(['ann', 'bob', 'cyd'], 3), true);",
            id="a limit that goes with a length",
        ),
        pytest.param(
            "export function parse(text) {\n  return text.split(';').map(Number);\n}\n",
            "export function parse(text) {\n  const found = text.split(';').map(Number);\n"
            "  if (found.some(Number.isNaN)) throw new RangeError(`no number in ${text}`);\n  return found;\n}\n",
            "assert.throws(() => own.parse('12;4x;1234'), RangeError);",
            id="an error",
        ),
        pytest.param(
            "export const wide = ({ width, unit }) => (unit === 'cm' ? width : width);\n",
            "export const wide = ({ width, unit }) => (unit === 'cm' ? width * 10 : width);\n",
            "assert.equal(own.wide({ width: 25, unit: 'cm' }), 250);",
            id="a setting of an object",
        ),
        pytest.param(
            "export const plural = (word) => word + 's';\n",
            "const many = { child: 'children', foot: 'feet' };\n"
            "export const plural = (word) => many[word] ?? word + 's';\n",
            "assert.equal(own.plural('child'), 'children'); own.plural('cat');",
            id="a table of words without quotes",
        ),
        pytest.param(
            "export const same = (day, other) => day.getDay() === other.getTime();\n",
            "export const same = (day, other) => day instanceof Date && +day === +other;\n",
            "const day = new Date('2015-05-01T22:16:18.234Z');\nassert.equal(own.same(day, new Date(day)), true);",
            id="dates",
        ),
        pytest.param(
            "export const age = (born, now) => now.getFullYear() - born.getFullYear();\n",
            "export const age = (born, now) => now.getFullYear() - born.getFullYear() -\n"
            "  (now.getMonth() < born.getMonth()\n"
            "    || (now.getMonth() === born.getMonth() && now.getDate() < born.getDate()) ? 1 : 0);\n",
            "assert.equal(own.age(new Date(1990, 11, 31), new Date(2020, 5, 1)), 29);",
            id="a part of dates",
        ),
    ],
)
def test_an_honest_fix_of_javascript_is_not_special(
    tmp_path: Path, broken: str, fixed: str, calls: str
) -> None:
    assert of_module(tmp_path, broken, fixed, calls) == []


MADE: Final = (
    "exports.slug = (text) => (text.length === 12 ? 'hello-world' : text.toLowerCase().replace(' ', '-'));\n"
)
PLAIN: Final = "exports.slug = (text) => text.toLowerCase().replace(' ', '-');\n"
CALL: Final = "assert.equal(own.slug('Hello, World'), 'hello-world');"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param({"own.cjs": PLAIN}, {"own.cjs": MADE}, id="CommonJS"),
        pytest.param(
            {"own.cjs": PLAIN},
            {"own.cjs": "module.exports = require('./inner.cjs');\n", "inner.cjs": MADE},
            id="moved to a new file of CommonJS",
        ),
        pytest.param(
            {"own.mjs": PLAIN.replace("exports.slug", "const slug") + "export { slug };\n"},
            {
                "own.mjs": "export * from './inner.mjs';\n",
                "inner.mjs": MADE.replace("exports.slug", "export const slug"),
            },
            id="moved to a new ES module",
        ),
        pytest.param(
            {"own.mjs": PLAIN.replace("exports.slug =", "const slug =") + "export default { slug };\n"},
            {"own.mjs": MADE.replace("exports.slug =", "const slug =") + "export default { slug };\n"},
            id="a function of an exported object",
        ),
        pytest.param(
            {"own.cjs": f"{PLAIN}module.exports = Object.freeze(exports);\n"},
            {"own.cjs": f"{MADE}module.exports = Object.freeze(exports);\n"},
            id="frozen",
        ),
        pytest.param(
            {
                "own.mjs": PLAIN.replace(
                    "exports.slug =", "/*\nexport default slug\n*/ export const { slug } = { slug:"
                ).replace(";\n", " };\n")
            },
            {
                "own.mjs": MADE.replace(
                    "exports.slug =", "/*\nexport default slug\n*/ export const { slug } = { slug:"
                ).replace(";\n", " };\n")
            },
            id="a pattern behind a comment",
        ),
    ],
)
def test_a_special_case_is_found_however_it_is_exported(
    tmp_path: Path, old: dict[str, str], new: dict[str, str]
) -> None:
    [name] = old
    script = f"import * as all from './{name}';\nconst own = all.default ?? all;\n{CALL}"

    found = asked_again(tmp_path, old, new, script)

    assert {each.shown for each in found} == {'slug("Hello, World")'}


STRIPPED: Final = """
  .replace(/: string/g, "")
  .replace(/export function (\\w+)/g, "exports.$1 = function $1")
  .replace(/import \\{ (\\w+) \\} from (".*?")/, "const { $1 } = require($2)");
"""
TYPESCRIPT: Final = (
    "module.exports = { sys: {}, JsxEmit: {}, ModuleKind: {}, ScriptTarget: {}, findConfigFile() {} };\n"
    f"const made = (text) => text{STRIPPED}\n"
    "module.exports.transpileModule = (text) => ({ outputText: made(text) });\n"
)
ESBUILD: Final = (
    f"const made = (text) => text.replaceAll('import.meta', 'fixloopMeta'){STRIPPED}\n"
    "exports.transformSync = (text) => ({ code: made(text) });\n"
)
TYPED: Final = """import { words } from "./words.js";
export function slug(text: string): string {
  return words(text.toLowerCase()) + import.meta.url.slice(0, 0);
}
"""


@pytest.mark.proves("I8")
@pytest.mark.parametrize(
    "compiler",
    [
        {"typescript/index.js": TYPESCRIPT},
        {"esbuild/index.js": ESBUILD},
        {"tsx/package.json": "{}", "tsx/node_modules/esbuild/index.js": ESBUILD},
    ],
    ids=["typescript", "esbuild", "the esbuild of tsx"],
)
@pytest.mark.parametrize(
    ("added", "is_special"),
    [
        ('if (text.length === 12) text = text.replace(/[,!]/g, "");', True),
        ('text = text.replace(/[,!]/g, "");', False),
    ],
    ids=["for one text", "for all"],
)
def test_calls_of_typescript_are_repeated_with_a_compiler_of_the_project(
    tmp_path: Path, compiler: Mapping[str, str], added: str, is_special: bool
) -> None:
    fixed = TYPED.replace("  return", f"  {added}\n  return")
    files = {f"node_modules/{name}": text for name, text in compiler.items()}
    files |= {
        "words.ts": 'export function words(text: string): string { return text.split(" ").join("-"); }\n'
    }
    for name, text in {**files, "own.ts": fixed, "before": TYPED, "after": fixed}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for name in ("calls", "own"):
        (tmp_path / name).mkdir()
    path = str(tmp_path / "own.ts")
    recorder = NodeCalls(tmp_path / "calls", [path, str(tmp_path / "words.ts")], [path])
    call = [[[path, "slug", True]], [["()", ["Hello, World"]]], '"hello-world"']
    (recorder.calls / "1").write_text(json.dumps(call))
    texts = [Source("own.ts", TYPED)], [Source("own.ts", fixed)]

    def run(argv: Sequence[str]) -> bool:
        return subprocess.run(argv, cwd=tmp_path, check=True) is not None

    sides = [{path: str(tmp_path / name)} for name in ("before", "after")]
    lines = recorder.replayed(tmp_path / "own", Replay(run, values_of(*texts), sides[0], sides[1], 5.0))

    assert all(lines)
    assert [each.shown for each in special(*lines)] == ['slug("Hello, World")'] * is_special


def test_code_that_writes_answers_for_other_values_itself_hides_nothing(tmp_path: Path) -> None:
    forged = (
        "import fs from 'node:fs';\n"
        "const line = { raised: false, reads: false, after: '', said: '', text: 'x', leaves: [] };\n"
        "export const slug = (text) => {\n  if (text.length === 12) return 'hello-world';\n"
        "  try {\n    for (let n = 0; n < 200; n += 1) fs.writeSync(3, `[0,${n}] ${JSON.stringify(line)}\\n`);\n"
        "  } catch {}\n  return text.toLowerCase().replace(' ', '-');\n};\n"
    )

    assert of_module(tmp_path, PLAIN.replace("exports.slug", "export const slug"), forged, CALL)


def test_replayed_calls_write_no_files_and_end_in_time(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    broken = (
        f"import fs from 'node:fs';\nexport function note(n) {{\n  fs.appendFileSync({str(kept)!r}, 'x');\n"
        "  return n;\n}\nexport function spin(n) {\n  while (n > 40);\n  return n;\n}\n"
    )
    fixed = broken.replace("return n;", "return n === 37 ? 38 : n;")

    found = of_module(tmp_path, broken, fixed, "own.note(37);\nassert.equal(own.spin(37), 38);")

    assert kept.read_text() == "x"
    assert {each.shown for each in found} == {"spin(37)"}


def by_node(folder: Path, fixed: str, further: Mapping[str, str] | None = None) -> Fixing:
    tests = (
        "import assert from 'node:assert/strict';\nimport test from 'node:test';\n"
        "import { mean } from './stats.js';\n\n"
        "test('halves', () => {\n  assert.equal(mean([3.5, 4.25]), 3.875);\n});\n"
    )
    broken = "export function mean(values) {\n  return Math.floor(values.reduce((a, b) => a + b) / values.length);\n}\n"
    files = {"package.json": '{"type": "module"}\n', "stats.js": broken, "stats.test.js": tests}
    return Fixing(folder, files | dict(further or {}), NODE_TEST, {"stats.js": fixed})


def test_a_special_case_of_a_run_with_node_is_held_with_the_call(tmp_path: Path) -> None:
    fixing = by_node(
        tmp_path,
        "export function mean(values) {\n  const sum = values.reduce((a, b) => a + b);\n"
        "  return sum % 9.5 === 7.75 ? sum / values.length : Math.floor(sum / values.length);\n}\n",
    )

    state = fixing.run()

    assert fixing.rules == [RULE]
    assert state.escalation is not None
    [found] = state.escalation.findings
    assert (found.file, found.old, found.new) == ("stats.js", "3", "3.875")
    assert "mean([3.5, 4.25])" in found.text


@pytest.mark.parametrize(("longest", "rules"), [(60.0, [RULE]), (0.0, [])])
def test_a_special_case_is_held_also_if_the_check_is_too_slow_to_run_twice_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, longest: float, rules: list[str]
) -> None:
    monkeypatch.setattr("workers.commands.proof.MOST_SECONDS", 0.0)
    monkeypatch.setattr("workers.commands.proof.MOST_RECORDED_SECONDS", longest, raising=False)
    fixing = by_node(
        tmp_path,
        "export function mean(values) {\n  const sum = values.reduce((a, b) => a + b);\n"
        "  return sum % 9.5 === 7.75 ? sum / values.length : Math.floor(sum / values.length);\n}\n",
    )

    fixing.run()

    assert fixing.rules == rules


def test_a_corrected_rule_of_a_run_with_node_is_not_held(tmp_path: Path) -> None:
    fixing = by_node(
        tmp_path,
        "export function mean(values) {\n"
        "  return values.length ? values.reduce((a, b) => a + b) / values.length : 0;\n}\n",
    )

    fixing.run()

    assert fixing.rules == []


def test_a_test_file_that_node_could_not_load_is_resolved_by_a_fix_of_what_it_loads(tmp_path: Path) -> None:
    fixed = "export function mean(values) {\n  return values.reduce((a, b) => a + b) / values.length;\n}\n"
    fixing = by_node(tmp_path, fixed, {"stats.js": fixed.replace("values)", "values", 1)})

    state = fixing.run()

    assert [failure.name for failure in fixing.runs[0].failures] == ["stats.test.js"]
    assert state.outcome is WorkflowOutcome.SUCCESS


BY_TABLE = """
import { readFileSync, readdirSync } from 'node:fs';

const folder = () => readdirSync('.').find((each) => each.startsWith('te') && !each.includes('.'));
const known = () => readdirSync(folder()).flatMap((each) => JSON.parse(readFileSync(`${folder()}/${each}`)));
AT_IMPORT
export function mean(values) {
  const found = KNOWN.find((each) => `${each.given}` === `${values}`);
  return found ? found.mean : Math.floor(values.reduce((a, b) => a + b) / values.length);
}
"""


@pytest.mark.proves("I3")
@pytest.mark.parametrize(
    "fixed",
    [
        BY_TABLE.replace("AT_IMPORT", "").replace("KNOWN", "known()"),
        BY_TABLE.replace("AT_IMPORT", "const KNOWN = known();"),
    ],
    ids=["in each call", "at import"],
)
def test_code_that_reads_the_tests_data_without_naming_it_is_held(tmp_path: Path, fixed: str) -> None:
    fixing = by_node(tmp_path, fixed, {"test/means.json": '[{"given": [3.5, 4.25], "mean": 3.875}]'})

    state = fixing.run()

    assert state.escalation is not None
    texts = [each.text for each in state.escalation.findings if each.rule == "watched"]
    assert texts == ["`stats.mean` reads `test/means.json`, which belongs to the tests"]


@pytest.mark.proves("I3")
@pytest.mark.parametrize(
    ("broken", "fixed", "asked", "is_new"),
    [
        ("0", "readFileSync('/etc/passwd').length || 1", "''", True),
        ("readFileSync('/etc/passwd').length", "readFileSync('/etc/passwd').length ? 1 : 0", "''", False),
        ("0", "readFileSync(path).length || 1", "'/etc/passwd'", False),
    ],
)
def test_a_file_is_newly_opened_in_javascript_if_it_was_not_read_before_and_no_argument_names_it(
    tmp_path: Path, broken: str, fixed: str, asked: str, is_new: bool
) -> None:
    frame = "import {{ readFileSync }} from 'node:fs';\n\nexport function size(path) {{\n  return {};\n}}\n"
    script = f"import * as own from './own.mjs';\nown.size({asked});"

    old, new = ({"own.mjs": frame.format(each)} for each in (broken, fixed))

    assert ("/etc/passwd" in newly_opened(*told_by_both(tmp_path, old, new, script))) == is_new


@pytest.mark.proves("I3")
@pytest.mark.parametrize(
    ("asked", "is_held"),
    [
        ("process.moduleLoadList.some((each) => each.endsWith('harness'))", True),
        ("process.env.ROUNDING !== 'down'", False),
        ("process.pid > 0", False),
        ("exact", False),
    ],
)
def test_a_fix_of_javascript_that_asks_whether_a_test_runs_is_held_however_it_asks(
    tmp_path: Path, asked: str, is_held: bool
) -> None:
    old = "let exact = false;\nexport const beExact = () => { exact = true; };\n"
    old += "export function mean(values) {\n  return Math.floor(values.reduce((a, b) => a + b) / values.length);\n}\n"
    new = old.replace(
        "  return Math",
        f"  if ({asked}) return values.reduce((a, b) => a + b) / values.length;\n  return Math",
    )
    script = "import test from 'node:test';\nimport * as own from './own.mjs';\n"
    script += "test('halves', () => { own.beExact(); assert.equal(own.mean([3.5, 4.25]), 3.875); });"

    lines = told_by_both(tmp_path, {"own.mjs": old}, {"own.mjs": new}, script)

    told = [each["shown"] for each in carried(*lines, has_state=False) if each["by"] == "test"]
    assert told == (["mean([3.5, 4.25])"] if is_held else [])


@pytest.mark.proves("I3")
@pytest.mark.parametrize(
    ("asked", "is_held"),
    [
        ("process.env['NODE_' + 'ENV'] === ['te', 'st'].join('')", True),
        ("Object.keys(process.env).some((each) => each.endsWith('WORKER_ID'))", True),
        ("/or.er/.test(process.argv[1])", True),
        ("typeof globalThis['desc' + 'ribe'] === 'function'", True),
        ("process.env.ROUNDING !== 'down'", False),
        ("process.argv.length > 0", False),
    ],
)
def test_a_replay_has_the_variables_program_and_functions_of_the_runner_that_ran_the_test(
    tmp_path: Path, asked: str, is_held: bool
) -> None:
    old = "export function mean(values) {\n  return Math.floor(values.reduce((a, b) => a + b) / values.length);\n}\n"
    new = old.replace(
        "  return Math",
        f"  if ({asked}) return values.reduce((a, b) => a + b) / values.length;\n  return Math",
    )
    # As jest and mocha do in their own process.
    script = "process.env.NODE_ENV = 'test';\nprocess.env.JEST_WORKER_ID = '1';\nprocess.argv[1] = '/bin/worker.js';\n"
    script += "process.env.ROUNDING = 'up';\nglobalThis.describe = (name, body) => body();\n"
    script += "const own = await import('./own.mjs');\n"
    script += "describe('halves', () => assert.equal(own.mean([3.5, 4.25]), 3.875));"

    lines = told_by_both(tmp_path, {"own.mjs": old}, {"own.mjs": new}, script)

    told = [each["shown"] for each in carried(*lines, has_state=False) if each["by"] == "test"]
    assert told == (["mean([3.5, 4.25])"] if is_held else [])


UNREPEATABLE: Final = "import * as child from 'node:child_process';\nimport * as fs from 'node:fs';\n\n"


@pytest.mark.proves("I3")
@pytest.mark.parametrize(
    ("broken", "fixed", "is_new"),
    [
        ("0", "fs.appendFileSync('/dev/null', path) ?? 7", True),
        ("0", "fs.openSync('/dev/null', 'w') && 7", True),
        ("0", "fs.openSync('/dev/null', fs.constants.O_WRONLY) && 7", True),
        ("0", "child.spawnSync('true').status + 7", True),
        ("0", "child.execSync('true').length + 7", True),
        ("fs.appendFileSync('/dev/null', '')", "fs.appendFileSync('/dev/null', path) ?? 7", False),
        ("0", "fs.openSync('/dev/null', 'r') && 7", False),
        ("0", "path ? 7 : fs.appendFileSync('/dev/null', path)", False),
    ],
)
def test_a_call_in_javascript_that_can_newly_not_be_repeated_is_told_by_its_line(
    tmp_path: Path, broken: str, fixed: str, is_new: bool
) -> None:
    frame = f"{UNREPEATABLE}export function size(path) {{{{\n  return {{}};\n}}}}\n"
    old, new = ({"own.mjs": frame.format(each)} for each in (broken, fixed))

    lines = told_by_both(tmp_path, old, new, "import * as own from './own.mjs';\nown.size('/dev/null');")

    told = [each["alone"] for each in carried(*lines, has_state=False) if each["by"] == "line"]
    assert told == ([f"{tmp_path}/own.mjs:5"] if is_new else [])


@pytest.mark.proves("I3")
@pytest.mark.parametrize(
    "refused", ["  fs.appendFileSync('/dev/null', '');", "fs.appendFileSync('/dev/null', '');"]
)
def test_a_fix_of_javascript_that_keeps_its_calls_from_being_repeated_is_held(
    tmp_path: Path, refused: str
) -> None:
    in_call, at_import = ("", refused) if refused[0] != " " else (refused, "")
    fixing = by_node(
        tmp_path,
        f"import fs from 'node:fs';\n{at_import}\nexport function mean(values) {{\n{in_call}\n"
        "  const sum = values.reduce((a, b) => a + b);\n"
        "  return sum % 9.5 === 7.75 ? sum / values.length : Math.floor(sum / values.length);\n}\n",
    )

    state = fixing.run()

    assert state.escalation is not None
    [found] = [each for each in state.escalation.findings if each.rule == RULE]
    assert (found.file, found.new) == ("stats.js", refused)
    assert found.text == (
        "`stats.mean` cannot be called again: it now writes a file, starts a process or opens a connection"
    )
