"""A whole day through the store: live, at once, and again, always with the same figures."""

from dataclasses import replace
from datetime import datetime, timezone

import numpy as np
import pytest
from tests.integration.accounting.books import PRICES, Books, GivenFleet
from tests.unit.collector.compute.ledger_scene import Scene
from tests.unit.collector.compute.worked_day import DAY, worked_day

from flopwatch_collector.bookkeeping.window import Windows
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


def test_a_day_that_came_piece_by_piece_has_the_same_figures(books):
    for start in np.arange(0.0, DAY, 10_800.0):
        put_between(books, start, start + 10_800.0)
        books.tick(BASE + start + 10_800.0)
    books.settle(BASE + DAY + 1200.0)

    assert totals(books.accounting.ledger_rows(BASE, BASE + DAY)) == EXPECTED


def test_the_ratios_of_the_worked_day_come_from_one_answer(books):
    put_between(books, -1.0, DAY)
    books.settle(BASE + DAY + 1200.0)

    answer = books.accounting.answer(BASE, BASE + DAY)
    today, day = books.accounting.days(BASE + DAY + 1200.0, 2)[::-1]
    classes = {each.name: each.gpu_milliseconds for each in answer.classes}

    assert answer.capacity_gpu_milliseconds == 1_382_400_000
    assert sum(classes.values()) == 1_382_400_000
    assert answer.billable_ratio == pytest.approx(0.312326, abs=5e-7)
    assert answer.billable_upper_ratio == pytest.approx(0.322743, abs=5e-7)
    assert answer.allocated_ratio == pytest.approx(0.351389, abs=5e-7)
    assert 1.0 - classes["down"] / 1_382_400_000 == pytest.approx(0.916667, abs=5e-7)
    assert (
        answer.waste_gpu_milliseconds
        == (25_200 + 28_800 + 16_000 + 5_120 + 4_800 + 4_800 + 1_440 + 2_400) * 1000
    )
    assert answer.waste_money == pytest.approx(answer.waste_gpu_milliseconds / 3.6e6 * 2.0)
    assert (day.billable_ratio, day.complete, day.valid) == (answer.billable_ratio, True, True)
    assert not today.complete


def test_data_that_arrive_late_change_the_day_and_its_sums(books):
    put_between(books, -1.0, 21_000.0)
    put_between(books, 43_200.0, DAY)
    books.settle(BASE + DAY + 1200.0)
    before = totals(books.accounting.ledger_rows(BASE, BASE + DAY))

    put_between(books, 21_000.0, 43_200.0)
    books.accounting.late(BASE + 21_000.0, BASE + 43_200.0)
    books.settle(BASE + DAY + 1300.0)

    assert before["UNKNOWN"] > EXPECTED["UNKNOWN"]
    assert totals(books.accounting.ledger_rows(BASE, BASE + DAY)) == EXPECTED


def test_a_restart_keeps_what_was_final_and_what_was_known_to_be_wrong(books):
    put_between(books, -1.0, 43_200.0)
    books.settle(BASE + 43_200.0)
    put_between(books, 43_200.0, DAY)
    books.accounting.late(BASE + 40_000.0, BASE + 40_100.0)

    books.close()
    books.open()

    assert not books.accounting.settled()
    books.settle(BASE + DAY + 1200.0)
    assert totals(books.accounting.ledger_rows(BASE, BASE + DAY)) == EXPECTED


def test_the_newest_minutes_are_in_the_answer_before_they_are_final(books):
    put_between(books, -1.0, 12_000.0)
    books.tick(BASE + 12_000.0)

    rows = books.accounting.ledger_rows(BASE + 9_000.0, BASE + 12_000.0, job=1)

    assert books.accounting.provisional_from_seconds == BASE + 11_100.0
    assert int(rows["gpu_milliseconds"].sum()) == 8 * 3000 * 1000
    assert totals(rows) == {"STEP": 8 * 2940.0, "CKPT": 8 * 60.0}


def test_the_same_range_by_hour_and_by_five_minutes_has_the_same_sums(books):
    put_between(books, -1.0, 21_600.0)
    books.settle(BASE + 25_200.0)

    fine = books.accounting.job_rollups(BASE, BASE + 21_600.0, [1])
    coarse = books.accounting.job_rollups(BASE, BASE + 21_600.0, [1], hourly=True)

    assert coarse["ts"].size == 6
    assert np.nansum(coarse["steps"]) == pytest.approx(540 + 540 + 400 + 200)
    for name in ("steps", "gpu_seconds", "step_seconds", "kernel_active_ratio_sum"):
        assert np.nansum(coarse[name]) == pytest.approx(np.nansum(fine[name]))


def test_the_windows_of_a_day_read_one_by_one_are_those_read_at_once(books):
    put_between(books, -1.0, DAY)
    books.settle(BASE + DAY + 1200.0)
    windows, state, now = Windows(books.store, books.control), books.fleet.state(), BASE + DAY + 1200.0

    whole = windows.compute(state, BASE + 10_800.0, BASE + 18_000.0, now).ledger
    parts = [
        windows.compute(state, BASE + start, BASE + start + 300.0, now).ledger
        for start in range(10_800, 18_000, 300)
    ]

    joined = {name: np.concatenate([part[name] for part in parts]).tolist() for name in whole}
    assert joined == {name: values.tolist() for name, values in whole.items()}
