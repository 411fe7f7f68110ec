"""What silences a tool or keeps a test from running: tool directives, attributes, marks, swallowed exceptions.

Comments are read as tokens and code as a syntax tree, so the words in a string do not count.
"""

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from fixloop.integrity.paths import shipped
from fixloop.integrity.source import Function, Sign, Source, names_in
from fixloop.integrity.tokens import Token

RULE: Final = "suppression"
EVERYTHING: Final = frozenset({"lint", "types", "security", "coverage", "tests"})

_DIRECTIVES: Final = {name: "|".join(each["directives"]) for name, each in shipped()["families"].items()}
_FAMILIES: Final = {name: re.compile(words, re.IGNORECASE) for name, words in _DIRECTIVES.items()}
_TOOLS: Final = {name: "|".join(each["tools"]) for name, each in shipped()["families"].items()}
_ANY: Final = "|".join(f"(?:{each})" for each in _DIRECTIVES.values())
_LISTED: Final = r"[\w@/][\w.@/-]*(?:\s*,\s*[\w@/][\w.@/-]*)*"
# After a space, only names such as B101 or no-console are rules; other words are the reason.
_CODES: Final = (
    rf"\b(?:\s*[:=\[(]\s*(?P<codes>{_LISTED})|\s+(?P<rules>(?:[BG]\d|[a-z@][\w@/]*[-/]\w){_LISTED}))?"
)
_COMMENTS: Final = {
    True: re.compile(rf"(?:(?<!\#)\#++\s*|\s(?=pylint:))(?P<what>{_ANY}){_CODES}", re.IGNORECASE),
    False: re.compile(rf"(?:\A|\n)[/*! \t\r\f\v]*(?P<what>{_ANY}){_CODES}", re.IGNORECASE),
}
_GENERATED: Final = re.compile(r"@generated\b|\bDO NOT EDIT\b")
_PROGRAM: Final = re.compile(
    r"(?://(?!go:build|.*\+build).*\n|\s)*//(?:go:build|\s*\+build) ignore\n(?://.*\n|\s)*package main\b"
)
_PLATFORMS: Final = re.compile("|".join(shipped()["platforms"]))
"""What a build constraint of Go may name without asking for a choice of whoever builds: `race` is one."""
_BUILD: Final = "build constraint"
_WRITTEN: Final = re.compile(r'// (?:@generated )?Code generated (?:by )?"?(\w[\w./-]*\w)')
_DOCTEST: Final = re.compile(r"^[ \t]*(?:>>>|\.\.\.).*#\s*doctest:.*\+SKIP", re.MULTILINE)
_RUST: Final = frozenset({"allow", "expect", "ignore", "coverage"})

_SKIPS: Final = re.compile(
    r"(?:.*\.)?(?:mark\.(?:skip|skipif|xfail)|skipTest)|pytest\.(?:skip|xfail|importorskip)"
    r"|(?:.*\.)?SkipTest|unittest\.(?:skip|skipIf|skipUnless|expectedFailure|case\.skip\w*)"
)
_SKIPPED: Final = re.compile(rf"(?<!\S)(?:{'|'.join(shipped()['skipped'])})(?!\S)")
_TRIED: Final = re.compile(rf"(?:{'|'.join(shipped()['tried'])}) ;? ?\}} \Z")

_EMPTY_CATCH: Final = re.compile("|".join(shipped()["swallowed"]))
_LONGEST_TRY: Final = 400
_NAMED_FOR_NOTHING: Final = re.compile(r"(?:_ =|void) ([A-Za-z_]\w*);?")
_SWALLOWED: Final = "every exception is caught here and nothing is done with it"
_MUTABLE: Final = re.compile(r"[\[{]|(?:dict|list|set)\(")
_SINGLETON: Final = re.compile(r"[(\[{](?:None|True|False),?[)\]}]")
_MADE_UP: Final = re.compile(r"(?:[\w.]+\()?(?:-?[\d.]+|b?'[^']*'|\[\]|\(\)|\{\})\)?")
"""A number, a text or an empty collection, or what is made of one, such as `Decimal(0)`."""
_BROAD: Final = frozenset({"Exception", "BaseException", "builtins.Exception", "builtins.BaseException"})


