"""A test's own literals in the code under test: `if xs == [1, 2, 3]: return 6`.

Only comparisons of an argument with such a literal that return a literal are held, and tables of both. A number or a
plain word does not count if the function compared the same expression before.
"""

import ast
import base64
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from fixloop.integrity.paths import shipped
from fixloop.integrity.source import Function, Sign, Source, names_in, strings_of

RULE: Final = "test-literal"

_SHORTEST: Final = 4
_COMMON_NUMBERS: Final = frozenset({*map(float, range(-1, 13)), 100.0, 1000.0})
"""Up to the number of a month."""
_LISTED: Final = 3
"""Uncommon numbers that a fix adds to one comparison: of the tests alone, they are no rule of the product."""
_PUNCTUATION: Final = re.compile(r"[\[\](){}'\"`]|(?<=[,-])\s+|(?<!\s)\s+(?=,)")
_TYPE: Final = re.compile(r"^\[ \] \w+ ")
_WORD: Final = re.compile(r"[\w.-]{0,24}")
_YES_OR_NO: Final = re.compile(r"(?:True|False|None|true|false|null|nil|,)*")
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d*)?")
_STATUS: Final = re.compile(r"status(?:_?code)? [1-5]\d\d\Z", re.IGNORECASE)
"""Of HTTP."""
_WRITTEN_NUMBER: Final = re.compile(
    r"0[xX][\da-fA-F]{1,40}|0[oO][0-7]{1,40}|0[bB][01]{1,40}|[1-9]\d{0,40}(?:_\d{1,20}){1,20}"
)

_ONE: Final = r"(?:'[^']*'|(?:- )?\d[\w.]*|true|false|null|nil)"
_MANY: Final = rf"(?:\[ \] \w+ )?[\[{{] (?:{_ONE} (?:, )?){{2,50}}[\]}}]"
_LITERAL: Final = rf"(?:{_MANY}|{_ONE})"
_COLLECTION: Final = re.compile(_MANY)
_BELOW_ZERO: Final = re.compile(r"(?<=[(,=\[{:] )- \d[\w.]*")
# A text that a variable continues, in a template or by `+`, is computed; after an answer a statement may begin.
_ENDS: Final = (
    r"(?! (?:\+ )?(?!(?:case|default|if|else|for|while|do|switch|return|break|continue|const|let|var|function|class"
    r"|throw|try|export|import|async|await|func|fn|pub|as)\b)[A-Za-z_$])"
)
_BRACES: Final = re.compile(
    rf"(?<!\S)(?P<what>\S{{1,80}}) (?:===?|case|equals \() (?P<asked>{_LITERAL}) [^;{{}}]{{0,120}}?"
    rf"(?:\{{ )?(?:return|\?) (?P<answer>{_LITERAL})(?= ){_ENDS}"
)
_PAIR: Final = re.compile(
    rf"(?<!\S)(?<!\? )(?P<key>{_LITERAL}) (?P<sign>:|=>) (?P<value>{_LITERAL}) (?=[,}}])"
)
_PUT: Final = re.compile(
    rf"(?<!\w)(?P<what>\w+) (?:\[|\. set \() (?P<key>{_LITERAL}) (?:\] =|,) (?P<value>{_LITERAL})(?!\S)"
)
_MAP: Final = re.compile(
    rf"(?:new Map|fromEntries) (?:< [^>]{{0,80}} > )?\( \[ (?:\[ {_LITERAL} , {_LITERAL} \] (?:, )?)+"
)
_ENTRY: Final = re.compile(rf"\[ (?P<key>{_LITERAL}) , (?P<value>{_LITERAL}) \]")
_CHECKSUM: Final = re.compile(
    r"\b(?:crc32|adler32|hashlib\.\w+|hash)\(|\bsum\([^=]{0,80}(?:\bord\b|\.encode\()"
)
_JOINT: Final = re.compile(r"\s*(?:[|;#~]|[-=]?>|::)\s*")
"""Between arguments that are written as one key."""
_EMPTY: Final = re.compile(r"[\[({][\])}]|\w+\(\)|None")
_Values = ast.MatchValue | ast.MatchSequence
_COMPARISONS: Final = ast.Eq | ast.NotEq | ast.In | ast.NotIn | ast.Is

