"""Proposes checks for a JavaScript or TypeScript project: from its scripts, else from its tools' configuration.

The script wins: a tool is called with the options it has there, and its report is added. A script with anything but
calls of known tools is run by its package manager. Reads files only.
"""

import json
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from glob import glob
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from fixloop.configuration.declarations import table_in, text_of
from fixloop.configuration.layout import files_below, projects_inside
from fixloop.configuration.model import Need, Proposal, proposal
from fixloop.configuration.scripts import Call, calls_of, needs_shell, plain
from fixloop.protocol.launchers import word_set


class Tool(NamedTuple):
    """How to call one tool as a check."""

    tests: bool = False
    report: tuple[str, ...] = ()
    dropped: frozenset[str] = frozenset()
    """Options to remove: they watch, write or choose another report. Those ending in `=` take a value."""
    asks: frozenset[str] = frozenset()
    """A call is a check only with one of these."""
    resolves: bool = False
    """It looks for the modules that the code imports."""


_TABLES: Final = tomllib.loads(Path(__file__).with_name("javascript.toml").read_text())
TOOLS: Final[Mapping[str, Tool]] = {
    name: Tool(
        each.get("tests", False),
        tuple(each.get("report", ())),
        word_set(each.get("dropped", "")),
        word_set(each.get("asks", "")),
        each.get("resolves", False),
    )
    for each in _TABLES["tool"]
    for name in each["names"]
}
BUILDERS: Final = frozenset({"tsc", "tsgo", "vue-tsc"})
_SCRIPTS: Final = _TABLES["scripts"]
# Not a shell pattern, despite the braces.
_PLACEHOLDER: Final = re.compile(r"\{(?:junit|jest|eslint)\}")
_WRITES: Final = re.compile(r"--(?:fix|write)\b")
_SOURCE_FILE: Final = r"\.[cm]?[jt]sx?$"
_TEST_FILE: Final = rf"(?:/_*(?:tests?|specs?)_*/.*|[./](?:test|spec)){_SOURCE_FILE}"
_MANAGERS: Final = frozenset({"npm", "pnpm", "yarn", "bun"})
_ENGINES: Final = {"node": "install Node.js", "bun": "install bun"}
"""They have a test runner, and are no packages of the project."""


class _Project(NamedTuple):
    directory: Path
    package: Mapping[str, Any]
    dependencies: Mapping[str, Any]
    scripts: Mapping[str, str]
    manager: str
    install: str
    builders: Mapping[bool, str] = MappingProxyType({})
    """The script that makes what test files load and git ignores (True), or what any file does (False)."""


def proposals(directory: Path) -> tuple[Proposal, ...]:
    """The checks for package.json and the files next to it in `directory`; none without it."""
    try:
        package = json.loads((directory / "package.json").read_text(encoding="utf-8-sig"))
    except OSError:
        return ()
    except (ValueError, RecursionError) as error:
        name, told = "package.json", f"it is not valid JSON: {error}"
        broken = proposal("test-runner", name, (), name, Need("file", name, "correct it"))
        return (broken._replace(reason=told),)
    if not isinstance(package, dict):
        return ()
    scripts = {name: text for name, text in table_in(package, "scripts").items() if isinstance(text, str)}
    managers = (each for each in _TABLES["manager"] if (directory / each["lock"]).is_file())
    locks = [(each["name"], each["install"]) for each in managers]
    named = str(package.get("packageManager", "")).partition("@")[0]
    manager = named if named in _MANAGERS else locks[0][0] if locks else "npm"
    install = next((command for name, command in locks if name == manager), f"{manager} install")
    if (directory / ".pnp.cjs").is_file():
        install = _TABLES["plug_n_play"]
    declared = {**table_in(package, "dependencies"), **table_in(package, "devDependencies")}
    project = _Project(directory, package, declared, scripts, manager, install)
    project = project._replace(builders={kind: _builder(project, for_tests=kind) for kind in (True, False)})
    found = list(_of_tests(project))
    for name in sorted(project.scripts, key=lambda name: not re.match(_SCRIPTS["checks"], name)):
        done = {each.tool for each in found}
        found += [each for each in _of_script(name, project) if each.tool not in done]
    done = {each.tool for each in found}
    # What a whole script comes to is not known: it may run a configured linter, on some files only.
    called = {each.runs_tests for each in found if each.runs_tests or each.tool.partition(" ")[0] == manager}
    for known in _TABLES["configured"]:
        files = sorted(file.name for pattern in known["files"] for file in project.directory.glob(pattern))
        where = files[0] if files else f"package.json: {known['key']}" if known.get("key") in package else ""
        if known["dependency"] in project.dependencies and where:
            call = Call(known["tool"], tuple(known["words"]), tuple(known.get("variables", ())))
            each = _proposal(call, where, project)
            found += [each] if each.tool not in done and each.runs_tests not in called else []
            done.add(each.tool)
    # A second call of a tool gets a number: check names are unique.
    seen: Counter[str] = Counter()
    for at, each in enumerate(found):
        seen[each.tool] += 1
        name = each.tool if seen[each.tool] == 1 else f"{each.tool} {seen[each.tool]}"
        found[at] = each._replace(check=each.check.model_copy(update={"name": name}))
    return tuple(found)


