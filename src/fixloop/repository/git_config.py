"""What a repository's own configuration would have git start, taken out of its hands.

What the user or the machine has configured stays in force, as `git lfs install` does; what only the repository says
does not. Settings for one call of git can take back neither a rewriting of paths, nor a remote named like one, nor
what a partial clone fetches with: those are refused.
"""

import re
from collections.abc import Sequence
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
