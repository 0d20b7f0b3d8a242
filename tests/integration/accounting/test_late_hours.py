"""Hours that are wrong are remembered until they are right, across restarts."""

import pytest

from flopwatch_collector.bookkeeping.late import LateHours
from flopwatch_collector.store.control_sqlite import SqliteControl


@pytest.fixture
def control(tmp_path):
    opened = SqliteControl(tmp_path / "control.sqlite")
    yield opened
    opened.close()


def test_wrong_hours_come_newest_first(control):
    late = LateHours(control)
    late.mark([5, 7])
    late.mark([7])

    assert list(late.marks().items()) == [(7, 2), (5, 1)]


def test_an_hour_marked_again_while_it_is_computed_stays(control):
    late = LateHours(control)
    late.mark([7])
    taken = late.marks()

    late.mark([7])
    late.done(taken)

    assert late.any()


def test_marks_outlast_a_restart_and_done_ones_do_not_come_back(control):
    late = LateHours(control)
    late.mark([7, 8])
    late.done({8: late.marks()[8]})

    again = LateHours(control)

    assert list(again.marks()) == [7]
