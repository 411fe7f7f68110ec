"""Switch each rule of the table off in a copy of the project, and check that a test that cites it fails.

`python -m tests.mutants [WORD ...]` tries all rules, or those whose name contains a word; with `--sample 40 --seed 7`
the rules of randomly drawn requirements, and asks for missing ones. The working tree is only read.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from tests.mutants.rules import Rule, asked_first, proofs_of, rules, switched_off
from tests.mutants.sample import asked, drawn
from tests.proofs import ROOT

AT_A_TIME: Final = 2
LIMIT_SECONDS: Final = 300
WHOLE_SECONDS: Final = 1800
"""Of the tests of all rules at once, before any is switched off."""
GUARDED: Final = 0.98
"""The share of the rules that has to make a test fail."""
COPIED: Final = ("src", "tests", "bench", "workers", "workflows", "config", "docs", "pyproject.toml")
PASSED, FAILED, ENDLESS = 0, 1, -1
"""pytest's exit codes, and that it had no end in time; every other one means that the tests could not be run."""


class Verdict(NamedTuple):
    """The result of the tests without a rule."""

    rule: Rule
    is_guarded: bool
    detail: str


def main(words: Sequence[str] = (), sample: int = 0, seed: int = 0) -> int:
    """The exit code: 0 if the rules are guarded, and each requirement of a sample has one."""
    known = rules()
    numbers = drawn(sample, seed)
    missing = [told for told in (asked(number, known) for number in numbers) if told]
    print(*missing, sep="\n")
    verdicts = []
    for verdict in _verdicts(_wanted(known, words, numbers)):
        told = f"{'guarded  ' if verdict.is_guarded else 'UNGUARDED'}  {verdict.rule.name}: {verdict.detail}"
        print(told, flush=True)
        verdicts.append(verdict)
    guarded = sum(verdict.is_guarded for verdict in verdicts)
    print(f"{guarded} of {len(verdicts)} rules are guarded")
    if sample:
        print(
            f"{len(numbers) - len(missing)} of {len(numbers)} requirements drawn with seed {seed} have a rule"
        )
    return 0 if verdicts and guarded >= GUARDED * len(verdicts) and not missing else 1


def _wanted(known: Sequence[Rule], words: Sequence[str], numbers: Sequence[str]) -> list[Rule]:
    if numbers:
        return [rule for rule in known if not set(numbers).isdisjoint(rule.requirements)]
    return [rule for rule in known if not words or any(word in rule.name for word in words)]


def _verdicts(wanted: Sequence[Rule]) -> Iterator[Verdict]:
    """The result for each rule, once known; nothing if the tests fail with all rules in force."""
    with tempfile.TemporaryDirectory(prefix="fixloop-mutants-") as place:
        whole = _copy(Path(place) / "whole")
        nodes = sorted({node for rule in wanted for node in asked_first(rule)})
        code, said = _run(whole, nodes, limit_seconds=WHOLE_SECONDS) if nodes else (PASSED, "")
        if code != PASSED:
            print(f"the tests fail with all rules in force:\n{said}")
            return
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            yield from pool.map(partial(_judge, Path(place)), wanted)


def _judge(place: Path, rule: Rule) -> Verdict:
    proofs = proofs_of(rule)
    if not proofs:
        return Verdict(rule, False, f"no test cites {_cited(rule)}")
    folder = _copy(place / re.sub(r"\W+", "-", rule.name))
    (folder / rule.file).write_text(switched_off(rule), encoding="utf-8")
    code, said = PASSED, ""
    for _, group in groupby(proofs, key=lambda proof: proof.is_slow):
        if code == PASSED:
            code, said = _run(folder, [proof.node for proof in group])
    shutil.rmtree(folder)
    if code == FAILED:
        return Verdict(rule, True, _first_red(said))
    if code == ENDLESS:
        return Verdict(rule, rule.hangs, f"{said}{'' if rule.hangs else ', and no test turned red'}")
    if code == PASSED:
        return Verdict(rule, False, f"{len(proofs)} tests of {_cited(rule)} stay green")
    return Verdict(rule, False, f"the tests could not be run:\n{said}")


def _cited(rule: Rule) -> str:
    return ", ".join((*rule.requirements, *rule.tests))


def _copy(folder: Path) -> Path:
    folder.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder)
    return folder


def _run(folder: Path, nodes: list[str], limit_seconds: int = LIMIT_SECONDS) -> tuple[int, str]:
    """pytest on `nodes` in `folder`, with its sources; returns the exit code and the output."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-rfE", "--tb=line", "-p", "no:cacheprovider"]
    sources = str(folder / "src")
    variables = {"PYTHONPATH": sources, "MUTANT_SOURCES": sources, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [*command, "--hypothesis-seed=0", *nodes],
            cwd=folder,
            env=os.environ | variables,
            capture_output=True,
            text=True,
            timeout=limit_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ENDLESS, f"no end within {limit_seconds} s"
    return done.returncode, done.stdout[-4000:] + done.stderr[-2000:]


def _first_red(said: str) -> str:
    found = re.search(r"^(?:FAILED|ERROR) (?:\S+::)?(.*?)(?: - .*)?$", said, re.MULTILINE)
    return found[1] if found else said.strip().splitlines()[-1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("words", nargs="*", help="of the names of rules")
    parser.add_argument("--sample", type=int, default=0, help="how many requirements are drawn")
    parser.add_argument("--seed", type=int, default=0)
    sys.exit(main(**vars(parser.parse_args())))
