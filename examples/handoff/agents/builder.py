"""Plays the builder offline: builds what the specification says, nearly; asks where it cannot know."""

import json
import sys
from pathlib import Path

SOURCE = '''"""Tokens of logged-in users."""


def token(name):
    """A token for a user."""
    return {{"user": name, "kind": "{kind}"}}
'''
KINDS = ("JWT", "Session", "OAuth")


def main():
    request = sys.stdin.read()
    kind = next((kind for kind in KINDS if f"## The answer to your question\n\n{kind}" in request), "")
    if "Choose how" in request.splitlines()[0] and not kind:
        question = {
            "type": "escalation",
            "reason": "spec_ambiguity",
            "details": "Cannot determine auth method",
            "options": list(KINDS),
            "context": "spec line 3",
            "blocking": True,
        }
        print(json.dumps(question))
        return
    Path("tokens.py").write_text(SOURCE.format(kind=kind or "JWT"))
    result = {"status": "completed", "commit": "abc123", "files_changed": ["tokens.py"], "tests_added": []}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
