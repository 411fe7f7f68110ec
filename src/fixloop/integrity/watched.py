"""Code that can detect a test run: it names a test runner, inspects the stack, or patches other modules.

`difference` ignores names that the product contained before.
"""

import ast
import re
import sys
from collections.abc import Iterator
from typing import Final

from fixloop.integrity.paths import shipped
from fixloop.integrity.source import Function, Sign, Source, names_in, strings_of

RULE: Final = "watched"

_PYTHON: Final = {name: "|".join(shapes) for name, shapes in shipped()["watched"]["python"].items()}
_STRINGS: Final = re.compile(_PYTHON["strings"], re.IGNORECASE)
_IMPORTS, _VARIABLES, _NAMES, _PLACES = (
    re.compile(_PYTHON[name]) for name in ("imports", "variables", "names", "places")
)
_FRAMES: Final = frozenset({"f_back", "tb_frame", "f_locals", "f_globals", "co_filename"})
_CALLS: Final = frozenset({"exec", "eval", "compile", "__import__"})
_ASKS_INSTALLED: Final = re.compile(r"importlib\.(?:util\.find_spec|find_loader)|pkgutil\.find_loader")
_PATHS: Final = re.compile(r"sys\.path\.(?:insert|append|extend|remove|pop|clear)")
_TESTS: Final = re.compile(
    r"(?:[\W_]*tests?[\W_]+)?conftest.*|[\W_]*tests?[\W_]*|__main__(?:\.py)?", re.IGNORECASE
)
_TEMPORARY: Final = frozenset({"tempfile.gettempdir", "tempfile.tempdir"})
_PREFIX_TESTS: Final = (".startswith", ".is_relative_to")
_EXITS: Final = frozenset({"sys.exit", "exit", "quit", "SystemExit"})

_EMBEDS: Final = re.compile(r"//go:embed .*\btestdata\b")
_LANGUAGES: Final = {"go": "go", "rs": "rust"}


def watched(source: Source) -> Iterator[Sign]:
    """Each name and call that an ordinary fix does not need; `key` is the name."""
    if source.is_python:
        for kind in (_names, _strings, _changed_modules, _default_tests, _import_exits, _clean_exits):
            for key, line, text in kind(source):
                yield source.sign(RULE, key, line, text)
    elif source.tokens:
        shapes = shipped()["watched"][_LANGUAGES.get(source.ending, "javascript")]
        for found, line in source.shapes(re.compile("|".join(shapes))):
            yield source.sign(RULE, found[0], line, f"product code uses `{found[0].replace(' . ', '.')}`")
        for comment in source.comments if source.ending == "go" else ():
            if embeds := _EMBEDS.match(comment.text):
                text = "data of the tests is made a part of the product"
                yield source.sign(RULE, embeds[0], comment.line, text)


Found = Iterator[tuple[str, int, str]]


def _names(source: Source) -> Found:
    for node in source.nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            for top in filter(_IMPORTS.fullmatch, {each.split(".")[0] for each in names}):
                if not (isinstance(node, ast.ImportFrom) and node.level):
                    yield top, node.lineno, f"product code imports `{top}`"
        elif isinstance(node, ast.Name | ast.Attribute):
            name = source.dotted(node)
            if _NAMES.fullmatch(name) or (isinstance(node, ast.Attribute) and node.attr in _FRAMES):
                key = name if _NAMES.fullmatch(name) else node.attr if isinstance(node, ast.Attribute) else ""
                yield key, node.lineno, f"product code uses `{key}`"
        elif isinstance(node, ast.Call):
            name = source.dotted(node.func)
            if _NAMES.fullmatch(made := source.dotted(node)):
                yield made, node.lineno, f"product code uses `{made}`"
            is_plain = all(isinstance(each, ast.Constant) for each in node.args[:1])
            if name in _CALLS and not (is_plain and name == "__import__"):
                yield name, node.lineno, f"product code calls `{name}`"
            elif name == "len" and node.args and source.dotted(node.args[0]) == "sys.modules":
                yield "len(sys.modules)", node.lineno, "product code counts the modules that are loaded"
            elif _ASKS_INSTALLED.fullmatch(name) and (
                words := [*strings_of(node.args[0])] if node.args else []
            ):
                tops = {means.split(".")[0] for used in source.imported.values() for *_, means in used}
                if words[0].split(".")[0] not in tops:
                    text = f"product code asks whether `{words[0]}` is installed, and does not import it"
                    yield f"installed {words[0]}", node.lineno, text
            elif _PATHS.fullmatch(name):
                yield "sys.path", node.lineno, "product code changes where modules are looked for"


