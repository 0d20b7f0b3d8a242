"""Which bucket wins: each case decides one rule of precedence."""

import numpy as np
import pytest
from tests.unit.collector.compute.ledger_scene import (
    Scene,
    events,
    gpu,
    job,
    launch,
    lease,
    phases,
    samples,
    step_run,
    steps,
    together,
)

WORKING = {"kernel_active_ratio": 0.9, "process_count": 1, "power_watts": 600.0}
IDLE = {"kernel_active_ratio": 0.0, "process_count": 1, "power_watts": 70.0}
EMPTY = {"kernel_active_ratio": 0.0, "process_count": 0, "power_watts": 60.0}


def run_scene(**more):
    """One GPU leased to an instrumented job from 0 on, with ten-second steps from 100 to 1100."""
    given = {
        "now": 1100.0,
        "gpus": (gpu(1),),
        "jobs": (job(1, world_size=1),),
        "launches": (launch(1, begin_seconds=0.0),),
        "leases": (lease(1, (1,), 0.0, None),),
        "steps": steps(step_run(1, 100, 100.0)),
        "samples": samples(1, 0, 1100, **WORKING),
    }
    return Scene(**{**given, **more})


def test_a_step_record_beats_a_silent_exporter():
    scene = run_scene(samples=together(samples(1, 0, 100, **WORKING)))

    assert scene.seconds() == {"STARTUP": 100.0, "STEP": 1000.0}


def test_a_gone_process_is_a_gap_until_the_threshold():
    scene = run_scene(
        now=1160.0, samples=together(samples(1, 0, 1100, **WORKING), samples(1, 1100, 1160, **EMPTY))
    )

    assert scene.seconds() == {"STARTUP": 100.0, "STEP": 1000.0, "GAP": 60.0}


def test_a_gone_process_is_a_hang_from_the_last_step_on_once_the_threshold_is_past():
    scene = run_scene(
        now=1800.0, samples=together(samples(1, 0, 1100, **WORKING), samples(1, 1100, 1800, **EMPTY))
    )

    assert scene.seconds() == {"STARTUP": 100.0, "STEP": 1000.0, "HANG": 700.0}


def test_silence_of_a_run_that_still_draws_power_is_not_a_hang():
    scene = run_scene(now=1800.0, samples=samples(1, 0, 1800, **WORKING))

    assert scene.seconds() == {"STARTUP": 100.0, "STEP": 1000.0, "BUSY_OPAQUE:steps_lost": 700.0}


def test_silence_of_a_run_whose_node_fell_silent_too_is_not_a_hang():
    scene = run_scene(now=1800.0)

    assert scene.seconds() == {"STARTUP": 100.0, "STEP": 1000.0, "BUSY_OPAQUE:steps_lost": 700.0}


def test_a_hang_shows_in_samples_a_quarter_of_an_hour_apart():
    cold = {**WORKING, "power_watts": 100.0}
    rows = [*step_run(1, 1440, 0.0)]
    scene = run_scene(
        now=21_600.0,
        steps=steps(rows),
        samples=together(
            samples(1, 0, 14_400, interval=900.0, **WORKING),
            samples(1, 14_400, 21_600, interval=900.0, **cold),
        ),
    )

    assert scene.seconds() == {"STEP": 14_400.0, "HANG": 7_200.0}


def test_a_log_written_every_hundred_steps_of_thirty_seconds_does_not_hang_between_its_lines():
    rows = [{"step": 100 * n, "ts": 3000.0 * n, "seconds": 3000.0, "steps_covered": 100} for n in (1, 2, 3)]
    cold = {**WORKING, "power_watts": 100.0}
    scene = run_scene(
        now=11_900.0,
        steps=steps(rows),
        samples=together(samples(1, 0, 9000, **WORKING), samples(1, 9000, 11_900, **cold)),
    )

    assert scene.seconds() == {"STEP": 9000.0, "BUSY_OPAQUE:report_pending": 2900.0}


