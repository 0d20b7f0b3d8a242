"""Days are frozen, revised when they change after that, and never made from raw data that are gone."""

from dataclasses import replace
from datetime import datetime, timezone

import pytest
from tests.integration.accounting.books import Books, GivenFleet
from tests.unit.collector.compute.ledger_scene import gpu, samples

from flopwatch import accelerators
from flopwatch_collector.accounting import DAY_SECONDS
from flopwatch_collector.model import Node

BASE = datetime(2026, 3, 3, tzinfo=timezone.utc).timestamp()
IDLE = {"kernel_active_ratio": 0.0, "process_count": 0}


class SiteFleet(GivenFleet):
    """A fleet whose site may name its own peaks."""

    site = ()

    def state(self):
        return replace(super().state(), site_accelerators=self.site)


@pytest.fixture
def books(tmp_path):
    node = Node(number=1, cluster="c", name="n1", first_seen_seconds=BASE, last_seen_seconds=BASE)
    fleet = SiteFleet(nodes={1: node}, gpus={1: gpu(1, from_seconds=BASE)})
    opened = Books(tmp_path, fleet, [BASE], raw_days=3.0)
    yield opened
    opened.close()


def put(books, start, end):
    books.put(gpu=samples(1, BASE + start, BASE + end, interval=60.0, **IDLE))


def day_of(books, now):
    return next(day for day in books.accounting.days(now, 3) if day.day == "2026-03-03")


def test_a_day_is_frozen_a_day_after_its_end(books):
    put(books, 0, 2 * DAY_SECONDS)

    books.settle(BASE + 1.9 * DAY_SECONDS)
    before = day_of(books, BASE + 1.9 * DAY_SECONDS)
    books.settle(BASE + 2.0 * DAY_SECONDS)
    after = day_of(books, BASE + 2.0 * DAY_SECONDS)

    assert (before.complete, before.frozen, before.revision) == (True, False, 1)
    assert (after.complete, after.frozen, after.revision) == (True, True, 1)


def test_a_frozen_day_that_changes_has_a_new_revision(books):
    put(books, 0, 30_000)
    put(books, 40_000, 2 * DAY_SECONDS)
    now = BASE + 2.1 * DAY_SECONDS
    books.settle(now)
    books.settle(now)
    first = day_of(books, now)

    put(books, 30_000, 40_000)
    books.accounting.late(BASE + 30_000, BASE + 40_000)
    books.settle(now + 60)
    books.settle(now + 60)
    second = day_of(books, now + 60)
    books.settle(now + 120)

    assert (first.frozen, first.revision, second.revision) == (True, 1, 2)
    assert first.unknown_ratio > second.unknown_ratio
    assert second.revised_seconds == now + 60
    assert day_of(books, now + 120).revision == 2


def test_windows_whose_raw_data_are_gone_stay_as_they_were_computed(books):
    put(books, 0, 5 * DAY_SECONDS)
    now = BASE + 5 * DAY_SECONDS
    books.settle(now)
    old = books.accounting.ledger_rows(BASE, BASE + DAY_SECONDS)["gpu_milliseconds"].tolist()
    puts = books.accounting.filled()

    books.accounting.again(BASE, BASE + DAY_SECONDS)
    books.settle(now + 10)

    assert books.accounting.settled()
    assert books.accounting.filled() == puts
    assert books.accounting.ledger_rows(BASE, BASE + DAY_SECONDS)["gpu_milliseconds"].tolist() == old


def test_a_changed_peak_of_the_site_has_kept_windows_computed_again(books):
    put(books, 0, 7200)
    books.settle(BASE + 9000)
    before = books.accounting.filled()
    books.settle(BASE + 9010)
    same = books.accounting.filled()

    books.fleet.site = (accelerators.overridden("NVIDIA H100 80GB HBM3", {"bf16": 500.0}, "the site"),)
    books.settle(BASE + 9020)

    assert same == before
    assert books.accounting.filled() > before
