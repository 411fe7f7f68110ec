"""Reads a project's own commands: from tox, nox, its scripts, its Makefile and its CI.

Reads them as data and leaves out what is not certain: shell, matrix variables, computed values.
"""

import ast
import re
import shlex
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

from fixloop.configuration.declarations import Declarations, items_in, table_in, text_of, toml_of, yaml_of
from fixloop.protocol.launchers import PYTHON_LAUNCHERS, started

_WARNED: Final = re.compile(r"(?:^|\0)-W\0?([^\0]+)")
_SEPARATORS: Final = re.compile(r"\s*(?:&&|\|\||;|\n)\s*")
_FACTOR: Final = re.compile(r"^!?[\w.{},!-]+:\s+")
# tox's substitutions: passed-on arguments and variables with their defaults, and its folders.
_SUBSTITUTIONS: Final = (
    (re.compile(r"\{posargs(?::([^{}]*))?\}|\[\]|\{env:\w+:([^{}]*)\}"), r"\1\2"),
    (re.compile(r"\{(?:toxinidir|tox_root)\}/?"), "./"),
    (re.compile(r"\{env_?bin_?dir\}/"), ""),
    (re.compile(r"--basetemp[= ]\{env_?tmp_?dir\}"), ""),
    (re.compile(r"\{env_?python\}"), "python"),
)
_INSTALLED: Final = re.compile(r"\{env_?site_?packages_?dir\}/")
_ASSIGNMENT: Final = re.compile(r"^([A-Za-z_]\w*)[ \t]*[:?]?=[ \t]*(.*)$", re.MULTILINE)
_VARIABLE: Final = re.compile(r"(?<!\$)\$[({](\w+)[)}]")
_DEFAULT: Final = re.compile(r"\$?\$\{\w+:?-([^{}$`]*)\}")
"""In a shell, and in a Makefile, whose dollar signs are doubled."""
NOT_OF_TESTS: Final = re.compile(r"PYTHON|COVERAGE|TOX|PIP_|UV_|VIRTUALENV|(?:PATH|HOME|TMPDIR|\w+FLAGS)=")
"""Variables that tell the interpreter or a tool where its files are; fixloop sets those that it needs."""
TARGET: Final = re.compile(r"^([A-Za-z0-9][\w./-]*)(?:[ \t]+[\w./+*='\"-]+)*[ \t]*:(?!=)", re.MULTILINE)
_RECIPE: Final = re.compile(r"^ +(.*?)(?: *\{\{ *\w+ *\}\})?$", re.MULTILINE)
"""A line of a justfile, without the arguments that are passed on."""


class ProjectCommand(NamedTuple):
    """One command as the project writes it."""

    words: tuple[str, ...]
    why: str
    """Its place, as `tox.ini: [testenv:lint]`."""
    text: str = ""
    """The line that only a shell could split; `words` is then empty."""


def project_commands(declared: Declarations, pyproject: Mapping[str, Any]) -> tuple[ProjectCommand, ...]:
    """The commands that are certain; those run on developers' machines first, CI last."""
    directory, tool = declared.directory, table_in(pyproject, "tool")
    commands = [*_of_tox(declared, pyproject), *_of_nox(directory / "noxfile.py")]
    hatch = table_in(tool, "hatch", "envs")
    variables = {f"hatch.envs.{name}.scripts": table_in(env, "env-vars") for name, env in hatch.items()}
    for place, scripts in {
        "pdm.scripts": table_in(tool, "pdm", "scripts"),
        "poe.tasks": table_in(tool, "poe", "tasks"),
        **{f"hatch.envs.{name}.scripts": table_in(env, "scripts") for name, env in hatch.items()},
    }.items():
        for name, script in scripts.items():
            entry = (script.get("cmd") or script.get("shell")) if isinstance(script, dict) else script
            given = _given(table_in({"script": script}, "script", "env") | variables.get(place, {}))
            for line in items_in(entry if isinstance(entry, list) else [entry], str):
                line = re.sub(r"\{args(?::([^{}]*))?\}", r"\1", line)
                commands += _split(line, f"pyproject.toml: tool.{place}.{name}", given)
    return (*commands, *makefile_and_ci_commands(directory))


def makefile_of(directory: Path) -> tuple[str, str]:
    """The name and text of the Makefile, or of a justfile as a Makefile; empty if there is none."""
    names = ("Makefile", "makefile", "GNUmakefile", "justfile", "Justfile", ".justfile")
    name = next((each for each in names if (directory / each).is_file()), "")
    text = text_of(directory / name).replace("\\\n", " ") if name else ""
    return name, _RECIPE.sub(r"\t\1", text) if name.endswith("ustfile") else text


def makefile_and_ci_commands(directory: Path) -> tuple[ProjectCommand, ...]:
    """The commands of the Makefile and of CI, which any language may have."""
    commands: list[ProjectCommand] = []
    makefile, text = makefile_of(directory)
    variables = {key: value.strip() for key, value in _ASSIGNMENT.findall(text)}
    target = ""
    for line in text.splitlines():
        if found := TARGET.match(line):
            target = found[1]
        elif line.startswith("\t") and target:
            for _ in range(3):
                line = _VARIABLE.sub(lambda found: variables.get(found[1], found[0]), line)
            commands += _split(line.strip().lstrip("@-+ "), f"{makefile}: {target}")
    folder = directory / ".github" / "workflows"
    for path in sorted((*folder.glob("*.yml"), *folder.glob("*.yaml"))):
        workflow = yaml_of(path)
        for name, job in table_in(workflow, "jobs").items():
            usual = table_in(workflow, "defaults", "run") | table_in({"job": job}, "job", "defaults", "run")
            for step in items_in(table_in({"job": job}, "job").get("steps"), dict):
                if isinstance(step.get("run"), str) and "working-directory" not in usual | step:
                    place = f"{path.relative_to(directory).as_posix()}: {name}"
                    commands += _split(step["run"].replace("\\\n", " "), place)
    return tuple(commands)


