#!/usr/bin/env bash
# Checks the checkout; a pull request is checked against its merge base. Needs no secret, so forks are safe.
set -uo pipefail
words=(check "$FIXLOOP_ACTION_PATH" --github --sarif "$FIXLOOP_ACTION_SARIF")
if [[ -n ${GITHUB_BASE_REF:-} ]]; then
  # The checkout of a pull request is a merge, whose first parent is the base; a shallow one has no merge base.
  base=$(git -C "$FIXLOOP_ACTION_PATH" merge-base "refs/remotes/origin/$GITHUB_BASE_REF" HEAD 2>/dev/null ||
    git -C "$FIXLOOP_ACTION_PATH" rev-parse --quiet --verify 'HEAD^1') &&
    words+=(--base "$base") ||
    echo "::warning title=fixloop::there is no base to compare with; give actions/checkout fetch-depth: 0"
fi
read -ra further <<<"$FIXLOOP_ACTION_ARGUMENTS"
fixloop "${words[@]}" ${further[@]+"${further[@]}"}
code=$?
echo "exit-code=$code" >>"$GITHUB_OUTPUT"
exit "$code"
