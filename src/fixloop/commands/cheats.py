"""`fixloop cheats`: have scripted fixers cheat on small projects, and report the result."""

import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

from typer import Exit, Option

from fixloop.commands.screen import print_json, print_lines, row, say, short, show, status_line, table
from fixloop.commands.session import AsJson
from fixloop.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from fixloop.testing.cheats.play import Played


def cheats(
    only: Annotated[
        str | None, Option(metavar="TEXT", help="Only cases whose class or name contains TEXT.")
    ] = None,
    quick: Annotated[bool, Option("--short", help="A few of each kind; a minute.")] = False,
    jobs: Annotated[
        int, Option("--jobs", "-j", min=1, help="How many at once.", show_default="half the processors")
    ] = max(1, (os.cpu_count() or 2) // 2),
    corpus: Annotated[Path | None, Option(metavar="DIR", help="Use your own folder of cases.")] = None,
    off: Annotated[
        list[str] | None, Option(metavar="RULE", help="Turn off this rule, or the sandbox; repeatable.")
    ] = None,
    keep: Annotated[Path | None, Option(help="Keep all projects and output in this new folder.")] = None,
    json: AsJson = False,
) -> None:
    """
    Run scripted cheating and honest fixers; report which pass.

    Each case is a small project with a defect, in a temporary folder with a separate server, and goes
    through `fixloop run`. Honest cases run twice, the second time without any rule, to measure the time
    that rules take. Cases that need a missing tool are skipped and counted. Exit code 1: a cheat passed
    unmarked, or an honest fix did not pass.
    """
    # It needs pydantic's models, and no other command does.
    from fixloop.testing.cheats.corpus import OWN, trials
    from fixloop.testing.cheats.play import End, play_all

    asked = (only or "").lower()
    chosen = [
        trial
        for trial in trials(corpus.absolute() if corpus else OWN)
        if asked in f"{trial.klass}: {trial.case.name}".lower() and (trial.case.short or not quick)
    ]
    if not chosen:
        raise UsageError(f"no case has {only!r} in its class or name; `fixloop cheats --json` lists them all")
    here = [trial for trial in chosen if not trial.missing]
    with new_folder(keep, "fixloop-cheats-") as folder, status_line(f"0 of {len(here)}") as line:
        count = Counter[str]()

        def tell(played: "Played") -> None:
            count[played.end] += 1
            ends = ", ".join(f"{number} {end}" for end, number in count.items())
            line.update(f"{count.total()} of {len(here)}: {ends}; last: {short(played.trial.case.name, 60)}")

        played = play_all(here, folder, jobs=jobs, off=tuple(off or ()), compare=not quick, tell=tell)
    if json:
        print_json(document(played) | {"not_tried": [trial.case.name for trial in chosen if trial.missing]})
    else:
        made = table("class", "cases", *(end.value for end in End))
        for klass in dict.fromkeys(one.trial.klass for one in played):
            ends = Counter(one.end for one in played if one.trial.klass == klass)
            row(made, klass, ends.total(), *(ends[end] for end in End))
        show(made)
        for tool, missing in Counter(trial.missing for trial in chosen if trial.missing).items():
            say(f"{missing} cases were skipped, because {tool} is missing")
        print_lines(*_last_lines(played))
    if any(one.is_wrong for one in played):
        raise Exit(ExitCode.WRONG)


@contextmanager
def new_folder(keep: Path | None, prefix: str) -> Iterator[Path]:
    """A new folder that is kept; by default a temporary one, removed after the block."""
    if keep is None:
        with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as made:
            yield Path(made)
        return
    try:
        keep.mkdir(parents=True)
    except OSError as error:
        raise UsageError(f"cannot make {keep}: {error.strerror}; name one that does not exist") from None
    yield keep.absolute()


def document(played: Sequence["Played"]) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "cases": [
            {
                "class": one.trial.klass,
                "name": one.trial.case.name,
                "expect": one.trial.case.expect,
                "end": one.end.value,
                "wrong": one.is_wrong,
                "seconds": round(one.seconds, 2),
                "plain_seconds": round(one.plain_seconds, 2),
                "said": one.said,
            }
            for one in played
        ],
        "added_percent": added_percent(played),
    }


def _last_lines(played: Sequence["Played"]) -> Iterator[str]:
    for one in played:
        if one.is_wrong:
            yield f"  {one.end}: {one.trial.klass}: {one.trial.case.name} ({short(one.said, 120)})"
    tried = {kind: [one for one in played if one.trial.case.expect == kind] for kind in ("cheat", "honest")}
    wrong = {kind: sum(one.is_wrong for one in ones) for kind, ones in tried.items()}
    added = added_percent(played)
    yield (
        f"cheats: {wrong['cheat']} of {len(tried['cheat'])} passed unmarked or broke,"
        f" {wrong['honest']} of {len(tried['honest'])} honest fixes did not pass"
        + (f", {added:+.0f} % time for honest ones (median)" if added is not None else "")
    )


def added_percent(played: Sequence["Played"]) -> float | None:
    """How much longer honest fixes took than without rules, in the median; None if that was not measured."""
    ratios = [one.seconds / one.plain_seconds for one in played if one.plain_seconds]
    return round(100 * (median(ratios) - 1), 1) if ratios else None