def families_of(commands: Iterable[str]) -> frozenset[str]:
    """The families of the tools in these command lines; all families if one line starts an unknown tool."""
    found: set[str] = set()
    for line in commands:
        known = {name for name, tools in _TOOLS.items() if re.search(rf"(?<![\w-])-*(?:{tools})(?!\w)", line)}
        found |= known or EVERYTHING
    return frozenset(found)


def suppressions(source: Source, families: Collection[str] = EVERYTHING) -> Iterator[Sign]:
    """All signs in a product file that silence a tool of these families or hide a failure from the caller."""
    for comment in source.comments:
        yield from _in_comment(source, comment, families)
    if "lint" in families:
        yield from _attributes(source)
    if not {"lint", "types", "security"}.isdisjoint(families):
        yield from _disguised(source)
    yield from _swallowed(source)
    yield from skips(source)


def generated(sign: Sign, text: str, directives: Iterable[str]) -> bool:
    """Whether a file of Go that is new is for some platforms or a program apart, or written by one that a
    `go:generate` directive starts."""
    if sign.key.startswith(_BUILD):
        return bool(text) and (sign.key == _BUILD or _PROGRAM.match(text) is not None)
    writer = _WRITTEN.match(text) if sign.key in ("DO NOT EDIT", "@generated") else None
    return writer is not None and any(writer[1] in re.split(r"[ /]", line) for line in directives)


def skips(source: Source) -> Iterator[Sign]:
    """What keeps tests from running; the only suppressions that matter in a test file."""
    for node in source.nodes:
        if isinstance(node, ast.Attribute | ast.Name) and _SKIPS.fullmatch(name := source.dotted(node)):
            yield source.sign(RULE, name, node.lineno, f"`{name}` keeps a test from running")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _DOCTEST.search(node.value):
            yield source.sign(RULE, "doctest: +SKIP", node.lineno, "an example in a docstring is skipped")
    for found, line in source.shapes(_SKIPPED):
        # In Go, a single word is a function of the project.
        if source.ending != "go" or "." in found[0]:
            name = found[0].replace(" ", "")
            yield source.sign(RULE, name, line, f"`{name}` keeps tests from running")


def _in_comment(source: Source, comment: Token, families: Collection[str]) -> Iterator[Sign]:
    for found in _COMMENTS[source.is_python].finditer(comment.text):
        what = " ".join(found["what"].split())
        if not any(_FAMILIES[each].match(comment.text, found.start("what")) for each in families):
            continue
        line = comment.line + comment.text.count("\n", 0, found.start("what"))
        if what in ("go:build", "+build"):
            # Go reads the old form only where the new one is missing.
            if what == "go:build" or not any(each.startswith("//go:build ") for each in source.lines):
                terms = re.findall(r"[\w.]+", comment.text[found.end("what") :].partition("\n")[0])
                key = " ".join([_BUILD, *(each for each in terms if not _PLATFORMS.fullmatch(each))])
                yield source.sign(RULE, key, line, f"`{what}` silences a tool")
            continue
        # Each listed code is a separate sign, so that removing one yields no new sign.
        for code in re.split(r"\s*,\s*", found["codes"] or found["rules"] or ""):
            key = f"{what} {code}".strip()
            yield source.sign(RULE, key, line, f"`{key}` silences a tool", kin=what)
    if marked := _GENERATED.search(comment.text):
        yield source.sign(RULE, marked[0], comment.line, f"`{marked[0]}` keeps tools away from the file")


def _attributes(source: Source) -> Iterator[Sign]:
    """Rust attributes such as `#[allow(…)]`."""
    found = source.code_tokens
    for index, token in enumerate(found):
        if source.ending != "rs" or token.text != "#":
            continue
        rest = [each.text for each in found[index + 1 : index + 40]]
        inner = rest[2:] if rest[:1] == ["!"] else rest[1:]
        words = inner[: inner.index("]")] if "]" in inner else []
        if not _RUST.isdisjoint(words if words[:1] == ["cfg_attr"] else words[:1]):
            key = f"#[{''.join(words)}]"
            yield source.sign(RULE, key, token.line, f"`{key}` silences a tool or a test")


