"""A whole day through the store: live, at once, and again, always with the same figures."""

from dataclasses import replace
from datetime import datetime, timezone

import pytest
from tests.integration.accounting.books import PRICES, Books, GivenFleet
from tests.unit.collector.compute.ledger_scene import Scene
from tests.unit.collector.compute.worked_day import DAY, worked_day

from flopwatch_collector.compute.buckets import BUCKETS
from flopwatch_collector.model import Columns, Node

BASE = datetime(2026, 3, 3, tzinfo=timezone.utc).timestamp()
EXPECTED = {
    "STEP": 134_400, "LOST": 16_000, "HANG": 5_120, "RECOVERY": 4_800, "STARTUP": 4_800, "CKPT": 1_440, "EVAL": 2_400,
    "BUSY_OPAQUE": 262_800, "HELD_IDLE": 25_200, "HELD_EMPTY": 28_800, "SPARE": 34_200, "FREE": 732_840,
    "FAULT": 57_600, "MAINT": 57_600, "UNKNOWN": 14_400,
}  # fmt: skip


def shifted(rows: Columns) -> Columns:
    return {name: values + BASE if name in {"ts", "end"} else values for name, values in rows.items()}


def fleet_of(scene: Scene) -> GivenFleet:
    def later(value: float | None) -> float | None:
        return None if value is None else value + BASE

    return GivenFleet(
        nodes={
            n: Node(
                number=n, cluster="c", name=f"n{n}", first_seen_seconds=BASE, last_seen_seconds=BASE + DAY
            )
            for n in (1, 2)
        },
        gpus={each.number: replace(each, from_seconds=BASE) for each in scene.gpus},
        jobs={each.number: each for each in scene.jobs},
        launches={
            each.number: replace(
                each, begin_seconds=later(each.begin_seconds), end_seconds=later(each.end_seconds)
            )
            for each in scene.launches
        },
        leases={
            each.lease_id: replace(
                each, start_seconds=each.start_seconds + BASE, end_seconds=later(each.end_seconds)
            )
            for each in scene.leases
        },
    )


def totals(rows: Columns) -> dict[str, float]:
    result: dict[str, float] = {}
    for bucket, amount in zip(rows["bucket"], rows["gpu_milliseconds"], strict=True):
        result[BUCKETS[int(bucket)]] = result.get(BUCKETS[int(bucket)], 0.0) + amount / 1000.0
    return result


@pytest.fixture
def books(tmp_path):
    scene = worked_day()
    opened = Books(tmp_path, fleet_of(scene), [BASE], prices=PRICES)
    opened.scene = scene
    yield opened
    opened.close()


def put_between(books: Books, start: float, end: float) -> None:
    scene = books.scene

    def part(rows: Columns, column: str = "ts") -> Columns:
        chosen = (rows[column] > start) & (rows[column] <= end)
        return shifted({name: values[chosen] for name, values in rows.items()})

    tables = {
        "gpu": part(scene.samples),
        "step": part(scene.steps),
        "phase": part(scene.phases, "end"),
        "event": part(scene.events),
    }
    books.put(**{name: rows for name, rows in tables.items() if rows["ts"].size})


def test_a_day_that_is_there_at_once_has_every_bucket_of_the_worked_day(books):
    put_between(books, -1.0, DAY)

    books.settle(BASE + DAY + 1200.0)

    assert totals(books.accounting.ledger_rows(BASE, BASE + DAY)) == EXPECTED


def test_a_day_that_came_hour_by_hour_has_the_same_figures(books):
    for hour in range(24):
        put_between(books, hour * 3600.0, (hour + 1) * 3600.0)
        books.tick(BASE + (hour + 1) * 3600.0)
    books.settle(BASE + DAY + 1200.0)

    assert totals(books.accounting.ledger_rows(BASE, BASE + DAY)) == EXPECTED
