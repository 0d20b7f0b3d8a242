"""Goodput of runs, against figures worked out by hand and published ones."""

import numpy as np
import pytest
from tests.unit.collector.compute.ledger_scene import job, launch, phases, step_run, steps

from flopwatch.recovery import LossTerms, loss_ratio, optimum_interval_seconds
from flopwatch_collector.compute.buckets import CODE, REASON_CODE, empty_rows
from flopwatch_collector.compute.goodput import goodput_of, together
from flopwatch_collector.compute.liability import liability_of_exit
from flopwatch_collector.compute.timeline import job_timeline

DAY = 86_400.0


def rows_of(amounts):
    """Ledger rows with GPU milliseconds by bucket."""
    rows = empty_rows()
    codes = [CODE[name.split(":")[0]] for name in amounts]
    reasons = [REASON_CODE[name.partition(":")[2]] for name in amounts]
    count = len(amounts)
    columns = {
        "bucket": codes,
        "reason": reasons,
        "gpu_milliseconds": [round(1000 * seconds) for seconds in amounts.values()],
        "node": [1] * count,
        "job": [1] * count,
        "useful_gpu_milliseconds": [0] * count,
    }
    return {**rows, "ts": np.zeros(count), **{name: np.array(each) for name, each in columns.items()}}


def interrupted():
    """A run of 1,000 s of steps, killed 50 s after the last, back after 150 s, going on from step 80."""
    return job_timeline(
        job(1),
        (
            launch(1, begin_seconds=0.0, end_seconds=1150.0, exit_reason="NODE_FAIL"),
            launch(2, begin_seconds=1300.0),
        ),
        steps([*step_run(1, 100, 100), *step_run(81, 200, 1400, launch=2)]),
        phases(
            [
                {"ts": 900, "end": 910, "kind": "checkpoint", "step": 80},
                {"ts": 1900, "end": 1930, "kind": "checkpoint", "step": 130, "launch": 2},
                {"ts": 2300, "end": 2320, "kind": "checkpoint", "step": 170, "launch": 2},
            ]
        ),
        now=3000.0,
    )


def test_the_published_failure_rate_loses_what_the_model_says():
    """128 nodes at 6.5e-3 failures a node and day: 0.832 a day; 10 minutes down and 30 minutes of work: 2.31 %."""
    terms = LossTerms(
        mttf_seconds=DAY / (128 * 6.5e-3), detect_seconds=240.0, restart_seconds=360.0, interval_seconds=3600.0,
        save_seconds=0.0,
    )  # fmt: skip

    assert loss_ratio(terms) == pytest.approx(0.0231, abs=5e-5)
    assert 1.0 - loss_ratio(terms) == pytest.approx(0.977, abs=5e-4)


def test_a_tenth_of_54_days_over_466_stops_is_16_7_minutes_each():
    stops = 466 / (54 * DAY)
    terms = LossTerms(
        mttf_seconds=1.0 / stops, detect_seconds=0.0, restart_seconds=16.7 * 60, interval_seconds=1e-9,
        save_seconds=0.0,
    )  # fmt: skip

    assert loss_ratio(terms) == pytest.approx(0.10, abs=1e-3)


def test_the_best_interval_of_a_minutes_save_and_7_9_hours_is_30_8_minutes():
    assert optimum_interval_seconds(60.0, 7.9 * 3600.0) / 60.0 == pytest.approx(30.8, abs=0.05)


def test_an_interruption_is_detected_isolated_and_resumed():
    goodput = goodput_of(interrupted(), rows_of({"STEP": 1}), (0.0, 3000.0), {1: "platform"})
    (outage,) = goodput.interruptions

    assert (outage.detect_seconds, outage.isolate_seconds, outage.resume_seconds) == (50, 150, 100)
    assert (outage.outage_seconds, outage.attempts, outage.liability) == (300, 1, "platform")
    assert (outage.lost_steps, outage.lost_seconds) == (20, 200)
    assert (goodput.mtbf_seconds, goodput.mttf_seconds, goodput.mttr_seconds) == (3000, 2700, 300)


def test_checkpoints_have_their_overhead_and_their_best_interval():
    saves = goodput_of(interrupted(), rows_of({"STEP": 1}), (0.0, 3000.0)).checkpointing

    assert (saves.saves, saves.save_seconds, saves.interval_seconds) == (3, 20, 370)
    assert saves.overhead_ratio == pytest.approx(60 / 3000)
    assert saves.optimum_interval_seconds == pytest.approx((2 * 20 * 2700) ** 0.5)


def test_ettr_is_kept_time_over_the_runs_and_a_range_where_time_is_unknown():
    rows = rows_of(
        {
            "STEP": 600,
            "THROTTLE": 100,
            "HANG": 100,
            "LOST": 50,
            "BUSY_OPAQUE:steps_lost": 150,
            "HELD_EMPTY": 500,
        }
    )

    goodput = goodput_of(interrupted(), rows, (0.0, 3000.0))

    assert goodput.ettr_ratio == pytest.approx(0.7)
    assert goodput.ettr_upper_ratio == pytest.approx(0.85)
    assert goodput.lost_per_interruption_gpu_milliseconds == 50_000


def test_faster_recovery_brings_what_the_model_says():
    goodput = goodput_of(interrupted(), rows_of({"STEP": 1000}), (0.0, 3000.0))
    gains = {gain.name: gain.ratio for gain in goodput.gains}

    assert goodput.modelled_loss_ratio == pytest.approx((50 + 250 + 185) / 2700 + 20 / 370)
    assert gains["detect_halved"] == pytest.approx(25 / 2700)
    assert gains["restart_halved"] == pytest.approx(125 / 2700)
    best = (2 * 20 * 2700) ** 0.5
    assert gains["checkpoint_optimum"] == pytest.approx(185 / 2700 + 20 / 370 - best / 2 / 2700 - 20 / best)


def test_without_a_failure_nothing_is_said_of_failures():
    timeline = job_timeline(
        job(1), (launch(1, begin_seconds=0.0),), steps(step_run(1, 10, 0)), phases([]), 100.0
    )

    goodput = goodput_of(timeline, rows_of({"STEP": 100}), (0.0, 100.0))

    assert goodput.interruptions == ()
    assert (goodput.mtbf_seconds, goodput.mttr_seconds, goodput.modelled_loss_ratio) == (None, None, None)
    assert goodput.gains == ()


def test_two_runs_together_add_up():
    one = goodput_of(interrupted(), rows_of({"STEP": 600, "LOST": 400}), (0.0, 3000.0))

    both = together([one, one])

    assert (both.jobs, both.run_gpu_milliseconds, len(both.interruptions)) == (2, 2_000_000, 2)
    assert (both.ettr_ratio, both.mtbf_seconds) == (one.ettr_ratio, one.mtbf_seconds)
    assert both.checkpointing.save_seconds == one.checkpointing.save_seconds
    assert together([]) is None


@pytest.mark.parametrize(
    ("reason", "whose"),
    [
        ("PREEMPTED", "platform"), ("NODE_FAIL", "platform"), ("Evicted", "platform"), ("CANCELLED by 1000", "user"),
        ("TIMEOUT", "user"), ("OUT_OF_MEMORY", "user"), ("exit 1", "unknown"), (None, "unknown"), ("killed", "unknown"),
    ],
)  # fmt: skip
def test_an_exit_reason_says_whose_loss_it_is_or_nothing(reason, whose):
    assert liability_of_exit(reason) == whose
