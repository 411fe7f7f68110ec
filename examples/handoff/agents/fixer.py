"""Plays the fixer offline: mends what the reviewer found."""

import json
import re
import sys
from pathlib import Path


def main():
    request = sys.stdin.read()
    source = Path("tokens.py")
    text = source.read_text().replace(
        "    return {",
        '    if not name:\n        raise ValueError("no name, no token")\n    return {"expires": 3600, ',
    )
    source.write_text(text)
    ids = sorted(set(re.findall(r"ISS-\d+", request)))
    print(json.dumps({"status": "fixes_applied", "issues_fixed": ids, "commits": ["def456"]}))


if __name__ == "__main__":
    main()
