"""Plays the reviewer offline: reads the code, and approves when nothing is missing."""

import json
from pathlib import Path


def main():
    text = Path("tokens.py").read_text()
    found = [
        {"id": number, "severity": severity, "file": "tokens.py", "line": 4, "description": what}
        for number, severity, word, what in (
            ("ISS-001", "critical", "raise ValueError", "a token without a name is made"),
            ("ISS-002", "high", "expires", "a token never ends"),
        )
        if word not in text
    ]
    print(json.dumps({"status": "needs_fixes", "issues": found} if found else {"status": "approved"}))


if __name__ == "__main__":
    main()
