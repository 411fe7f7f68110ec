"""Matches tests across a fix: a test that was renamed, moved or parametrized is identified by what it does.

A test is matched only to a name that a report lists as passed, and only if it still does everything that it did before.
If that cannot be determined, the test stays missing.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
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
_NUMBER: Final = re.compile(r"0x[\da-f]+|\d+")
_CHANGING: Final = re.compile(r"0x[\da-f]{8}|(?:\d[-.:T]?){8}")
"""In a name: an address, a time or a random number, another one in each run. A shorter one may be a parameter."""
_LOOP: Final = re.compile(
    r"\bfor\s*(?=\(\s*(?:const|let|var)\s+(?P<names>[^()]{1,200}?)\s+of\s+(?P<table>\w+|\[))"
)
_MOST_COMPARED: Final = 1_000_000
_MOST_TOKENS: Final = 10_000
_MOST_LOOPS: Final = 100
_Bodies = Mapping[str, list[tuple[str, tuple[str, ...]]]]
"""For languages with braces: files and body tokens, by test name."""
READ: Final = frozenset({"py", *_STARTS})
"""Extensions of the files whose tests can be matched."""


class _Key(NamedTuple):
    """A parsed name from a report."""

    file: str
    """Empty where the name does not contain it."""
    test: str
    suffix: str = ""


def brought_forward(
    missing: Collection[str], passed: Collection[str], before: Mapping[str, str], after: Mapping[str, str]
) -> dict[str, str]:
    """The passed name that matches each missing test, where there is one.

    `before`, `after`: the old and new texts of the files that differ, by path.
    """
    names, changed = set(passed), {*before, *after}
    found = _python(missing, names, before, after)
    alike = {_NUMBER.sub("0", name): name for name in passed}
    for name in filter(_CHANGING.search, missing):
        if name.partition("::")[0] not in changed and (now := alike.get(_NUMBER.sub("0", name))):
            found[name] = now
    return {**found, **_others([name for name in missing if name not in found], names, before, after)}


def is_seen(name: str, expected: Collection[str], passed: Collection[str], changed: Collection[str]) -> bool:
    """Whether a test whose name changes from run to run (it may contain an address or the time) is still there: its
    file is unchanged, and no fewer tests of its kind passed."""
    file, _, _ = name.partition("::")
    kind, files = name.partition("[")[0] if file.endswith(".py") else file, {file}
    if (in_go := _GO_NAME.fullmatch(name)) and in_go["sub"]:
        # The name does not tell its file.
        kind, files = name.removesuffix(in_go["sub"]), {path for path in changed if path.endswith("_test.go")}
    return files.isdisjoint(changed) and kind != name and _of_kind(passed, kind) >= _of_kind(expected, kind)


def _of_kind(names: Iterable[str], kind: str) -> int:
    return sum(name.startswith((f"{kind}[", f"{kind}::", f"{kind}/")) for name in names)


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
    by_similarity: dict[str | tuple[str, ...], list[str]] = defaultdict(list)
    for base, rows in candidates.items():
        by_similarity[base.rpartition("::")[2]].append(base)
        for row in rows:
            by_similarity[row.does].append(base)
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
        # First the same name, then the same name in another file, then a test that does the same.
        near = [base, *by_similarity[base.rpartition("::")[2]], *by_similarity[wanted[0].does]]
        far = candidates if len(sought) * len(candidates) <= _MOST_COMPARED else {}
        parts = [part for row in wanted for part in row.parts()]
        for candidate in (each for each in (*near, *far) if each in candidates):
            if now := _new_name(parts, candidate, candidates[candidate], bracket + suffix, passed):
                found[name] = now
                break
    return found


def _new_name(wanted: list[Row], base: str, rows: tuple[Row, ...], end: str, passed: Collection[str]) -> str:
    """The passed name of a case of this function that does all that is wanted; empty if there is none."""
    if not all(any(part.is_held_by(each) for each in rows) for part in wanted):
        return ""
    if len(rows) == 1 and not rows[0].suffix:
        # Unreadable parameters must be the same.
        now = base if wanted[0].suffix else base + end
        # A loop over a table that cannot be read became parameters.
        is_split = not end and _of_kind(passed, base) > 0
        return now if now in passed or is_split else ""
    held = [each for each in rows if any(part.is_held_by(each) for part in wanted)]
    names = [f"{base}[{each.suffix}]" for each in held]
    if all(name in passed for name in names):
        return names[0]
    # pytest labels them differently: require all cases.
    return base if _of_kind(passed, base) >= len(rows) else ""


def _others(
    missing: Collection[str], passed: Collection[str], before: Mapping[str, str], after: Mapping[str, str]
) -> dict[str, str]:
    if not missing:
        return {}
    old, new = _bodies(before), _bodies(after)
    known = {(key.suffix, _of(key, new)): name for name in sorted(passed) if _of(key := _key(name), new)}
    now = {name: known.get((key.suffix, _of(key, old)), "") for name in missing for key in [_key(name)]}
    for name in filter(_GO_NAME.fullmatch, missing):
        # A test with subtests may be listed only by them.
        now[name] = now[name] or next((each for each in sorted(passed) if each.startswith(f"{name}/")), "")
    checked = {name: _checks(_of(_key(name), new)) for name in sorted(passed)}
    for name in (each for each in missing if not now[each]):
        wanted = _checks(_of(_key(name), old))
        if wanted and wanted <= frozenset().union(*checked.values()):
            now[name] = next(each for each, checks in checked.items() if checks & wanted)
    return {name: other for name, other in now.items() if other}


def _checks(bodies: Iterable[tuple[str, ...]]) -> frozenset[str]:
    """The statements of JavaScript tests that do nothing but check; empty for any other."""
    javascript = (" ".join(body) for body in bodies if body[0] in ("(", "async"))
    texts = (text.partition("{")[2].rpartition("}")[0] for text in javascript)
    found = frozenset(each.strip() for text in texts for each in text.split(" ;") if each.strip())
    return found if all(each.split()[0] in ("assert", "expect") for each in found) else frozenset()


def _unrolled(text: str) -> str:
    """JavaScript with the rounds of each loop over a table that is written out."""
    done, at = "", 0
    for loop in islice(_LOOP.finditer(text), _MOST_LOOPS):
        table = re.search(rf"\b{loop['table']}\s*=\s*(?=\[)", text) if loop["table"] != "[" else None
        entries, _ = _parts(text, table.end() if table else loop.start("table"))
        body = re.compile(r"\s*(?=\{)").match(text, _parts(text, loop.end())[1])
        end = _parts(text, body.end())[1] if body else 0
        if not body or loop.start() < at or not 0 < len(entries) * (end - body.end()) <= _MOST_COMPARED:
            continue
        done += text[at : loop.start()]
        for entry in entries:
            values = _parts(entry, 0)[0] if loop["names"][0] == "[" else [entry]
            bound = dict(zip(re.findall(r"\w+", loop["names"]), values, strict=False))
            for token in _TOKEN.finditer(text[body.end() + 1 : end - 1]):
                now = bound.get(token[0], token[0])
                for name, value in bound.items() if now.startswith("`") else ():
                    now = now.replace(f"${{{name}}}", value.strip("'\"`"))
                done += now
        at = end
    return done + text[at:]


def _parts(text: str, start: int) -> tuple[list[str], int]:
    """What commas separate in the brackets that open at `start`, and where these end."""
    parts, depth = [""], 0
    for token in islice(_TOKEN.finditer(text, start), _MOST_TOKENS):
        depth += (token[0] in "({[") - (token[0] in ")}]")
        if depth <= 0:
            return [part.strip() for part in parts if part.strip()], token.end()
        if depth == 1 and token[0] == ",":
            parts.append("")
        elif token.start() > start:
            parts[-1] += " " if token["skip"] else token[0]
    return [], len(text)


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
        text = _unrolled(text) if start is _TITLED else text
        for match in start.finditer(text) if start else ():
            names = match.groupdict()
            title = names["quoted"][1:-1] if "quoted" in names else names["name"]
            body, depth = list[str](), int("quoted" in names)
            for token in _TOKEN.finditer(text, match.end()):
                if token["skip"]:
                    continue
                depth += (token[0] in "({[") - (token[0] in ")}]")
                body.append(token[0])
                if depth <= 0 or len(body) > _MOST_TOKENS:
                    break
            found[title].append((path, tuple(body)))
    return found