def _of_tests(project: _Project) -> Iterator[Proposal]:
    name = next((name for name in _SCRIPTS["tests"] if name in project.scripts), "")
    if not name or "no test specified" in project.scripts[name]:
        yield from _of_workspaces(project)
        return
    after = re.fullmatch(r"\w+ (?:run )?(\S+)", project.scripts.get(f"post{name}", ""))
    # A linter that the tests are followed by is a check of its own.
    left_out = {f"post{name}"} if after and re.fullmatch(_SCRIPTS["checks"], after[1]) else ()
    calls = calls_of(name, {each: text for each, text in project.scripts.items() if each not in left_out})
    if calls and all(_is_check(call, project) for call in calls):
        yield from (_proposal(call, f"package.json: scripts.{name}", project, name) for call in calls)
    else:
        yield _whole(name, project, runs_tests=True)


def _of_workspaces(project: _Project) -> Iterator[Proposal]:
    """The tests of all packages of a workspace whose root has no script for them."""
    directory, manager = project.directory, "pnpm" if project.manager == "pnpm" else "npm"
    words = _TABLES["workspaces"][manager]
    why = "package.json: workspaces" if "workspaces" in project.package else ""
    why = "pnpm-workspace.yaml" if (directory / "pnpm-workspace.yaml").is_file() else why
    folders = projects_inside(directory) if why else ()
    if own := [each for folder in folders for each in proposals(directory / folder) if each.runs_tests]:
        installs = project.dependencies or any(need.kind == "file" for each in own for need in each.needs)
        needs = [Need("program", manager, f"install {manager}")]
        needs += [Need("file", "node_modules", project.install)] if installs else []
        command = (manager, *words)
        yield proposal("test-runner", " ".join(command), command, why, *needs, runs_tests=True)


def _builder(project: _Project, *, for_tests: bool) -> str:
    """The script that makes what files load and git ignores, which no workspace has; empty if they load nothing of that
    kind. Linters only get what installing makes, as they seldom need more."""
    scripts, hooks = project.scripts, _SCRIPTS["hooks"]
    names = _SCRIPTS["builds"] if for_tests else _SCRIPTS["builds"][:1]
    builder = next((name for name in names if not re.search(hooks, scripts.get(name, "husky"))), "")
    rules = re.findall(r"^/?(\w[\w-]*)/?$", text_of(project.directory / ".gitignore"), re.MULTILINE)
    folders = "|".join({*rules} - {"node_modules", "coverage"})
    if not builder or not folders:
        return ""
    loaded = rf"['\"](?:\.\.?/)+(?:{folders})(?:/[^'\"]*)?['\"]"
    entries = json.dumps([project.package.get(key) for key in ("main", "module", "exports")])
    if re.search(rf'"(?:\./)?(?:{folders})/', entries):
        # A bundler may be told to find the package's own name among its sources; a script for installing is harmless.
        own = rf"|{re.escape(str(project.package.get('name')))}(?:/[^'\"]*)?" if builder == "prepare" else ""
        loaded += rf"|\b(?:from|import|require)\b[\s(]*['\"](?:(?:\.\./?)+{own})['\"]"
    paths = ((path, f"/{path.relative_to(project.directory)}") for path in files_below(project.directory))
    files = (path for path, name in paths if re.search(_TEST_FILE if for_tests else _SOURCE_FILE, name))
    calls = " ".join(scripts.get(name, "") for name in _SCRIPTS["tests"] if for_tests)
    is_called = re.search(rf"(?<![\w./:-])(?:\./)?(?:{folders})(?:/|\s|$)", calls)
    return builder if is_called or any(re.search(loaded, text_of(path)) for path in files) else ""


def _built(command: tuple[str, ...], script: str, project: _Project, *, for_tests: bool) -> tuple[str, ...]:
    """`command` of the script `script`, after the build that it needs and does not make itself."""
    builder = project.builders[for_tests]
    if not builder or _words(script, project.scripts) & {builder, *_words(builder, project.scripts)}:
        return command
    words = (f'"{word}"' if _PLACEHOLDER.search(word) else shlex.quote(word) for word in command)
    line = command[2] if command[:2] == ("sh", "-c") else " ".join(words)
    return ("sh", "-c", f"{project.manager} run {builder} && {line}")


def _words(name: str, scripts: Mapping[str, str]) -> frozenset[str]:
    """The words of a script and of the scripts that they name, without those for calling scripts."""
    text = " ".join(scripts.get(each, "") for each in (f"pre{name}", name, f"post{name}"))
    found = frozenset(re.findall(r"(?<![\w./-])[A-Za-z][\w:.-]*", text)) - {*_MANAGERS, "run", name}
    others = {each: text for each, text in scripts.items() if each != name}
    return found.union(*(_words(each, others) for each in found & others.keys()))


