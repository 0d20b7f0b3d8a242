"""A job that has been silent for longer than anyone looks back, its steps arriving after its silence."""

import pytest
from tests.integration.accounting.books import PRICES, Books, GivenFleet
from tests.unit.collector.compute.ledger_scene import (
    gpu,
    job,
    launch,
    lease,
    samples,
    step_run,
    steps,
    together,
)

from flopwatch_collector.compute.buckets import BUCKETS
from flopwatch_collector.model import Columns, Node

BASE = 1_772_496_000.0
SILENT_FROM = 14_400.0
END = 36_000.0
HOT = {"kernel_active_ratio": 1.0, "process_count": 1, "power_watts": 650.0, "interval": 60.0}
COLD = {**HOT, "power_watts": 120.0}


def shifted(rows: Columns) -> Columns:
    return {name: values + BASE if name in {"ts", "end"} else values for name, values in rows.items()}


@pytest.fixture
def books(tmp_path):
    fleet = GivenFleet(
        nodes={
            1: Node(number=1, cluster="c", name="n1", first_seen_seconds=BASE, last_seen_seconds=BASE + END)
        },
        gpus={1: gpu(1, from_seconds=BASE)},
        jobs={1: job(1, world_size=1, start_seconds=BASE)},
        launches={1: launch(1)},
        leases={"1": lease(1, (1,), BASE, None)},
    )
    opened = Books(tmp_path, fleet, [BASE], prices=PRICES)
    yield opened
    opened.close()


def totals(rows: Columns) -> dict[str, float]:
    result: dict[str, float] = {}
    for bucket, amount in zip(rows["bucket"], rows["gpu_milliseconds"], strict=True):
        result[BUCKETS[int(bucket)]] = result.get(BUCKETS[int(bucket)], 0.0) + amount / 1000.0
    return result


def test_steps_that_arrive_after_their_silence_make_it_a_hang_to_its_end(books):
    books.put(gpu=shifted(samples(1, 28_800, END, **COLD)))
    books.settle(BASE + END)

    books.put(
        gpu=shifted(together(samples(1, 0, SILENT_FROM, **HOT), samples(1, SILENT_FROM, 28_800, **COLD))),
        step=shifted(steps(step_run(1, 240, 0.0, seconds=60.0))),
    )
    books.accounting.late(BASE, BASE + 28_800.0)
    for _ in range(3):
        books.settle(BASE + END)

    rows = books.accounting.ledger_rows(BASE, BASE + END)
    assert totals(rows) == {"STEP": SILENT_FROM, "HANG": END - SILENT_FROM}
