"""Garbage collection while the collector serves."""

import gc

from flopwatch_collector.__main__ import GARBAGE_ALLOCATIONS, seldom_collected


def test_cycles_are_searched_for_seldom_while_serving_and_as_before_afterwards() -> None:
    before = gc.get_threshold()

    with seldom_collected():
        inside, frozen = gc.get_threshold(), gc.get_freeze_count()

    assert inside[0] == GARBAGE_ALLOCATIONS > before[0]
    assert frozen > 1_000
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
