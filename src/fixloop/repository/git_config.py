"""What a repository's own configuration would have git start, taken out of its hands.

What the user or the machine has configured stays in force, as `git lfs install` does; what only the repository says
does not. Settings for one call of git can take back neither a rewriting of paths, nor a remote named like one, nor
what a partial clone fetches with: those are refused.
"""

import os
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.errors import UsageError

PROTOCOLS: Final = "file:http:https:ssh"
"""All that git may talk to for a repository that is not ours: a partial clone fetches what it lacks."""

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
"""What was listed while the files that git reads had these contents."""


class Setting(NamedTuple):
    """One line of the configuration that is in force."""

    scope: str
    key: str
    """With section and variable in lower case, as git lists it."""
    value: str


def read_settings(listed: bytes) -> list[Setting]:
    """What `git config --list --show-scope -z` prints."""
    fields = listed.decode("utf-8", "surrogateescape").split("\0")
    pairs = zip(fields[::2], fields[1::2], strict=False)
    split = ((scope, *setting.partition("\n")[::2]) for scope, setting in pairs)
    return [Setting(*parts) for parts in split]


def settings_of(
    directory: Path, git_dir: Path | None, variables: Mapping[str, str], listed: Callable[[], bytes | None]
) -> Sequence[Setting]:
    """The configuration in force, from `listed`, which is None where it cannot be read; not listed again while all
    files that make it up are as they were, byte by byte. Where one includes others it is listed each time."""
    before = _files(directory, git_dir, variables)
    if before and before in _known:
        return _known[before]
    found = listed()
    if found is None:
        return ()
    settings = read_settings(found)
    includes = any(each.key.startswith(_INCLUDES) for each in settings)
    # Unless somebody wrote to them meanwhile.
    if before and not includes and before == _files(directory, git_dir, variables):
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[before] = settings
    return settings


def _files(directory: Path, git_dir: Path | None, variables: Mapping[str, str]) -> Files:
    """The files that git reads its configuration from, with their contents; empty where that cannot be told."""
    try:
        top = Path(os.path.realpath(directory))
        own = git_dir or next(filter(None, map(_git_dir, (top, *top.parents))), None)
        if own is None:
            return ()
        shared = own / os.fsdecode(_content(own / "commondir") or b"").strip()
        home = Path(variables.get("HOME", "/"))
        xdg = Path(variables.get("XDG_CONFIG_HOME") or home / ".config")
        places = (shared / "config", own / "config.worktree", home / ".gitconfig", xdg / "git" / "config")
        return tuple((place, _content(place)) for place in places)
    except (OSError, ValueError):
        return ()


def _git_dir(place: Path) -> Path | None:
    """The git directory of the repository that begins here. Raises ValueError: it is neither there nor missing."""
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
    """None where nothing is. Raises ValueError: it is no file that can be read at once."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
        raise ValueError(path)
    return path.read_bytes()


def overrides(settings: Sequence[Setting], repository: str) -> dict[str, str]:
    """The environment that keeps git from starting what `repository` names. Raises UsageError: it cannot be kept."""
    own = list(dict.fromkeys(each.key for each in settings if each.scope in _ITS_OWN))
    is_partial = any(_PARTIAL.fullmatch(key) for key in own)
    for each in settings:
        if each.scope not in _ITS_OWN:
            continue
        remote = _REMOTE.fullmatch(each.key)
        rewrites = _REWRITES.fullmatch(each.key) and each.value[:1] in ("", "/", ".", "~")
        is_path = remote is not None and remote[1][:1] in ("/", ".")
        # What a partial clone lacks is fetched at any time; of several such programs git takes the first.
        starts = is_partial and _PROGRAM.fullmatch(each.key)
        if rewrites or is_path or starts:
            what = "names a program to fetch with" if starts else "leads paths elsewhere"
            raise UsageError(
                f"the configuration of {repository} {what} ({each.key} = {each.value[:100]!r}); "
                "remove that line from its .git/config, or give the repository by URL"
            )
    # Instead of them, what the user or the machine says, or what does nothing.
    found = []
    for key in own:
        outer = [each.value for each in settings if each.key == key and each.scope not in _ITS_OWN]
        if _HELPER.fullmatch(key):
            # An empty one makes git forget those before it.
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
