#!/usr/bin/env bash
# Installs fixloop into a separate environment, so that the project's does not change.
set -euo pipefail
"$FIXLOOP_ACTION_PYTHON" -m venv "$RUNNER_TEMP/fixloop"
"$RUNNER_TEMP/fixloop/bin/python" -m pip install --quiet --disable-pip-version-check "$GITHUB_ACTION_PATH"
echo "$RUNNER_TEMP/fixloop/bin" >>"$GITHUB_PATH"
