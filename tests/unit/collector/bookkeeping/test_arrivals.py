"""Past hours wait while data flow into them, and not for ever."""

from flopwatch_collector.bookkeeping.arrivals import PATIENCE_SECONDS, QUIET_SECONDS, Arrivals


def test_an_hour_and_the_two_after_it_wait_until_it_is_quiet():
    clock = [0.0]
    arrivals = Arrivals(lambda: clock[0])
    arrivals.note([7])

    at_once = arrivals.flowing()
    clock[0] = QUIET_SECONDS
    later = arrivals.flowing()

    assert (at_once, later) == (frozenset({7, 8, 9}), frozenset())


def test_every_batch_makes_an_hour_wait_anew():
    clock = [0.0]
    arrivals = Arrivals(lambda: clock[0])
    arrivals.note([7])
    clock[0] = QUIET_SECONDS - 1.0
    arrivals.note([7])
    clock[0] = QUIET_SECONDS + 1.0

    assert 7 in arrivals.flowing()


def test_an_hour_into_which_data_keep_flowing_has_its_turn_once_in_a_while():
    clock = [0.0]
    arrivals = Arrivals(lambda: clock[0])
    turns = []
    for second in range(int(2.5 * PATIENCE_SECONDS)):
        clock[0] = float(second)
        arrivals.note([7])
        if 7 not in arrivals.flowing():
            turns.append(second)
            arrivals.served([7])

    assert turns == [PATIENCE_SECONDS, 2 * PATIENCE_SECONDS]
