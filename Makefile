# Targets that need an environment create it first, once.
# `--dist worksteal` keeps the tests of a file together, because they often share a running deployment.
.PHONY: setup demo test pytest quick again attacks chaos recovery mutants lint types bench lock clean
.DEFAULT_GOAL := test

# If it were set, every process that a test starts would compile all of fixloop again.
unexport PYTHONDONTWRITEBYTECODE

# Tests that start processes mostly wait: three for each processor keep it busy.
TESTERS := $(shell expr 3 \* $$(getconf _NPROCESSORS_ONLN))

# One in SHARE of the longest tests runs, different ones for each commit; `make test SHARE=1` runs all.
SHARE ?= 8

PYTHON ?= $(shell for name in python3.12 python3.11 python3.13 python3.14 python3; do \
	$$name -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$name && break; done)
STAMP := .venv/.setup-stamp

setup: $(STAMP)

# `--no-deps`: for an extra such as `coverage[toml]`, pip would pick the newest release and refuse it as not locked.
$(STAMP): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "no Python 3.11 or newer with venv was found; install one (on Debian: apt install python3-venv) or name it: make PYTHON=/path/to/python3" >&2; exit 1; }
	@test -x .venv/bin/pip || $(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	.venv/bin/python -m pip check >/dev/null
	.venv/bin/python tests/unplugged.py
	@touch $@

demo: setup
	.venv/bin/python examples/demo.py $(PROFILE)

# mypy uses one processor for most of a minute; the tests use the others.
test: lint
	$(MAKE) --no-print-directory -j 2 types pytest

pytest: setup
	LONG_TESTS_SHARE=$(SHARE) .venv/bin/python -m pytest -n $(TESTERS) --maxprocesses 8 --dist worksteal --durations=15

quick: setup
	.venv/bin/python -m pytest -q -n logical --maxprocesses 4 --dist worksteal --capture=sys -m "not slow and not heavy"

again: setup
	.venv/bin/python -m tests.again --times 10
	.venv/bin/python -m tests.again --times 5 --burn 2

chaos: setup
	.venv/bin/python -m pytest -q -n auto --maxprocesses 8 --hypothesis-profile chaos tests/chaos
	ATTACKS=1 .venv/bin/python -m pytest -q tests/attacks/test_broker.py
	CRASH_ALL=1 .venv/bin/python -m pytest -q -n auto --maxprocesses 8 tests/crash/test_boundaries.py tests/crash/test_agents_boundaries.py
	CRASH_ALL=1 .venv/bin/python -m pytest -q -n 2 tests/crash/test_agents_killed.py tests/crash/test_child_workflows_killed.py
	for seed in 1 2 3; do .venv/bin/fixloop chaos --workflows 1000 --kills 100 --concurrency 4 --contrast --seed $$seed || exit; done
	.venv/bin/fixloop chaos --workflows 200 --kills 40 --concurrency 4 --seed 4 --twice
	for profile in cycle handoff; do for seed in 1 2 3; do .venv/bin/fixloop chaos --profile $$profile --workflows 200 --kills 100 --concurrency 4 --seed $$seed || exit; done; done
	for profile in cycle handoff; do .venv/bin/fixloop chaos --profile $$profile --workflows 60 --kills 30 --concurrency 4 --seed 4 --twice || exit; done
	for seed in 1 2 3; do .venv/bin/fixloop chaos --profile chat --workflows 60 --kills 100 --seed $$seed || exit; done

attacks: setup
	ATTACKS=1 .venv/bin/python -m pytest -q -n $(TESTERS) --maxprocesses 8 --dist worksteal --durations=15 tests/attacks

recovery: setup
	.venv/bin/python -m tests.crash.recovery --kills 50
	.venv/bin/python -m tests.crash.recovery --kills 50 --backlog 100
	.venv/bin/python -m tests.crash.lost_machine --rounds 5
	.venv/bin/python -m tests.crash.redis_gone --rounds 3
	.venv/bin/python -m tests.crash.all_killed --workflows 200 --runs 10 --contrast
	.venv/bin/python -m tests.crash.deadlines
	.venv/bin/python -m tests.crash.night
	.venv/bin/python -m bench.fleet --processes 60 --servers 1 --seconds 250

mutants: setup
	.venv/bin/python -m tests.mutants $(if $(SAMPLE),--sample $(SAMPLE) --seed $(or $(SEED),0))

lint: setup
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/python -m tests.house

types: setup
	.venv/bin/mypy

bench: setup
	.venv/bin/python -m bench.steps
	.venv/bin/python -m bench.waiting

lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		--group dev --all-extras --output-file requirements.lock pyproject.toml

clean:
	rm -rf .demo build dist .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -path ./.venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