def test_lines_delivered_in_one_burst_are_laid_out_one_after_another():
    burst = [{"step": n, "ts": 1100.0, "seconds": 10.0} for n in range(1, 101)]
    scene = run_scene(steps=steps(burst))

    assert scene.seconds() == {"STARTUP": 100.0, "STEP": 1000.0}


@pytest.mark.parametrize(
    ("idle_seconds", "expected"),
    [
        pytest.param(299, {"BUSY_OPAQUE": 1000.0}, id="one-second-short"),
        pytest.param(300, {"BUSY_OPAQUE": 700.0, "HELD_IDLE": 300.0}, id="the-whole-grace"),
    ],
)
def test_idle_counts_from_its_first_second_once_it_lasted_the_grace_time(idle_seconds, expected):
    parts = (
        samples(1, 0, 400, interval=1.0, **WORKING),
        samples(1, 400, 400 + idle_seconds, interval=1.0, **IDLE),
        samples(1, 400 + idle_seconds, 1000, interval=1.0, **{**WORKING, "kernel_active_ratio": 0.05}),
    )
    scene = Scene(
        now=1000.0,
        gpus=(gpu(1),),
        jobs=(job(),),
        leases=(lease(1, (1,), 0.0, None),),
        samples=together(*parts),
    )

    assert scene.seconds() == expected


def test_a_kernel_that_only_keeps_the_gpu_busy_is_idle_by_its_power():
    scene = Scene(
        now=600.0,
        gpus=(gpu(1),),
        jobs=(job(),),
        leases=(lease(1, (1,), 0.0, None),),
        samples=samples(1, 0, 600, kernel_active_ratio=1.0, process_count=1, power_watts=74.0),
    )
    inputs = scene.inputs()

    rows = account_with(inputs, idle_watts={1: 70.0})

    assert rows == {"HELD_IDLE": 600.0}


def account_with(inputs, **more):
    from dataclasses import replace

    from flopwatch_collector.compute.buckets import label
    from flopwatch_collector.compute.ledger import account

    rows = account(replace(inputs, **more), 0.0, inputs.now)
    totals: dict[str, float] = {}
    for bucket, reason, amount in zip(rows["bucket"], rows["reason"], rows["gpu_milliseconds"], strict=True):
        totals[label(int(bucket), int(reason))] = (
            totals.get(label(int(bucket), int(reason)), 0.0) + amount / 1000
        )
    return totals


def test_an_idle_process_without_a_lease_leaves_the_gpu_free():
    scene = Scene(now=3600.0, gpus=(gpu(1),), samples=samples(1, 0, 3600, **IDLE))

    assert scene.seconds() == {"FREE:stale_process": 3600.0}


def test_work_without_a_lease_is_work():
    scene = Scene(now=600.0, gpus=(gpu(1),), samples=samples(1, 0, 600, **{**WORKING, "job": 7}))
    rows = scene.rows()

    assert scene.seconds() == {"BUSY_OPAQUE:unleased": 600.0}
    assert set(rows["job"]) == {7}


def declared(*rows):
    return Scene(
        now=600.0,
        gpus=(gpu(1),),
        samples=samples(1, 0, 600, **EMPTY),
        events=events([{"node": 1, **row} for row in rows]),
    )


MAINTENANCE = {"ts": 0.0, "kind": "maintenance", "value": "begin"}
FAULTY = {"ts": 0.0, "kind": "health", "value": "faulty"}
SPARE = {"ts": 0.0, "kind": "spare", "value": "begin", "gpu": 1}


@pytest.mark.parametrize(
    ("rows", "bucket"),
    [
        pytest.param((MAINTENANCE, FAULTY), "MAINT", id="maintenance-of-a-faulty-node"),
        pytest.param((SPARE, FAULTY), "FAULT", id="faulty-spare"),
        pytest.param((SPARE,), "SPARE", id="spare"),
        pytest.param((), "FREE:unspecified", id="nothing-declared"),
    ],
)
def test_what_is_declared_decides_in_order(rows, bucket):
    assert declared(*rows).seconds() == {bucket: 600.0}