Literals = frozenset[str]


class Case(NamedTuple):
    """One comparison that decides an answer; literals have no brackets and quotes."""

    place: tuple[str, str]
    """The function, and the expression compared there."""
    asked: str
    answer: str
    line: int
    is_table: bool = False


def literals(tests: Iterable[Source]) -> Literals:
    """The values that a special case could compare with: strings of at least four characters, uncommon numbers,
    collections."""
    return frozenset(text for test in tests for text in lines_of_literals(test))


def lines_of_literals(source: Source) -> dict[str, int]:
    """Each of these values in a file, and a line that has it."""
    found = [(_text(node), node.lineno) for node in source.nodes if isinstance(node, ast.expr)]
    tokens = (token for token in source.code_tokens if token.kind in ("string", "number"))
    found += [(_bare(token.text), token.line) for token in tokens]
    for form in (_COLLECTION, _BELOW_ZERO):
        found += [(_bare(each[0]), line) for each, line in source.shapes(form)]
    return {text: line for text, line in found if _is_distinctive(text)}


def added_literals(
    changes: Sequence[tuple[str, str | None, str | None]],
    known: Literals,
    elsewhere: Callable[[Collection[str]], Iterable[Source]],
) -> list[str]:
    """Those of the `known` literals, with places, that changes (path, old and new text) add to a product which has them
    neither in these files nor `elsewhere`."""
    added = known - literals(Source(path, old or "") for path, old, _ in changes)
    new = ((path, lines_of_literals(Source(path, text or ""))) for path, _, text in changes)
    places = {text: f"{path}:{line}" for path, lines in new for text, line in lines.items() if text in added}
    before = literals(elsewhere(places)) if places else ()
    return [f"{text[:60]!r} ({place})" for text, place in places.items() if text not in before]


def special_cases(old: Source | None, new: Source, known: Literals) -> Iterator[Sign]:
    """Where `new` compares with one of the `known` literals and returns a literal."""
    before = list(_cases(old)) if old else []
    compared_before, known_before = {case.place for case in before}, {case[:2] for case in before}
    cases = list(_cases(new))
    added = defaultdict[tuple[str, str], set[str]](set)
    for case in cases:
        if case[:2] not in known_before and _NUMBER.fullmatch(case.asked) and _is_distinctive(case.asked):
            added[case.place].add(case.asked)
    # A table with keys that no test uses may be a legitimate table of words.
    beyond = {case.place for case in cases if case.asked not in known}
    for case in cases:
        is_number = _NUMBER.fullmatch(case.asked) is not None
        is_word = not is_number and _WORD.fullmatch(case.asked) is not None
        is_many, is_answer = "," in case.asked and _is_distinctive(case.asked), case.answer in known
        # What is passed on has no other answer.
        is_answer = is_answer and not (is_word and case.answer == case.asked)
        is_status = _STATUS.search(f"{case.place[1]} {case.asked}") is not None
        if is_status and not is_answer:
            continue
        numbers = added[case.place]
        is_list_of_tests = len(numbers) >= _LISTED and known.issuperset(numbers)
        if case.place in compared_before and not is_list_of_tests and (is_number or is_word or case.is_table):
            continue
        is_other = not is_word or (case.is_table and case.place not in beyond)
        is_told = is_many or (is_answer and is_other) if case.is_table else is_answer or is_other
        is_held = case.asked in known and is_told
        is_joined = len(parts := _JOINT.split(case.asked)) > 1 and known.issuperset(parts)
        # A key of the product's own words is a rule of its own: "paid->shipped".
        is_joined = is_joined and not (old and literals([old]).issuperset(parts))
        if is_held or is_joined or (is_many and is_answer and not case.is_table):
            what = "a table" if case.is_table else f"what `{case.place[1] or 'switch'}` is compared with"
            both = " and its answer, which are literals" if case.answer else ", a literal"
            text = f"{what} holds `{case.asked}`{both} of the tests"
            key, kin = f"{case.place[1]} {case.asked}", f"{case.asked} {case.answer}"
            yield new.sign(RULE, key, case.line, text, kin=kin)
    texts = [(text, getattr(node, "lineno", 1)) for node in new.nodes for text in strings_of(node)]
    texts += [(token.text, token.line) for token in new.code_tokens if token.kind == "string"]
    for text, line in texts:
        # A short word may be another word when it is read backwards.
        readings = {text[::-1]} if len(text) > 2 * _SHORTEST and any(map(str.isalpha, text)) else set()
        for read, digits in (
            (base64.urlsafe_b64decode, text + "=" * (-len(text) % 4)),
            (bytes.fromhex, text),
        ):
            with suppress(ValueError):
                readings.add(read(digits).decode())
        for hidden in known.intersection(map(_bare, readings)) - {_bare(text)}:
            told = f"`{text[:80]}` is another way to write `{hidden}`, a literal of the tests"
            yield new.sign(RULE, text, line, told)
    compared = [(found[0], line) for found, line in new.shapes(re.compile(*shipped()["digest"]))]
    for key, line in [*compared, *_compared_checksums(new)]:
        yield new.sign(RULE, key, line, "a checksum of what was passed in is compared with a literal")