def _strings(source: Source) -> Found:
    ignored = {id(node.value) for node in source.nodes if isinstance(node, ast.Expr)}
    for node in source.nodes:
        line = getattr(node, "lineno", 1)
        for text in strings_of(node) if id(node) not in ignored else ():
            if _STRINGS.fullmatch(text) and len(text) <= 80:
                yield text, line, f"product code names `{text}`"
        parts = _operands(node)
        if isinstance(node, ast.Compare) or (parts and ast.unparse(parts[0]).endswith(_PREFIX_TESTS)):
            for name in {each for part in parts for each in _dotted_in(source, part)} & _TEMPORARY:
                yield name, line, f"product code asks whether something lies in `{name}`"
        words = [text for part in parts for text in strings_of(part)]
        names = (name for part in parts for name in _dotted_in(source, part))
        place = next(filter(_PLACES.fullmatch, names), "") if words else ""
        for word in words:
            is_variable = place == "os.environ" and _VARIABLES.fullmatch(word)
            is_runner = place == "sys.modules" and _IMPORTS.fullmatch(word.split(".")[0])
            is_told = is_variable or is_runner or (place and _TESTS.fullmatch(word))
            if is_told and (place, word) != ("__name__", "__main__"):
                yield f"{place} {word}", line, f"product code looks for `{word}` in `{place}`"


def _operands(node: ast.AST) -> list[ast.expr]:
    """The operands of an expression such as `"CI" in os.environ`, `os.getenv("CI")` or `os.environ["CI"]`."""
    match node:
        case ast.Compare():
            return [node.left, *node.comparators]
        case ast.Call():
            return [node.func, *node.args]
        case ast.Subscript():
            return [node.value, node.slice]
        case ast.BinOp(op=ast.Div()):
            return [node.left, node.right]
    return []


def _dotted_in(source: Source, node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Name | ast.Attribute):
            name = source.dotted(each)
            yield "os.environ" if name.startswith(("os.environ", "os.getenv")) else name


def _changed_modules(source: Source) -> Found:
    """`json.loads = mine`, `setattr(json, …)`, `sys.modules["json"] = …`: in the standard library any value except a
    constant, in other modules a lambda or a definition of this file."""
    own = {node.name for node in source.nodes if isinstance(node, Function | ast.ClassDef)}
    tops = {name.split(".")[0] for bound in source.imported.values() for *_, name in bound}
    values = {
        id(target): node.value
        for node in source.nodes
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    }
    for node in source.nodes:
        value = values.get(id(node))
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del()):
                name = source.dotted(node)
            case ast.Subscript(value=place, ctx=ast.Store()):
                name = _namespace(source, place)
            case ast.Call(func=ast.Attribute(value=place, attr="update" | "__setitem__" | "setdefault")):
                name = _namespace(source, place)
            case ast.Call(
                func=ast.Name(id="setattr") | ast.Attribute(attr="__setattr__"), args=[place, _, value]
            ):
                name = source.dotted(place)
            case _:
                continue
        top = name.split(".")[0]
        is_mine = isinstance(value, ast.Lambda) or (isinstance(value, ast.Name) and value.id in own)
        is_library = top in sys.stdlib_module_names and not isinstance(value, ast.Constant)
        if top in tops and name != "sys.argv" and (is_mine or is_library):
            yield name, node.lineno, f"product code replaces `{name}`"


def _namespace(source: Source, place: ast.expr) -> str:
    """The name of a module's namespace or of `sys.modules`; empty for any other expression."""
    if isinstance(place, ast.Call) and source.dotted(place.func) == "vars" and place.args:
        return source.dotted(place.args[0])
    name = source.dotted(place)
    return name if name.endswith(("sys.modules", "__dict__")) else ""


def _default_tests(source: Source) -> Found:
    """`if sleep is time.sleep`, where that is the default of a called parameter: only a test passes another value."""
    for node in (each for each in source.nodes if isinstance(each, Function)):
        defaults = {
            name
            for each in (*node.args.defaults, *node.args.kw_defaults)
            if "." in (name := source.dotted(each))
        }
        inner = [*ast.walk(node)]
        called = {ast.unparse(each.func) for each in inner if isinstance(each, ast.Call)}
        for test in (each for each in inner if isinstance(each, ast.Compare) and names_in(each) & called):
            for name in defaults.intersection(map(source.dotted, (test.left, *test.comparators))):
                yield name, test.lineno, f"product code asks whether it was given its own default `{name}`"


def _import_exits(source: Source) -> Found:
    """Code that can end the process at import."""
    if source.path.endswith("__main__.py") or source.text.startswith("#!") or source.tree is None:
        return
    waiting: list[ast.AST] = list(source.tree.body)
    while waiting:
        node = waiting.pop()
        is_main = isinstance(node, ast.If) and "__name__" in names_in(node.test)
        if is_main or isinstance(node, Function | ast.Lambda):
            continue
        waiting += ast.iter_child_nodes(node)
        name = source.dotted(node)
        if name in _EXITS:
            yield f"{name} at import", getattr(node, "lineno", 1), f"importing the module can reach `{name}`"


def _clean_exits(source: Source) -> Found:
    """Successful exits outside `main`: they may end a test runner's process with code 0."""
    for node in source.nodes:
        raised = node.exc if isinstance(node, ast.Raise) else node
        name = source.dotted(raised.func if isinstance(raised, ast.Call) else raised)
        code = ast.unparse(raised.args[0]) if isinstance(raised, ast.Call) and raised.args else "None"
        is_end = isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and name != "SystemExit")
        scope = source.scope(getattr(node, "lineno", 0))
        if is_end and name in _EXITS and code in ("None", "0") and scope and scope.split(".")[-1] != "main":
            yield f"{name} 0", getattr(node, "lineno", 1), f"product code ends the process well by `{name}`"