def test_an_unreachable_node_that_is_declared_down_is_a_fault():
    scene = Scene(now=600.0, gpus=(gpu(1),), events=events([{**FAULTY, "node": 1}]))

    assert scene.seconds() == {"FAULT": 600.0}


def test_an_unreachable_node_of_which_nothing_is_known_is_unknown():
    assert Scene(now=600.0, gpus=(gpu(1),)).seconds() == {"UNKNOWN": 600.0}


def test_a_silent_node_inside_a_lease_is_unknown_and_leased():
    scene = Scene(now=600.0, gpus=(gpu(1),), jobs=(job(),), leases=(lease(1, (1,), 0.0, None),))

    assert scene.seconds() == {"UNKNOWN:leased": 600.0}


def test_a_process_whose_use_is_unknown_works_as_far_as_anyone_knows():
    scene = Scene(
        now=600.0,
        gpus=(gpu(1),),
        jobs=(job(),),
        leases=(lease(1, (1,), 0.0, None),),
        samples=samples(1, 0, 600, process_count=1),
    )

    assert scene.seconds() == {"BUSY_OPAQUE:idle_unknown": 600.0}


def test_surplus_gpus_of_a_run_are_held_empty():
    numbers = tuple(range(1, 9))
    scene = run_scene(
        gpus=tuple(gpu(n) for n in numbers),
        leases=(lease(1, numbers, 0.0, None),),
        samples=together(
            samples(1, 0, 1100, **WORKING), *(samples(n, 0, 1100, **EMPTY) for n in numbers[1:])
        ),
    )

    assert scene.seconds() == {"STARTUP": 100.0, "STEP": 1000.0, "HELD_EMPTY": 7 * 1100.0}


def test_two_sevenths_of_a_gpu_run_and_five_are_nobodys():
    scene = Scene(
        now=700.0,
        gpus=(gpu(1, slot="s", mig_profile="2g.20gb"),),
        jobs=(job(),),
        leases=(lease(1, (1,), 0.0, None),),
        samples=samples(1, 0, 700, **WORKING),
    )

    assert scene.seconds() == {"BUSY_OPAQUE": 200.0, "FREE:unassigned": 500.0}


def test_leases_that_share_a_gpu_share_its_time():
    scene = Scene(
        now=600.0,
        gpus=(gpu(1),),
        jobs=(job(1), job(2)),
        leases=(lease(1, (1,), 0.0, None), lease(2, (1,), 200.0, None)),
        samples=samples(1, 0, 600, **WORKING),
    )
    rows = scene.rows()

    by_job = {number: int(rows["gpu_milliseconds"][rows["job"] == number].sum()) for number in (1, 2)}

    assert by_job == {1: 400_000, 2: 200_000}


def test_a_granted_share_leaves_the_rest_to_nobody():
    scene = Scene(
        now=600.0,
        gpus=(gpu(1),),
        jobs=(job(1),),
        leases=(lease(1, (1,), 0.0, None, share_ratio=0.25),),
        samples=samples(1, 0, 600, **WORKING),
    )

    assert scene.seconds() == {"BUSY_OPAQUE": 150.0, "FREE:unassigned": 450.0}


def test_a_lease_from_use_gives_way_to_what_the_scheduler_told():
    scene = Scene(
        now=600.0,
        gpus=(gpu(1),),
        jobs=(job(1), job(2)),
        leases=(lease(1, (1,), 0.0, None), lease(2, (1,), 0.0, None, source="process")),
        samples=samples(1, 0, 600, **WORKING),
    )

    assert set(scene.rows()["job"]) == {1}


def test_a_replaced_card_is_not_a_second_gpu():
    scene = Scene(now=600.0, gpus=(gpu(1, slot="s", to_seconds=200.0), gpu(2, slot="s", from_seconds=200.0)))

    assert scene.seconds() == {"UNKNOWN": 600.0}