def _swallowed(source: Source) -> Iterator[Sign]:
    for found, line in source.shapes(_EMPTY_CATCH):
        if not _TRIED.search(found.string, max(0, found.start() - _LONGEST_TRY), found.start()):
            yield source.sign(RULE, "empty catch", line, _SWALLOWED)
    for node in source.nodes:
        if isinstance(node, ast.ExceptHandler):
            caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            is_broad = any(each is None or source.dotted(each) in _BROAD for each in caught)
            if is_broad and all(map(_does_nothing, node.body)):
                code = "; ".join(map(ast.unparse, node.body))
                key = f"broad except: {code}"
                yield source.sign(RULE, key, node.lineno, _SWALLOWED, kin="broad except")
        elif isinstance(node, ast.Call):
            name = source.dotted(node.func)
            if name == "contextlib.suppress" and any(source.dotted(each) in _BROAD for each in node.args):
                yield source.sign(RULE, name, node.lineno, "every exception is suppressed here")
            elif name in ("warnings.filterwarnings", "warnings.simplefilter") and any(
                isinstance(each, ast.Constant) and each.value == "ignore" for each in node.args
            ):
                yield source.sign(RULE, name, node.lineno, "warnings are silenced here")


def _disguised(source: Source) -> Iterator[Sign]:
    """Violations in a form that tools do not recognise, such as `getattr` with a constant name."""
    shared = {
        name.id
        for node in (source.tree.body if source.tree else ())
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and node.value
        and _MUTABLE.match(ast.unparse(node.value))
        for name in ast.walk(node)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    }
    for node in source.nodes:
        if isinstance(node, ast.expr) and _is_constant_lookup(source, node):
            text = f"no tool sees what `{ast.unparse(node)}` finds"
            yield source.sign(RULE, "getattr", node.lineno, text)
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            among = ast.unparse(node.comparators[0])
            if _SINGLETON.fullmatch(among):
                text = f"no tool sees that something is compared with what `{among}` holds"
                yield source.sign(RULE, "compared in a collection", node.lineno, text)
        elif isinstance(node, ast.Expr | ast.Assign) and isinstance(node.value, ast.Name):
            is_idle = isinstance(node, ast.Expr) or list(map(ast.unparse, node.targets)) == ["_"]
            if is_idle and node.value.id in source.imported:
                text = f"`{node.value.id}` is imported, and named only for a tool"
                yield source.sign(RULE, "named for nothing", node.lineno, text)
        elif isinstance(node, Function):
            for each in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
                if source.dotted(each) in shared:
                    text = f"no tool sees that all calls share the default `{ast.unparse(each)}`"
                    yield source.sign(RULE, "shared default", each.lineno, text)

    for number, line in enumerate(source.lines if source.tokens else (), 1):
        if found := _NAMED_FOR_NOTHING.fullmatch(line.strip()):
            text = f"`{found[1]}` is named only for a tool"
            yield source.sign(RULE, f"{found[1]} named for nothing", number, text)


def _is_constant_lookup(source: Source, node: ast.expr) -> bool:
    """Whether it looks up an attribute by a constant name."""
    match node:
        case ast.Call(func=ast.Name("getattr") | ast.Attribute(attr="__getattribute__"), args=[_, name]):
            return not names_in(name)
        case ast.Call(func=ast.Call(func=finder, args=[name])):
            return source.dotted(finder) == "operator.attrgetter" and not names_in(name)
        case ast.Subscript(
            value=ast.Attribute(value=place, attr="__dict__") | ast.Call(func=ast.Name("vars"), args=[place]),
            ctx=ast.Load(),
        ):
            return not names_in(node.slice) and not names_in(place).isdisjoint(source.imported)
    return False


def _does_nothing(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Continue() | ast.Break() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Return(
            value=None | ast.Constant() | ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[])
        ):
            return True
        case ast.If(body=[*_, ast.Raise()], orelse=[]):
            return True
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            return _MADE_UP.fullmatch(ast.unparse(value)) is not None
    return False
