"""The six specialists, their phases and gates (A2, U1-U3)."""

from typing import Final, NamedTuple

from fixloop.errors import UsageError


class Specialist(NamedTuple):
    """One validator slot."""

    name: str
    """Short name, as in ids (K3)."""
    phase: str
    failure_type: str
    """The failure type in B20."""
    expected: str
    """Expected Outcome of a fix request (A29, U3)."""

    @property
    def handle(self) -> str:
        """The agent's address, `@{name}-specialist`."""
        return f"@{self.name}-specialist"

    @property
    def title(self) -> str:
        """`Test Runner Specialist`, as a signature."""
        return f"{self.name.replace('-', ' ').title()} Specialist"


SPECIALISTS: Final = (
    Specialist(
        "unit-test",
        "Unit Test Writing",
        "Test Failures",
        "All unit tests pass, public functions and classes have tests",
    ),
    Specialist(
        "integration-test",
        "Integration Test Writing",
        "Test Failures",
        "All integration tests pass, component interactions have tests",
    ),
    Specialist("test-runner", "Test Execution", "Test Failures", "All tests pass, coverage ≥80%"),
    Specialist(
        "code-quality", "Code Quality", "Quality Issues", "0 lint errors, 0 type errors, formatting compliant"
    ),
    Specialist(
        "security",
        "Security Assessment",
        "Security Vulnerabilities",
        "0 critical and 0 high vulnerabilities, no hard-coded secrets",
    ),
    Specialist(
        "e2e-accessibility", "E2E & Accessibility", "E2E Failures", "All user flows pass, WCAG 2.1 AA 100%"
    ),
)
"""In the fixed order of the phases (U2)."""

NAMES: Final = tuple(entry.name for entry in SPECIALISTS)
AFTER_THE_LAST_PHASE: Final = "Completion"


def specialist(name: str) -> Specialist:
    """The specialist called `name`, with or without `-specialist` (K3); UsageError if there is none (A2)."""
    short = name.removeprefix("@").removesuffix("-specialist")
    for entry in SPECIALISTS:
        if entry.name == short:
            return entry
    raise UsageError(f"unknown specialist {name!r}; the six are {', '.join(NAMES)}")