def test_a_checkpoint_inside_a_step_is_a_checkpoint_and_an_asynchronous_one_is_not():
    blocking = {"ts": 500.0, "end": 530.0, "kind": "checkpoint", "step": 40}
    beside = {"ts": 700.0, "end": 790.0, "kind": "checkpoint", "step": 60, "blocking": 0}

    assert run_scene(phases=phases([blocking, beside])).seconds() == {
        "STARTUP": 100.0,
        "STEP": 970.0,
        "CKPT": 30.0,
    }


def test_reported_data_wait_is_taken_out_of_its_step():
    rows = step_run(1, 100, 100.0, data_wait_seconds=2.0)

    assert run_scene(steps=steps(rows)).seconds() == {"STARTUP": 100.0, "STEP": 800.0, "DATA_WAIT": 200.0}


def test_the_step_open_when_a_session_was_killed_is_lost_and_the_restart_is_recovery():
    rows = [*step_run(1, 50, 100.0), *step_run(51, 90, 700.0, launch=2)]
    scene = run_scene(
        steps=steps(rows),
        launches=(
            launch(1, begin_seconds=0.0, end_seconds=606.0),
            launch(2, begin_seconds=606.0, resumed_from_step=50),
        ),
    )

    assert scene.seconds() == {"STARTUP": 100.0, "STEP": 900.0, "LOST": 6.0, "RECOVERY": 94.0}


def test_steps_after_the_resume_point_are_lost_without_anyone_saying_so():
    rows = [*step_run(1, 50, 100.0), *step_run(41, 90, 600.0, launch=2)]
    scene = run_scene(
        steps=steps(rows), launches=(launch(1, end_seconds=600.0), launch(2, begin_seconds=600.0))
    )

    assert scene.seconds() == {"STARTUP": 100.0, "STEP": 900.0, "LOST": 100.0}


def test_a_run_that_ended_while_its_lease_goes_on_leaves_the_gpu_held():
    scene = run_scene(
        now=1700.0,
        launches=(launch(1, begin_seconds=0.0, end_seconds=1100.0, exit_reason="completed"),),
        samples=together(samples(1, 0, 1100, **WORKING), samples(1, 1100, 1700, **EMPTY)),
    )

    assert scene.seconds() == {"STARTUP": 100.0, "STEP": 1000.0, "HELD_EMPTY": 600.0}


def test_the_time_before_the_first_step_of_a_run_is_startup_while_it_lasts():
    scene = run_scene(now=90.0, samples=samples(1, 0, 90, **WORKING))

    assert scene.seconds() == {"STARTUP": 90.0}


def test_useful_time_is_the_flops_over_the_peak_and_never_more_than_the_step():
    from flopwatch_collector.compute.inputs import JobWork

    scene = run_scene(work={1: JobWork(useful_seconds=np.full(100, 4.0))})
    rows = scene.rows()

    assert int(rows["useful_gpu_milliseconds"].sum()) == 400_000
    assert scene.seconds() == {"STARTUP": 100.0, "STEP": 1000.0}


def test_a_confirmed_straggler_takes_what_its_steps_are_longer_than_usual():
    from flopwatch_collector.compute.inputs import JobWork

    rows = step_run(1, 80, 100.0, seconds=12.5)
    scene = run_scene(
        steps=steps(rows), work={1: JobWork(useful_seconds=np.full(80, 4.0), straggler_seconds=10.0)}
    )

    assert scene.seconds() == {"STARTUP": 100.0, "STEP": 800.0, "STRAGGLER": 200.0}
    assert int(scene.rows()["useful_gpu_milliseconds"].sum()) == 320_000


def test_a_hang_between_sparse_and_dense_samples_is_judged_at_the_sparse_pace():
    cold = {**WORKING, "power_watts": 100.0}
    scene = run_scene(
        now=21_600.0,
        steps=steps(step_run(1, 1440, 0.0)),
        samples=together(
            samples(1, 0, 14_400, interval=900.0, **WORKING), samples(1, 15_600, 21_600, **cold)
        ),
    )

    assert scene.seconds() == {"STEP": 14_400.0, "HANG": 7_200.0}
