"""Prevents git from starting programs that a repository's own configuration names.

The configuration of the user and the machine stays in force, as for `git lfs install`. Settings for one git call cannot
override path rewriting, a remote named like a path, or the fetch program of a partial clone: those are refused.
"""

import os
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.errors import UsageError

PROTOCOLS: Final = "file:http:https:ssh"
"""The protocols that git may use for a repository that is not fixloop's: a partial clone fetches missing objects."""

_NEUTRAL: Final = (
    (re.compile(r"filter\..*\.(?:clean|smudge|process)"), ""),
    (re.compile(r"filter\..*\.required"), "false"),
    (re.compile(r"core\.sshcommand"), "ssh"),
    (re.compile(r"core\.askpass"), ""),
    (re.compile(r"core\.alternaterefscommand"), "true"),
)
_HELPER: Final = re.compile(r"credential\.(?:.*\.)?helper")
_REWRITES: Final = re.compile(r"url\..*\.(?:push)?insteadof")
_REMOTE: Final = re.compile(r"remote\.(.*)\.[^.]*")
_PROGRAM: Final = re.compile(r"remote\..*\.uploadpack")
_PARTIAL: Final = re.compile(r"extensions\.partialclone|remote\..*\.promisor")
_ITS_OWN: Final = ("local", "worktree")
_INCLUDES: Final = ("include.", "includeif.")
_MOST_KNOWN: Final = 64
_MOST_BYTES: Final = 100_000

Files = tuple[tuple[Path, bytes | None], ...]
_known: dict[Files, Sequence["Setting"]] = {}
"""Listings by the contents of the configuration files."""


class Setting(NamedTuple):
    """One line of the configuration in force."""

    scope: str
    key: str
    """With section and variable in lower case, as git lists it."""
    value: str


def settings_of(
    directory: Path, git_dir: Path | None, variables: Mapping[str, str], listed: Callable[[], bytes | None]
) -> Sequence[Setting]:
    """The configuration in force, from `listed`, the output of `git config --list --show-scope -z` or None.
    It is cached while the contents of all its files stay the same, unless it includes files."""
    before = _files(directory, git_dir, variables)
    if before and before in _known:
        return _known[before]
    found = listed()
    if found is None:
        return ()
    fields = found.decode("utf-8", "surrogateescape").split("\0")
    pairs = zip(fields[::2], fields[1::2], strict=False)
    settings = [Setting(scope, *setting.partition("\n")[::2]) for scope, setting in pairs]
    includes = any(each.key.startswith(_INCLUDES) for each in settings)
    # Unless they were changed in the meantime.
    if before and not includes and before == _files(directory, git_dir, variables):
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[before] = settings
    return settings


def _files(directory: Path, git_dir: Path | None, variables: Mapping[str, str]) -> Files:
    """The configuration files that git reads, with their contents; empty if they cannot be determined."""
    try:
        top = Path(os.path.realpath(directory))
        own = git_dir or next(filter(None, map(git_directory, (top, *top.parents))), None)
        if own is None:
            return ()
        shared = own / os.fsdecode(_content(own / "commondir") or b"").strip()
        home = Path(variables.get("HOME", "/"))
        xdg = Path(variables.get("XDG_CONFIG_HOME") or home / ".config")
        places = (shared / "config", own / "config.worktree", home / ".gitconfig", xdg / "git" / "config")
        return tuple((place, _content(place)) for place in places)
    except (OSError, ValueError):
        return ()


def git_directory(place: Path) -> Path | None:
    """The git directory of the repository that starts here. ValueError: it is incomplete or malformed."""
    inside = place / ".git"
    if inside.is_file():
        kind, _, path = os.fsdecode(_content(inside) or b"").partition(":")
        if kind != "gitdir":
            raise ValueError(inside)
        return place / path.strip()
    if not os.path.lexists(inside):
        inside = place
        if not (place / "HEAD").exists() or not (place / "objects").exists():
            return None
    if not all((inside / name).exists() for name in ("HEAD", "objects", "refs")):
        raise ValueError(inside)
    return inside


def _content(path: Path) -> bytes | None:
    """The content, or None if there is no file. ValueError: it is no regular file that can be read at once."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
        raise ValueError(path)
    return path.read_bytes()


def overrides(settings: Sequence[Setting], repository: str) -> dict[str, str]:
    """The environment that keeps git from starting programs of `repository`. UsageError: that is impossible."""
    own = list(dict.fromkeys(each.key for each in settings if each.scope in _ITS_OWN))
    is_partial = any(_PARTIAL.fullmatch(key) for key in own)
    for each in settings:
        if each.scope not in _ITS_OWN:
            continue
        remote = _REMOTE.fullmatch(each.key)
        rewrites = _REWRITES.fullmatch(each.key) and each.value[:1] in ("", "/", ".", "~")
        is_path = remote is not None and remote[1][:1] in ("/", ".")
        # A partial clone fetches missing objects at any time; git uses the first of several such programs.
        starts = is_partial and _PROGRAM.fullmatch(each.key)
        if rewrites or is_path or starts:
            what = "names a program to fetch with" if starts else "leads paths elsewhere"
            raise UsageError(
                f"the configuration of {repository} {what} ({each.key} = {each.value[:100]!r}); "
                "remove that line from its .git/config, or give the repository by URL"
            )
    # Replaced by the values of the user or the machine, or by ones with no effect.
    found = []
    for key in own:
        outer = [each.value for each in settings if each.key == key and each.scope not in _ITS_OWN]
        if _HELPER.fullmatch(key):
            # An empty value makes git forget the earlier ones.
            found += [(key, value) for value in ("", *outer)]
        for pattern, neutral in _NEUTRAL:
            if pattern.fullmatch(key):
                found.append((key, outer[-1] if outer else neutral))
    numbered = {
        f"GIT_CONFIG_{what}_{place}": word
        for place, pair in enumerate(found)
        for what, word in zip(("KEY", "VALUE"), pair, strict=True)
    }
    return {"GIT_ALLOW_PROTOCOL": PROTOCOLS, "GIT_CONFIG_COUNT": str(len(found)), **numbered}