def _of_script(name: str, project: _Project) -> Iterator[Proposal]:
    """The linters and type checkers of one script, without tests, which are in the test script."""
    # `"eslint": "eslint"` is for other scripts, which add the files to look at.
    is_alias = name == project.scripts[name] == "eslint"
    if is_alias or re.search(_SCRIPTS["no_checks"], name) or name in _SCRIPTS["tests"]:
        return
    calls = calls_of(name, project.scripts)
    known = [call for call in calls or () if call.tool in TOOLS and _is_asked(call)]
    if re.fullmatch(_SCRIPTS["checks"], name) and (calls is None or len(known) < len(calls)):
        if not _WRITES.search(project.scripts[name]):
            yield _whole(name, project, runs_tests=False)
        return
    tools = (call for call in known if not TOOLS[call.tool].tests)
    yield from (_proposal(call, f"package.json: scripts.{name}", project, name) for call in tools)


def _is_asked(call: Call) -> bool:
    asks = TOOLS[call.tool].asks
    is_built = call.tool in BUILDERS and {"-b", "--build"} & set(call.arguments())
    return not is_built and (not asks or not asks.isdisjoint(call.arguments()))


def _is_check(call: Call, project: _Project) -> bool:
    """Whether a call in a test script is a check by itself; a compiler that writes files serves the next call."""
    if call.tool not in TOOLS or not _is_asked(call):
        return False
    if call.tool not in BUILDERS or "--noEmit" in call.arguments():
        return True
    return re.search(r'"noEmit"\s*:\s*true', text_of(project.directory / "tsconfig.json")) is not None


def _proposal(call: Call, where: str, project: _Project, script: str = "") -> Proposal:
    tool = TOOLS[call.tool]
    kept = tuple(_kept(call, tool))
    if call.tool == "vitest" and kept[:1] != ("run",):
        kept = ("run", *kept[kept[:1] in {("watch",), ("dev",)} :])
    words = (*tool.report, *kept) if call.tool == "node" else (*kept, *tool.report)
    programs = [word for word in (*call.wrapper[:1], call.tool) if word not in _ENGINES]
    sources = call.arguments() if call.tool in BUILDERS else ()
    matches = [word for word in sources if needs_shell((word,)) and glob(word, root_dir=project.directory)]
    built = [one for one in sources if one.endswith((".js", ".mjs", ".cjs", ".d.ts")) and one not in matches]
    wrapper = (_program(word) if word in programs else word for word in call.wrapper)
    command = (*(("env", *call.variables) if call.variables else ()), *wrapper, _program(call.tool), *words)
    if needs_shell(tuple(_PLACEHOLDER.sub("", word) for word in command)):
        # Only a shell expands the words.
        line = " ".join(f'"{word}"' if _PLACEHOLDER.search(word) else word for word in command)
        command = ("sh", "-c", line)
    else:
        command = tuple(plain(word) for word in command)
    if tool.tests or tool.resolves:
        command = _built(command, script, project, for_tests=tool.tests)
    engine = call.tool if call.tool in _ENGINES else "node"
    return proposal(
        "test-runner" if tool.tests else "code-quality",
        {"node": "node --test", "bun": "bun test"}.get(call.tool, call.tool),
        command,
        where,
        Need("program", engine, _ENGINES[engine]),
        *(Need("file", _program(word), project.install) for word in programs),
        *(Need("file", word, "build it, and keep it in git, or leave the check out") for word in built),
        runs_tests=tool.tests,
    )


def _kept(call: Call, tool: Tool) -> Iterator[str]:
    skips = False
    for word in call.words:
        option = plain(word).partition("=")
        if skips:
            skips = False
        elif f"{option[0]}=" in tool.dropped:
            skips = not option[1]
        elif plain(word) not in tool.dropped:
            yield word


def _whole(name: str, project: _Project, *, runs_tests: bool) -> Proposal:
    """The script run by its package manager, with the report options of its last tool, which gets added arguments."""
    report: tuple[str, ...] = ()
    last = project.scripts[name].rpartition("&&")[2].strip() if runs_tests else ""
    calls = calls_of("last", {"last": last}) or ()
    if len(calls) == 1 and not calls[0].wrapper:
        tool = TOOLS.get(calls[0].tool)
        # node's options precede its files, so they cannot be added at the end.
        takes_report = tool is not None and tool.tests and calls[0].tool != "node"
        if tool is not None and takes_report and calls[0].words == tuple(_kept(calls[0], tool)):
            report = tool.report
    separator = ("--",) if report and project.manager == "npm" else ()
    command = (project.manager, "run", name, *separator, *report)
    command = _built(command, name, project, for_tests=runs_tests)
    label = f"{project.manager} {name}" if name == "test" else f"{project.manager} run {name}"
    needs = [Need("program", project.manager, f"install {project.manager}")]
    needs += [Need("file", "node_modules", project.install)] if project.dependencies else []
    tools = {each.tool for each in calls_of(name, project.scripts) or ()} & project.dependencies.keys()
    needs += [Need("file", _program(tool), project.install) for tool in sorted(tools)]
    specialist, why = "test-runner" if runs_tests else "code-quality", f"package.json: scripts.{name}"
    return proposal(specialist, label, command, why, *needs, runs_tests=runs_tests)


def _program(tool: str) -> str:
    return tool if tool in _ENGINES else f"node_modules/.bin/{tool}"
