"""Which test is which after a fix: one that was renamed, moved or parametrized is known again by what it does.

A test is brought forward to a name under which a report lists it as passed, and only if it still does all that it did.
Where that cannot be read, it is not: then what was owed stays owed.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from fixloop.integrity.python_tests import PythonTests, Row

_TOKEN: Final = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|[\w$]+|.""",
    re.DOTALL,
)
_TITLED: Final = re.compile(r"""\b(?:test|it)(?:\.\w+)*\s*\(\s*(?P<quoted>"[^"\n]*"|'[^'\n]*'|`[^`]*`)\s*,""")
_GO: Final = re.compile(r"^func\s+(?P<name>(?:Test|Example|Fuzz)\w*)\s*\([^)]*\)\s*(?=\{)", re.MULTILINE)
_RUST: Final = re.compile(r"\bfn\s+(?P<name>\w+)\s*\(\s*\)[^{;]*(?=\{)")
_STARTS: Final = {"go": _GO, "rs": _RUST} | dict.fromkeys(
    ("js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts"), _TITLED
)
_GO_NAME: Final = re.compile(r"(?P<package>.*)\.(?P<name>(?:Test|Example|Fuzz)\w*)(?P<sub>/.*)?")
_MOST_COMPARED: Final = 1_000_000
_MOST_TOKENS: Final = 10_000
_Bodies = Mapping[str, list[tuple[str, tuple[str, ...]]]]
"""For languages with braces: by the test's name, files and the tokens of its body."""
READ: Final = frozenset({"py", *_STARTS})
"""Endings of the files whose tests are known again."""


class _Key(NamedTuple):
    """A name in a report, taken apart."""

    file: str
    """Empty where names do not tell it."""
    test: str
    suffix: str = ""


def brought_forward(
    missing: Collection[str], passed: Collection[str], before: Mapping[str, str], after: Mapping[str, str]
) -> dict[str, str]:
    """
    Under which of the names that passed each missing test passed, of those that are found again.

    `before`, `after`: the texts of the files that differ, by path, as they were and as they are.
    """
    names = set(passed)
    python = _python(missing, names, before, after)
    return {**python, **_others([name for name in missing if name not in python], names, before, after)}


def is_seen(name: str, expected: Collection[str], passed: Collection[str], changed: Collection[str]) -> bool:
    """Whether a test whose name changes from run to run, such as one with an address in it, is there as before: its
    file is as it was, and no fewer of its kind have passed."""
    file, _, _ = name.partition("::")
    kind = name.partition("[")[0] if file.endswith(".py") else file
    return file not in changed and kind != name and _of_kind(passed, kind) >= _of_kind(expected, kind)


def _of_kind(names: Iterable[str], kind: str) -> int:
    return sum(name.startswith((f"{kind}[", f"{kind}::")) for name in names)


def _python(
    missing: Iterable[str], passed: Collection[str], before: Mapping[str, str], after: Mapping[str, str]
) -> dict[str, str]:
    sought = [name for name in missing if ".py::" in name]
    if not sought:
        return {}
    were, are = ({name.partition("::")[0] for name in names} for names in (sought, passed))
    old = {path: PythonTests(path, text) for path, text in before.items() if path in were}
    new = {path: PythonTests(path, text) for path, text in after.items() if path in are}
    candidates = {
        base: tests.rows(base)
        for base in dict.fromkeys(name.partition("[")[0] for name in sorted(passed))
        if (tests := new.get(base.partition("::")[0])) and base in tests.functions
    }
    alike: dict[str | tuple[str, ...], list[str]] = defaultdict(list)
    for base, rows in candidates.items():
        alike[base.rpartition("::")[2]].append(base)
        for row in rows:
            alike[row.does].append(base)
    found = {}
    for name in sought:
        base, bracket, suffix = name.partition("[")
        tests = old.get(base.partition("::")[0])
        if tests is None or base not in tests.functions:
            continue
        rows = tests.rows(base)
        wanted = [row for row in rows if row.suffix and f"{row.suffix}]" == suffix] or list(rows)
        if not wanted:
            continue
        # Its own name first, then its name in another file, then what does just the same.
        near = [base, *alike[base.rpartition("::")[2]], *alike[wanted[0].does]]
        far = candidates if len(sought) * len(candidates) <= _MOST_COMPARED else {}
        for candidate in (each for each in (*near, *far) if each in candidates):
            if now := _name_now(wanted, candidate, candidates[candidate], bracket + suffix, passed):
                found[name] = now
                break
    return found


def _name_now(wanted: list[Row], base: str, rows: tuple[Row, ...], end: str, passed: Collection[str]) -> str:
    """The name under which a test of this function that does all that is wanted has passed; empty: there is none."""
    if not all(any(row.is_held_by(each) for each in rows) for row in wanted):
        return ""
    if len(rows) == 1 and not rows[0].suffix:
        # Parameters that cannot be read have to be the same.
        now = base if wanted[0].suffix else base + end
        return now if now in passed else ""
    held = [each for each in rows if any(row.is_held_by(each) for row in wanted)]
    names = [f"{base}[{each.suffix}]" for each in held]
    if all(name in passed for name in names):
        return names[0]
    # Labels that pytest makes otherwise: all of its cases have to be there.
    return base if _of_kind(passed, base) >= len(rows) else ""


def _others(
    missing: Collection[str], passed: Collection[str], before: Mapping[str, str], after: Mapping[str, str]
) -> dict[str, str]:
    if not missing:
        return {}
    old, new = _bodies(before), _bodies(after)
    known = {(key.suffix, _of(key, new)): name for name in sorted(passed) if _of(key := _key(name), new)}
    now = {name: known.get((key.suffix, _of(key, old)), "") for name in missing for key in [_key(name)]}
    return {name: other for name, other in now.items() if other}


def _of(key: _Key, bodies: _Bodies) -> frozenset[tuple[str, ...]]:
    return frozenset(body for path, body in bodies.get(key.test, ()) if key.file in ("", path))


def _key(name: str) -> _Key:
    if go := _GO_NAME.fullmatch(name):
        return _Key("", go["name"], go["sub"] or "")
    file, _, titles = name.partition("::")
    if file.rpartition(".")[2] in _STARTS:
        return _Key(file, titles.rpartition(" > ")[2])
    return _Key("", name.rpartition("::")[2])


def _bodies(texts: Mapping[str, str]) -> _Bodies:
    found: dict[str, list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
    for path, text in texts.items():
        start = _STARTS.get(path.rpartition(".")[2])
        for begun in start.finditer(text) if start else ():
            names = begun.groupdict()
            title = names["quoted"][1:-1] if "quoted" in names else names["name"]
            body, depth = list[str](), int("quoted" in names)
            for token in _TOKEN.finditer(text, begun.end()):
                if token["skip"]:
                    continue
                depth += (token[0] in "({[") - (token[0] in ")}]")
                body.append(token[0])
                if depth <= 0 or len(body) > _MOST_TOKENS:
                    break
            found[title].append((path, tuple(body)))
    return found
