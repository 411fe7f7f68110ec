"""Plays RA offline: writes requirements, and decides what was unclear in them when it is asked."""

from progress import Run

DECIDED = "Optional (a password is enough)"


def main():
    run = Run()
    asked = "CLARIFICATION" in run.request
    oauth = f"OAuth is {DECIDED.lower()}" if asked else "Users can log in with OAuth"
    run.write(
        "requirements.md",
        f"# Requirements: {run.name}\n\n"
        "- FR-001: a user logs in with name and password\n"
        "- FR-002: a wrong password is refused\n"
        f"- FR-003: {oauth}\n",
    )
    if asked:
        run.report(
            "success",
            "FR-003 says now whether OAuth is required",
            "requirements.md",
            decision=DECIDED,
            rationale="More flexible for users",
            impact="Affects how FR-003 is implemented",
        )
        return
    run.write("edge-cases.md", "# Edge cases\n\n- EC-001: an empty password is a wrong one\n")
    run.report("success", "three requirements, one edge case", "requirements.md", "edge-cases.md")


if __name__ == "__main__":
    main()
