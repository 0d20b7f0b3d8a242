"""A part of the labelled set through the real rules and state machine; the whole of it is a bench."""

import pytest
from tests.incidents.harder import harder
from tests.incidents.labelled import all_incidents
from tests.incidents.playing import play
from tests.incidents.world import Incident

INCIDENTS = (*all_incidents(), *harder())
PART = (*all_incidents()[::6], *harder()[::3])


def test_the_set_has_more_than_sixty_incidents_of_all_kinds() -> None:
    assert len(INCIDENTS) >= 60
    assert len({one.name for one in INCIDENTS}) == len(INCIDENTS)
    assert {one.kind for one in INCIDENTS} >= {
        "hang", "straggler, clock", "straggler, link", "straggler, power", "throttle", "data stall",
        "checkpoint storm", "evaluation", "batch ramp", "healthy",
    }  # fmt: skip


@pytest.mark.parametrize("incident", PART, ids=lambda one: one.name)
def test_what_is_there_is_found_and_nothing_else_is_said(incident: Incident) -> None:
    fired = play(incident)

    after = {one.rule for one in fired if one.seconds >= incident.onset_seconds}
    assert incident.expected <= after
    assert {one.rule for one in fired} <= incident.expected | incident.allowed
