"""Hours that are wrong are remembered until they are right, across restarts."""

import pytest

from flopwatch_collector.bookkeeping.late import PATIENCE_TICKS, LateHours
from flopwatch_collector.store.control_sqlite import SqliteControl


@pytest.fixture
def control(tmp_path):
    opened = SqliteControl(tmp_path / "control.sqlite")
    yield opened
    opened.close()


def test_an_hour_is_ready_once_it_has_been_quiet_for_a_tick(control):
    late = LateHours(control)
    late.mark([7, 5])

    late.next_tick()
    early = late.ready()
    late.next_tick()

    assert (early, late.ready()) == ([], [7, 5])


def test_an_hour_into_which_data_keep_flowing_has_its_turn_all_the_same(control):
    late = LateHours(control)
    turns = []
    for tick in range(PATIENCE_TICKS + 1):
        late.mark([7])
        late.next_tick()
        if late.ready():
            turns.append(tick)

    assert turns == [PATIENCE_TICKS - 1, PATIENCE_TICKS]


def test_an_hour_marked_again_while_it_is_computed_stays(control):
    late = LateHours(control)
    late.mark([7])
    late.next_tick()
    late.next_tick()
    taken = late.ready()

    late.mark([7])
    late.done(taken)

    assert late.any()


def test_marks_outlast_a_restart_and_done_ones_do_not_come_back(control):
    late = LateHours(control)
    late.mark([7, 8])
    late.next_tick()
    late.next_tick()
    late.ready()
    late.done([8])

    again = LateHours(control)
    again.next_tick()

    assert again.ready() == [7]