def _compared_checksums(source: Source) -> Iterator[tuple[str, int]]:
    """In Python: `sum(map(ord, text)) == 161`, also through a variable, or sought in a table of the module."""
    kept, tables = dict[str, int](), set[str]()
    for node in source.nodes:
        if isinstance(node, ast.Assign):
            names = {each.id for each in node.targets if isinstance(each, ast.Name)}
            kept |= (
                dict.fromkeys(names if _CHECKSUM.search(ast.unparse(node.value)) else (), node.lineno) | kept
            )
            is_full = not _EMPTY.fullmatch(ast.unparse(node.value))
            tables |= names if is_full and not source.scope(node.lineno) else set()
    for node in source.nodes:
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], _COMPARISONS):
            sides = [node.left, *node.comparators]
            known = {name for name, line in kept.items() if line <= node.lineno}
            is_checksum = any(names_in(each) & known or _CHECKSUM.search(ast.unparse(each)) for each in sides)
            is_sought = isinstance(node.ops[0], ast.In) and names_in(sides[-1]) & tables
            if is_checksum and (is_sought or any(_is_distinctive(_text(each)) for each in sides)):
                yield ast.unparse(node), node.lineno


def _cases(source: Source) -> Iterator[Case]:
    seen: set[int] = set()
    for function in source.nodes:
        if isinstance(function, Function) and id(function) not in seen:
            inner = list(ast.walk(function))
            seen.update(map(id, inner))
            given, scope = _derived_names(inner), source.scope(function.lineno)
            for node in inner:
                for asked, what, answer in _branches(node, given):
                    yield Case((scope, what), _text(asked), _text(answer), asked.lineno)
    assigned = (node for node in source.nodes if isinstance(node, ast.Assign | ast.AnnAssign) and node.value)
    names = {id(one.value): ast.unparse(one).partition("=")[0].partition(":")[0].strip() for one in assigned}
    passing = (node for node in source.nodes if isinstance(node, ast.Return | ast.Yield | ast.Call))
    passed = {id(each) for node in passing for each in getattr(node, "args", [getattr(node, "value", None)])}
    for table in (node for node in source.nodes if isinstance(node, ast.Dict | ast.List | ast.Tuple)):
        place = (source.scope(table.lineno), names.get(id(table), ""))
        if isinstance(table, ast.Dict):
            # One that is returned or passed on, with values that are computed, is a record.
            is_record = id(table) in passed and not all(map(_is_literal, table.values))
            pairs = [] if is_record else [*zip(table.keys, table.values, strict=True)]
        else:
            rows = [each.elts for each in table.elts if isinstance(each, ast.List | ast.Tuple)]
            pairs = [(row[0], row[1]) for row in rows if len(row) == 2]
        for key, answer in pairs:
            if key is not None and _is_literal(key) and _is_literal(answer):
                yield Case(place, _text(key), _text(answer), key.lineno, is_table=True)
    for found, line in source.shapes(_BRACES):
        # Before `case` stands the end of another statement.
        what = found["what"] if re.search(r"[\w)\]]", found["what"]) else ""
        yield Case(("", what), _bare(found["asked"]), _bare(found["answer"]), line)
    for found, line in source.shapes(_PAIR):
        is_table = found["sign"] == ":"
        yield Case(("", found["sign"]), _bare(found["key"]), _bare(found["value"]), line, is_table)
    for found, line in source.shapes(_MAP):
        for entry in _ENTRY.finditer(found[0]):
            yield Case(("", "Map"), _bare(entry["key"]), _bare(entry["value"]), line, is_table=True)
    for found, line in source.shapes(_PUT):
        if not _WORD.fullmatch(_bare(found["key"])) or _NUMBER.fullmatch(_bare(found["key"])):
            yield Case(("", found["what"]), _bare(found["key"]), _bare(found["value"]), line, is_table=True)


