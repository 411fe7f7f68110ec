"""The tools of JavaScript and TypeScript as checks: with which report each is called, and without which options."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from fixloop.configuration.commands import option_set


class Tool(NamedTuple):
    """How one tool is called as a check."""

    tests: bool = False
    report: tuple[str, ...] = ()
    dropped: frozenset[str] = frozenset()
    """Options that watch, write or choose another report; those that end in `=` take a value."""
    asks: frozenset[str] = frozenset()
    """Without one of these a call is no check."""


_TYPES: Final = Tool(
    False,
    ("--noEmit", "--pretty", "false"),
    option_set(
        "-w --watch --noEmit --emitDeclarationOnly -d --declaration --pretty= --outDir= --declarationDir="
    ),
)
TOOLS: Final[Mapping[str, Tool]] = {
    "vitest": Tool(
        True,
        ("--reporter=junit", "--outputFile={junit}"),
        option_set("-w --watch --ui --reporter= --outputFile="),
    ),
    "jest": Tool(
        True, ("--json", "--outputFile={jest}"), option_set("--watch --watchAll --json --outputFile=")
    ),
    "mocha": Tool(
        True,
        ("--reporter", "xunit", "--reporter-option", "output={junit}"),
        option_set("-w --watch -R= --reporter= -O= --reporter-option= --reporter-options="),
    ),
    "node": Tool(
        True,
        ("--test-reporter=junit", "--test-reporter-destination={junit}"),
        option_set("--watch --test-reporter= --test-reporter-destination="),
        option_set("--test"),
    ),
    **dict.fromkeys(("tap", "ava", "tape", "uvu", "borp"), Tool(True)),
    "eslint": Tool(
        False,
        ("-f", "json", "-o", "{eslint}"),
        option_set("--fix --fix-dry-run -f= --format= -o= --output-file="),
    ),
    "oxlint": Tool(False, ("-f", "github"), option_set("--fix --fix-suggestions -f= --format=")),
    "biome": Tool(
        False,
        ("--reporter=github", "--max-diagnostics=none"),
        option_set("--write --fix --apply --unsafe --apply-unsafe --reporter= --max-diagnostics="),
        option_set("ci check lint format"),
    ),
    "prettier": Tool(
        False,
        ("--check",),
        option_set("-c --check -l --list-different"),
        option_set("-c --check -l --list-different"),
    ),
    **dict.fromkeys(("tsc", "tsgo", "vue-tsc"), _TYPES),
    **dict.fromkeys(
        ("standard", "xo", "ts-standard", "tsd", "tstyche"), Tool(False, (), option_set("--fix"))
    ),
    "oxfmt": Tool(False, (), frozenset(), option_set("--check")),
}
BUILDERS: Final = frozenset({"tsc", "tsgo", "vue-tsc"})
MANAGERS: Final = (
    ("pnpm-lock.yaml", "pnpm", "pnpm install --frozen-lockfile"),
    ("yarn.lock", "yarn", "yarn install --immutable"),
    ("bun.lock", "bun", "bun install --frozen-lockfile"),
    ("bun.lockb", "bun", "bun install --frozen-lockfile"),
    ("package-lock.json", "npm", "npm ci"),
    ("npm-shrinkwrap.json", "npm", "npm ci"),
)
# Where no script calls a tool: its dependency, the files or the key of its configuration, and how it is called.
CONFIGURED: Final = (
    ("vitest", "vitest", ("vitest.config.*", "vite.config.*"), "", ("run",)),
    ("jest", "jest", ("jest.config.*",), "jest", ()),
    ("mocha", "mocha", (".mocharc.*",), "mocha", ()),
    ("eslint", "eslint", ("eslint.config.*", ".eslintrc*"), "eslintConfig", (".",)),
    ("oxlint", "oxlint", (".oxlintrc.json", "oxlint.config.*"), "", ()),
    ("@biomejs/biome", "biome", ("biome.json", "biome.jsonc"), "", ("ci",)),
)
