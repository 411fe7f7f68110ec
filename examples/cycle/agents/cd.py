"""Plays CD offline: stops at what is unclear, then builds, and mends what validation finds."""

from pathlib import Path

from progress import Run

FIRST = '''"""Logging in."""


def login(name, password="", token=""):
    """Whether somebody may log in, by password or by OAuth token."""
    return bool(password) or token == f"oauth-{name}"
'''
MENDED = FIRST.replace("bool(password)", 'PASSWORDS.get(name, "") == password != ""').replace(
    "\n\n\ndef", '\n\nPASSWORDS = {"ann": "secret"}\n\n\ndef', 1
)


def main():
    run = Run()
    if "hardware key" in run.name and "any vendor" not in run.request:
        # Nobody but a person can answer this.
        run.report("partial", "a vendor has to be chosen", issues=["decision: which vendor's hardware keys?"])
        return
    if "optional" not in run.read("ra", "requirements.md") and "hardware key" not in run.name:
        run.write("issues.md", "# Issues\n\n- FR-003: is OAuth optional or required?\n")
        run.report(
            "partial", "FR-003 is unclear", "issues.md", issues=["FR-003: is OAuth optional or required?"]
        )
        return
    mends = "FEEDBACK FROM VAS" in run.request
    Path("login.py").write_text(MENDED if mends or "hardware key" in run.name else FIRST)
    run.write(
        "implementation.md",
        f"# Implementation\n\n- login.py: {'passwords are compared' if mends else 'login'}\n",
    )
    run.report(
        "success",
        "Fixed issues" if mends else "Implementation complete",
        "implementation.md",
        tasks_completed=["TASK-001", "TASK-002"],
    )


if __name__ == "__main__":
    main()
