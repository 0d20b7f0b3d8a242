"""History is filled in where it is quiet, and lets go at once when the collector stops."""

import pytest
from tests.integration.accounting.books import Books, GivenFleet
from tests.unit.collector.compute.ledger_scene import gpu, samples

from flopwatch_collector.model import Node

BASE = 1_772_496_000.0
DAY = 86_400.0


@pytest.fixture
def books(tmp_path):
    node = Node(number=1, cluster="c", name="n1", first_seen_seconds=BASE, last_seen_seconds=BASE + DAY)
    fleet = GivenFleet(nodes={1: node}, gpus={1: gpu(1, from_seconds=BASE)})
    opened = Books(tmp_path, fleet, [BASE])
    yield opened
    opened.close()


def put(books: Books, start: float, end: float) -> None:
    books.put(gpu=samples(1, BASE + start, BASE + end, interval=60.0, kernel_active_ratio=0.0))


def test_a_stop_ends_the_filling_and_the_next_start_goes_on_with_it(books):
    put(books, 0.0, DAY)

    books.accounting.stop()
    books.tick(BASE + DAY)
    stopped = books.accounting.settled()
    books.close()
    books.open()
    books.settle(BASE + DAY)

    assert not stopped
    assert int(books.accounting.ledger_rows(BASE, BASE + DAY)["gpu_milliseconds"].sum()) == 86_400_000


def test_hours_into_which_data_come_are_computed_once_it_is_quiet(books):
    put(books, 43_200.0, DAY)
    books.tick(BASE + DAY)
    put(books, 0.0, 43_200.0)
    books.accounting.late(BASE, BASE + 43_200.0)

    early = books.accounting.ledger_rows(BASE, BASE + 36_000.0)["ts"].size
    books.settle(BASE + DAY)

    assert early == 0
    assert int(books.accounting.ledger_rows(BASE, BASE + DAY)["gpu_milliseconds"].sum()) == 86_400_000
