"""Who is called about an escalation, when, and what a file of contacts may say."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fixloop.errors import UsageError
from fixloop.serve.contacts import Contact, contacts_in, due

OPENED = datetime(2026, 11, 26, 10, tzinfo=UTC)
FOUR_HOURS = timedelta(hours=4)
ANNA, BEN = (Contact.model_validate({"name": name, "urls": ["json://x"]}) for name in ("anna", "ben"))


def played(
    contacts: list[Contact], hours: float, step: float = 0.25, start: float = 0.0
) -> list[tuple[float, str]]:
    """The calls by their time, in hours from the opening; each is answered."""
    told: dict[str, datetime] = {}
    made = []
    for tick in range(int(start / step), int(hours / step) + 1):
        now = OPENED + timedelta(hours=tick * step)
        for call in due(OPENED, FOUR_HOURS, contacts, told, now):
            told[call.mark] = now
            made.append((tick * step, call.mark))
    return made


def test_each_contact_is_called_once_reminded_at_half_time_then_the_next() -> None:
    assert played([ANNA, BEN], 24) == [
        (0, "asked anna"),
        (2, "reminded anna"),
        (4, "asked ben"),
        (6, "reminded ben"),
    ]


def test_quiet_hours_postpone_only_their_own_person_s_calls() -> None:
    sleeper = Contact.model_validate(
        {"name": "anna", "urls": ["json://x"], "quiet": "09:00-17:30", "zone": "UTC"}
    )

    # Ten o'clock: her quiet hours end at 17:30, 7.5 hours later; he is called when her time would be over.
    assert played([sleeper, BEN], 24) == [
        (4, "asked ben"),
        (6, "reminded ben"),
        (7.5, "asked anna"),
        (9.5, "reminded anna"),
    ]


def test_quiet_hours_may_span_midnight_in_the_person_s_time_zone() -> None:
    berlin = Contact.model_validate(
        {"name": "anna", "urls": ["json://x"], "quiet": "22:00-07:00", "zone": "Europe/Berlin"}
    )
    awake = datetime(2026, 11, 26, 20, 59, tzinfo=UTC)
    late, early = datetime(2026, 11, 26, 21, 30, tzinfo=UTC), datetime(2026, 11, 27, 5, 59, tzinfo=UTC)

    assert berlin.awake(awake) == awake
    assert berlin.awake(late) == berlin.awake(early) == datetime(2026, 11, 27, 6, tzinfo=UTC)


def test_after_an_absence_of_the_server_the_times_restart() -> None:
    assert played([ANNA, BEN], 40, start=20) == [
        (20, "asked anna"),
        (22, "reminded anna"),
        (24, "asked ben"),
        (26, "reminded ben"),
    ]


def test_an_unreachable_contact_does_not_block_the_next() -> None:
    told = {"failed anna": OPENED}

    early = due(OPENED, FOUR_HOURS, [ANNA, BEN], told, OPENED + timedelta(hours=3))
    late = due(OPENED, FOUR_HOURS, [ANNA, BEN], told, OPENED + timedelta(hours=4))

    assert [call.mark for call in early] == ["asked anna"]
    assert [call.mark for call in late] == ["asked anna", "asked ben"]


def test_a_file_of_contacts_is_read_in_its_order(tmp_path: Path) -> None:
    file = tmp_path / "contacts.toml"
    file.write_text(
        'answer_minutes = 30\n[[contact]]\nname = "ben"\nurls = ["mailto://x"]\nrole = "viewer"\n'
        '[[contact]]\nname = "anna"\nurls = ["slack://a/b/c"]\nprojects = ["0a1b2c3d"]\nquiet = "22:00-07:00"\n'
    )

    found = contacts_in(file)

    assert [each.name for each in found.contact] == ["ben", "anna"]
    assert found.answer_minutes == 30
    assert found.contact[1].covers("0a1b2c3d-47-1")
    assert not found.contact[1].covers("ffffffff-47-1")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "contact: Field required"),
        ("contact = 1", "contact: Input should be"),
        ("[[contact]]\nname = 'a b'\nurls = ['x://']", r"contact.0.name: String should match"),
        ("[[contact]]\nname = 'a'\nurls = []", "contact.0.urls: Tuple should have at least 1 item"),
        ("[[contact]]\nname = 'a'\nurls = ['x://']\nzone = 'Mars/North'", "is no time zone"),
        ("[[contact]]\nname = 'a'\nurls = ['x://']\nquiet = '22'", "contact.0.quiet"),
        ("[[contact]]\nname = 'a'\nurls = ['x://']\nphone = 1", "contact.0.phone: Extra inputs"),
        ("[[contact]]\nname = 'a'\nurls = ['x://']\n" * 2, "names somebody twice"),
        ("[[contact", "cannot be read as contacts"),
    ],
)
def test_an_invalid_file_of_contacts_is_refused_in_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "contacts.toml"
    file.write_text(text)

    with pytest.raises(UsageError, match=said):
        contacts_in(file)
