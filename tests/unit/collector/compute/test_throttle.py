"""Throttling takes the lost share of the clock out of a run's steps, at the pace of its slowest GPU."""

import numpy as np
import pytest
from tests.unit.collector.compute.ledger_scene import (
    Scene,
    gpu,
    job,
    launch,
    lease,
    samples,
    step_run,
    steps,
    together,
)

from flopwatch_collector.compute.inputs import JobWork
from flopwatch_collector.compute.throttle import throttling

FULL, SLOW = 1.8e9, 1.35e9
THERMAL, POWER_CAP = 0x40, 0x04


def clocked(number, clock, bits, start=0.0, end=600.0):
    rows = samples(number, start, end, job=1, kernel_active_ratio=1.0, process_count=1)
    count = rows["ts"].size
    return {**rows, "sm_clock_hertz": np.full(count, clock), "clock_event_reasons": np.full(count, bits)}


def test_a_quarter_of_the_clock_lost_by_one_gpu_is_a_quarter_of_the_runs_steps():
    rows = together(clocked(1, FULL, 0), clocked(2, FULL, 0), clocked(3, SLOW, THERMAL))
    scene = Scene(
        now=600.0,
        gpus=(gpu(1), gpu(2), gpu(3)),
        jobs=(job(world_size=3),),
        launches=(launch(begin_seconds=0.0),),
        leases=(lease(1, (1, 2, 3), 0.0, None),),
        samples=rows,
        steps=steps(step_run(1, 60, 0.0)),
        work={1: JobWork(throttling=throttling(rows, 600.0)[1])},
    )

    assert scene.seconds() == {"STEP": 1350.0, "THROTTLE": 450.0}


def test_throttling_for_half_of_a_window_counts_half():
    rows = together(
        clocked(1, FULL, 0), clocked(2, SLOW, THERMAL, 0.0, 150.0), clocked(2, FULL, 0, 150.0, 600.0)
    )

    found = throttling(rows, 600.0)[1]

    assert found.window.tolist() == [0]
    assert found.share.tolist() == pytest.approx([0.125])


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(
            together(clocked(1, FULL, 0), clocked(2, SLOW, POWER_CAP)), id="the-power-cap-is-no-fault"
        ),
        pytest.param(together(clocked(1, SLOW, THERMAL), clocked(2, SLOW, THERMAL)), id="no-usual-clock"),
        pytest.param(together(clocked(1, np.nan, THERMAL), clocked(2, FULL, 0)), id="clock-not-known"),
        pytest.param(samples(1, 0.0, 600.0, job=1), id="columns-not-read"),
    ],
)
def test_where_the_evidence_is_missing_nothing_is_taken(rows):
    assert throttling(rows, 600.0) == {}
