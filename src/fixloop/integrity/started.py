"""Which files a check's command starts: scripts, also through `make` or `npm run`.

A file that is only an argument, as in `ruff check shop.py`, is not started.
"""

import json
import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from fixloop.integrity.parts import has_parts
from fixloop.integrity.paths import shipped

Read = Callable[[str], str | None]
"""The text of a file, by its path from the repository root; None if it does not exist."""
_SHELL: Final = re.compile(r"(.*/)?(ba|da|z)?sh")
_SCRIPT: Final = re.compile(r"[^.]+|.*\.(sh|bash|py|[cm]?[jt]s|rb|pl|php)")
"""What may be a script: not the source of a compiled language."""
_SEPARATORS: Final = re.compile(r"[;&|()`{}\n]+")
_IGNORED: Final = re.compile(r"\$\w*|[\"']")
_TARGET: Final = re.compile(r"([\w./-]+)[^:=]*:(?!=)(.*)")


def started_by(command: Sequence[str], directory: str, read: Read) -> frozenset[str]:
    """The files, by path from the repository root, that `command` starts in `directory`, directly or indirectly."""
    found: set[str] = set()
    seen: set[tuple[str, ...]] = set()
    waiting = [tuple(command)]
    while waiting:
        words = waiting.pop()
        if words in seen:
            continue
        seen.add(words)
        for path, text in _started_file(words, directory, read):
            name = posixpath.basename(path)
            if not has_parts(path):
                found.add(path)
            if any(name in names for names in shipped()["opens"].values()):
                waiting += _commands(_recipes(name, text, words))
            elif name.endswith((".sh", ".bash")) or "." not in name:
                waiting += _commands(text.splitlines())
        if "-c" in words[:-1] and any(map(_SHELL.fullmatch, words)):
            waiting += _commands([words[words.index("-c") + 1]])
    return frozenset(found)


def _started_file(words: Sequence[str], directory: str, read: Read) -> Iterator[tuple[str, str]]:
    """The one file that a simple command starts or reads its commands from, with its text."""
    names: list[str] = []
    for word, following in zip(words, (*words, "")[1:], strict=True):
        if word == "-c":
            break
        if word.startswith("--chdir="):
            directory = posixpath.join(directory, word.removeprefix("--chdir="))
        if word == "-m":
            # A package that is started is the product.
            names.append(f"{following.replace('.', '/')}.py")
        names += shipped()["opens"].get(word, ())
        if _SCRIPT.fullmatch(posixpath.basename(word)) and not word.startswith(("-", "/")):
            names.append(word)
        # A script may still follow an interpreter, an option, a variable assignment or a number.
        plain = posixpath.basename(word).rstrip(".0123456789")
        if not (word.startswith("-") or "=" in word or not plain or plain in shipped()["starters"]):
            break
    for name in names:
        path = posixpath.normpath(posixpath.join(directory, name))
        text = read(path)
        if text is not None:
            yield path, text
            return


def _commands(lines: Sequence[str]) -> list[tuple[str, ...]]:
    """The simple commands in lines of shell code, without variables."""
    parts = [_IGNORED.sub(" ", part).split() for line in lines for part in _SEPARATORS.split(line)]
    return [tuple(part) for part in parts if part]


def _recipes(name: str, text: str, words: Sequence[str]) -> list[str]:
    """The lines that `make`, `just` or `npm` runs for the targets among `words` and their prerequisites."""
    if name.endswith(".json"):
        try:
            scripts = json.loads(text).get("scripts", {})
        except (ValueError, AttributeError):
            return []
        named = {prefix + word for word in words for prefix in ("", "pre", "post")}
        return [line for key, line in scripts.items() if key in named and isinstance(line, str)]
    needs: dict[str, list[str]] = {}
    lines: dict[str, list[str]] = {}
    target = ""
    for line in text.replace("\\\n", " ").splitlines():
        if line[:1].isspace():
            lines.setdefault(target, []).append(line.lstrip(" \t@-+"))
        elif found := _TARGET.match(line):
            target = found[1]
            needs.setdefault(target, []).extend(found[2].split())
    named = {word for word in words if word in needs}
    wanted = list(named) or [target for target in needs if not target.startswith(".")][:1]
    done: dict[str, None] = {}
    while wanted:
        target = wanted.pop()
        wanted += [need for need in needs.get(target, ()) if need not in done]
        done[target] = None
    return [line for target in done for line in lines.get(target, ())]