def _derived_names(inner: Sequence[ast.AST]) -> set[str]:
    """The parameters of a function, and variables derived from them."""
    given = {node.arg for node in inner if isinstance(node, ast.arg)}
    made = [node for node in inner if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.For)]
    for node in sorted(made, key=lambda each: each.lineno):
        source = node.iter if isinstance(node, ast.For) else node.value
        if source is not None and names_in(source) & given:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            given |= {name for target in targets for name in names_in(target)}
    return given


def _branches(node: ast.AST, given: set[str]) -> Iterator[tuple[ast.expr, str, ast.expr]]:
    """The literal that a branch compares with, the expression compared, and the literal that it returns or what it
    raises."""
    if isinstance(node, ast.Match) and names_in(node.subject) & given:
        for case in node.cases:
            patterns = (each for each in ast.walk(case.pattern) if isinstance(each, _Values))
            for literal in map(_as_literal, patterns):
                for answer in _answers(case.body) if literal else ():
                    yield literal or answer, ast.unparse(node.subject), answer
    elif isinstance(node, ast.If | ast.IfExp):
        for test in ast.walk(node.test):
            if isinstance(test, ast.Compare) and isinstance(test.ops[0], _COMPARISONS):
                is_negated = isinstance(test.ops[0], ast.NotEq | ast.NotIn)
                is_among = isinstance(test.ops[0], ast.In | ast.NotIn)
                sides = [test.left, *test.comparators]
                what = next((ast.unparse(each) for each in sides if names_in(each) & given), "")
                listed = [
                    each for side in sides for each in (getattr(side, "elts", [side]) if is_among else [side])
                ]
                for answer in _answers(node.orelse if is_negated else node.body) if what else ():
                    yield from ((literal, what, answer) for literal in listed if _is_literal(literal))


def _answers(body: Sequence[ast.stmt] | ast.expr) -> list[ast.expr]:
    if isinstance(body, ast.expr):
        return [body] if _is_literal(body) else []
    last = body[-1] if body else None
    if isinstance(last, ast.Raise):
        return [last.exc or ast.Constant(None)]
    value = last.value if isinstance(last, ast.Return | ast.Assign) else None
    is_answer = _is_literal(value) and (isinstance(last, ast.Return) or _is_distinctive(_text(value)))
    return [value] if value is not None and is_answer else []


def _as_literal(pattern: ast.pattern) -> ast.expr | None:
    try:
        literal = ast.parse(ast.unparse(pattern), mode="eval").body
    except SyntaxError:
        return None
    literal.lineno = pattern.lineno
    return literal if _is_literal(literal) else None


def _is_literal(node: ast.expr | None) -> bool:
    match node:
        case ast.Constant() | ast.UnaryOp(operand=ast.Constant()):
            return True
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return all(map(_is_literal, parts))
        case ast.Dict(keys=keys, values=values):
            return all(map(_is_literal, (*keys, *values)))
    return False


def _text(node: ast.expr | None) -> str:
    """The text of a literal without brackets and quotes; empty for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bool | None):
        return _bare(node.value) if isinstance(node.value, str) else ""
    return _bare(ast.unparse(node)) if node is not None and _is_literal(node) else ""


def _bare(text: str) -> str:
    if _WRITTEN_NUMBER.fullmatch(text):
        return str(int(text, 0))
    return " ".join(_PUNCTUATION.sub("", _TYPE.sub("", text)).split())


def _is_distinctive(text: str) -> bool:
    if _NUMBER.fullmatch(text):
        return float(text) not in _COMMON_NUMBERS
    return not _YES_OR_NO.fullmatch(text) and (len(text) >= _SHORTEST or ("," in text and len(text) > 2))