def arguments_of(tool: str, command: ProjectCommand) -> tuple[str, ...] | None:
    """The arguments of `tool` in `command`, also after `uv run` or `python -m`; None for another command. What
    Python is told about warnings is told to pytest, which has the same option."""
    for at, name, _ in started(command.words, PYTHON_LAUNCHERS):
        if name == tool:
            before = "\0".join(command.words[:at]) if tool == "pytest" else ""
            warned = (("-W", value) for value in _WARNED.findall(before))
            return (*chain.from_iterable(warned), *command.words[at + 1 :])
    return None


def _given(variables: Mapping[str, object]) -> tuple[str, ...]:
    """The variables of tests that are certain, as words before a command."""
    words = (f"{name}={value}" for name, value in variables.items() if name.isidentifier())
    return tuple(each for each in words if not NOT_OF_TESTS.match(each) and not re.search(r"[{}$`]", each))


def _split(line: str, why: str, given: tuple[str, ...] = ()) -> Iterator[ProjectCommand]:
    """The commands of a line of shell, one for each part; without words if only a shell could split them. `given`:
    variables that are set for it."""
    moved = ""
    for part in _SEPARATORS.split(_DEFAULT.sub(r"\1", line)):
        try:
            words = tuple(shlex.split(part, comments=True))
        except ValueError:
            words = (part, "$")
        if words[:1] in {("cd",), ("pushd",)}:
            moved = f"{part} && "
        elif words and (moved or any(re.search(r"[|<>`$]|[{}]", word) for word in words)):
            yield ProjectCommand((), why, moved + " ".join((*map(shlex.quote, given), part.strip())))
        elif words:
            yield ProjectCommand((*given, *words), why)


def _of_tox(declared: Declarations, pyproject: Mapping[str, Any]) -> Iterator[ProjectCommand]:
    sources = "src/" if (declared.directory / "src").is_dir() else ""
    for file in ("tox.ini", "setup.cfg"):
        sections = declared.ini.get(file, {})
        for name, section in sections.items():
            if name == "testenv" or name.startswith("testenv:"):
                both = (section, sections.get("testenv", {}))
                own, usual = (_substituted(each.get("set_env", each.get("setenv", ""))) for each in both)
                given = _given(dict(_ASSIGNMENT.findall(own.replace("{[testenv]setenv}", usual) or usual)))
                keys = ("commands_pre", "commands", "commands_post")
                text = "\n".join(section.get(key, "") for key in keys).replace("\\\n", " ")
                # tox's own folders are outside the project, and what it installs there is the project's.
                folder = re.sub(r"^\{tox(?:inidir|_root)\}/?|^[{.].*", "", section.get("changedir", ""))
                for line in text.splitlines():
                    line = _INSTALLED.sub(sources, line.strip())
                    factor, line = _FACTOR.match(line), _FACTOR.sub("", line)
                    # `lint: ruff check` of [testenv] is the command of [testenv:lint].
                    place = f"testenv:{factor[0].strip(': ')}" if factor and factor[0][0] != "!" else name
                    line = f"cd {folder} && {line}" if folder else line
                    yield from _split(_substituted(line).lstrip("-!@ "), f"{file}: [{place}]", given)
    for settings, file in (
        (toml_of(declared.directory / "tox.toml"), "tox.toml: "),
        (table_in(pyproject, "tool", "tox"), "pyproject.toml: tool.tox."),
    ):
        for name in ("env_run_base", *(f"env.{key}" for key in table_in(settings, "env"))):
            env = table_in(settings, *name.split(".", 1))
            given = _given(table_in(env, "set_env"))
            for words in items_in(env.get("commands"), list):
                if all(isinstance(word, str) for word in words):
                    yield from _split(shlex.join(words), f"{file}{name}", given)


def _substituted(text: str) -> str:
    for pattern, replacement in _SUBSTITUTIONS:
        text = pattern.sub(replacement, text)
    return text


def _of_nox(path: Path) -> Iterator[ProjectCommand]:
    """The constant words of `session.run(…)`; a computed word makes the command unknown."""
    try:
        tree = ast.parse(text_of(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for function in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
        why = f"{path.name}: session {function.name}"
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            if isinstance(call.func, ast.Attribute) and call.func.attr in {"run", "run_always"}:
                values = [getattr(arg, "value", None) for arg in call.args]
                words = [value for value in values if getattr(value, "attr", "") != "posargs"]
                env = next((each.value for each in call.keywords if each.arg == "env"), None)
                pairs = zip(env.keys, env.values, strict=True) if isinstance(env, ast.Dict) else ()
                # A computed value is as uncertain as one that only a shell could tell.
                named = {getattr(key, "value", ""): getattr(value, "value", "$") for key, value in pairs}
                if words and all(isinstance(word, str) for word in words):
                    yield ProjectCommand((*_given(named), *map(str, words)), why)
