import time

import pytest

from flopwatch_collector.model import BatchId
from flopwatch_collector.store.inbox import GROUP_ROWS, Inbox, Waiting
from flopwatch_collector.store.port import Overloaded, Unavailable


def waiting(sequence: int, count: int = 1) -> Waiting:
    return Waiting(batch=BatchId(node="n", spool="s", sequence=sequence), rows={}, count=count)


def sequences(group) -> list[int]:
    return [taken.batch.sequence for taken in group]


def test_a_group_waits_until_its_oldest_is_old_enough() -> None:
    inbox = Inbox(10, 0.05)
    inbox.put(waiting(1))
    began = time.monotonic()
    assert sequences(inbox.take()) == [1]
    assert time.monotonic() - began >= 0.04


def test_many_rows_go_at_once_and_a_group_ends_when_it_has_enough() -> None:
    inbox = Inbox(10, 3600.0)
    for sequence in range(3):
        inbox.put(waiting(sequence, GROUP_ROWS // 2))
    assert sequences(inbox.take()) == [0, 1]
    assert len(inbox) == 1
    inbox.close()
    assert sequences(inbox.take()) == [2]
    assert inbox.take() == []


def test_a_full_inbox_says_when_to_come_back_and_a_closed_one_that_it_is_closed() -> None:
    inbox = Inbox(1, 3600.0)
    inbox.put(waiting(1))
    with pytest.raises(Overloaded, match="retry after 5 s"):
        inbox.put(waiting(2))
    inbox.close()
    with pytest.raises(Unavailable, match="closed"):
        inbox.put(waiting(3))
