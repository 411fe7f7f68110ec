#!/usr/bin/env bash
# Installs fixloop into a separate environment, so that the project's does not change.
set -euo pipefail
# Isolated (-I): the current folder is the checkout, and its files are not modules of this installation.
"$FIXLOOP_ACTION_PYTHON" -I -m venv "$RUNNER_TEMP/fixloop"
"$RUNNER_TEMP/fixloop/bin/python" -I -m pip install --quiet --disable-pip-version-check "$GITHUB_ACTION_PATH"
echo "$RUNNER_TEMP/fixloop/bin" >>"$GITHUB_PATH"
