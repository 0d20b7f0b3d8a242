"""What a minute of the ledger costs at 10,000 GPUs and 2,000 jobs: processor time, against a sort of that many."""

import time

import numpy as np
import pytest

from flopwatch_collector.compute.inputs import LedgerInputs
from flopwatch_collector.compute.ledger import account
from flopwatch_collector.compute.timeline import JobTimeline, job_timeline
from flopwatch_collector.model import (
    EVENT_COLUMNS,
    PHASE_COLUMNS,
    STEP_COLUMNS,
    Columns,
    Gpu,
    JobRecord,
    Launch,
    LeaseRecord,
    Node,
    empty,
)

pytestmark = pytest.mark.bench
GPUS, JOBS, INTERVAL = 10_000, 2_000, 10.0
NOW = 1_772_496_000.0 + 3_600.0
SPAN = (NOW - 660.0, NOW)
GPUS_A_JOB = 4
MINUTES_OF_TICK = (SPAN[1] - SPAN[0]) / 60.0


def samples() -> Columns:
    """Eleven minutes and what the ledger reads before them, of every GPU."""
    ts = np.arange(SPAN[0] - 330.0, NOW + 1.0, INTERVAL)
    gpu = np.repeat(np.arange(1, GPUS + 1), ts.size).astype(np.float64)
    count = gpu.size
    leased = gpu <= JOBS * GPUS_A_JOB
    return {
        "ts": np.tile(ts, GPUS),
        "gpu": gpu,
        "node": (gpu - 1) // 8 + 1,
        "job": np.where(leased, (gpu - 1) // GPUS_A_JOB + 1, 0.0),
        "interval_seconds": np.full(count, INTERVAL),
        "kernel_active_ratio": np.where(leased, 0.97, 0.0),
        "power_watts": np.where(leased, 610.0, 71.0),
        "tensor_active_ratio": np.where(leased, 0.4, 0.0),
        "process_count": np.where(leased, 1.0, 0.0),
    }


def timeline(record: JobRecord) -> JobTimeline:
    """Ten minutes and more of steps, one every ten seconds, a checkpoint in between."""
    ends = np.arange(NOW - 3_600.0, NOW, 10.0) + 10.0
    rows = {name: np.full(ends.size, np.nan) for name in STEP_COLUMNS}
    number = float(record.number)
    given = {
        "ts": ends, "job": number, "node": 1.0, "launch": number, "source": 2.0, "rank": 0.0, "seconds": 9.0,
        "step": np.arange(1.0, ends.size + 1), "steps_covered": 1.0, "steady": 1.0, "skipped_steps": 0.0,
    }  # fmt: skip
    rows |= {name: np.broadcast_to(value, ends.shape).astype(np.float64) for name, value in given.items()}
    launch = Launch(number=record.number, job=record.number, source=2, source_id="log", session=0)
    return job_timeline(record, (launch,), rows, empty(PHASE_COLUMNS), NOW)


def inputs() -> LedgerInputs:
    """The fleet: half of the jobs report steps, the others only work."""
    jobs = {
        number: JobRecord(
            number=number, job_id=f"j{number}", key=str(number), cluster="c", name="j", scheduler="slurm",
            world_size=GPUS_A_JOB,
        )
        for number in range(1, JOBS + 1)
    }  # fmt: skip
    leases = tuple(
        LeaseRecord(
            lease_id=str(number),
            job=number,
            gpus=tuple(range((number - 1) * GPUS_A_JOB + 1, number * GPUS_A_JOB + 1)),
            source="slurm",
            start_seconds=NOW - 7_200.0,
        )
        for number in jobs
    )
    return LedgerInputs(
        now=NOW,
        nodes={
            n: Node(number=n, cluster="c", name=f"n{n}", first_seen_seconds=0, last_seen_seconds=NOW)
            for n in range(1, GPUS // 8 + 1)
        },
        gpus={
            n: Gpu(
                number=n,
                cluster="c",
                node=(n - 1) // 8 + 1,
                slot=str(n),
                uuid=str(n),
                name="H100",
                from_seconds=0.0,
            )
            for n in range(1, GPUS + 1)
        },
        jobs=jobs,
        leases=leases,
        timelines={number: timeline(job) for number, job in jobs.items() if number % 2},
        samples=samples(),
        events=empty(EVENT_COLUMNS),
    )


def cpu(work: object, times: int = 3) -> float:
    """Least processor time of a few runs."""
    found = []
    for _ in range(times):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def test_a_minute_of_ten_thousand_gpus_costs_well_under_a_second(record_property):
    known = inputs()
    order = np.random.default_rng(1).random(known.samples["ts"].size)
    null = cpu(lambda: np.sort(order))

    tick = cpu(lambda: account(known, *SPAN))

    record_property("tick_cpu_seconds", round(tick, 3))
    record_property("cpu_seconds_per_minute_of_ledger", round(tick / MINUTES_OF_TICK, 4))
    record_property("ratio_to_one_sort_of_the_samples", round(tick / null, 1))
    print(f"\nledger: {tick:.3f} CPU-s for {MINUTES_OF_TICK:.0f} min, {tick / null:.1f} sorts")
    assert tick / MINUTES_OF_TICK < 0.5
