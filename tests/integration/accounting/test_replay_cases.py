"""Recorded batches of many kinds through ``flopwatch replay``: GPU-seconds worked out by hand."""

import json
from dataclasses import replace

import pytest
from tests.integration.accounting.recorded import (
    BASE,
    H100,
    NodeTape,
    batches,
    lease,
    phase,
    session,
    sighting,
    steps,
)
from tests.integration.accounting.replaying import EMPTY, HELD, HOT, OK, buckets, leased, replay, run

from flopwatch.encoding import encode
from flopwatch.wire import GpuDevice, JobSighting, Lease, StepRecord


def test_leased_gpus_beyond_the_world_size_are_judged_by_their_samples(tmp_path):
    tape = NodeTape("a")
    sighting(tape, "J", (0, 3600), world_size=1, gpus=tape.uuids(0))
    lease(tape, "J", tape.uuids(), (0, 3600))
    session(tape, "J", 0, 0, 3600, **OK)
    steps(tape, "J", (1, 360, 0))
    tape.sample([0], 0, 3600, job="J", **HOT)
    tape.sample(range(1, 8), 0, 3600, **EMPTY)

    assert buckets(tmp_path, [tape], 3600) == {"STEP": 3600, "HELD_EMPTY": 7 * 3600}


def test_a_log_written_every_hundred_steps_is_not_silent_between_its_lines(tmp_path):
    tape = leased(end=12_000)
    session(tape, "J", 0, 0, 12_000, **OK)
    for number in range(1, 5):
        record = StepRecord(
            job="J", source="log", source_id="J.log", step=100 * number, steps_covered=100, seconds=3000,
            end_time_seconds=BASE + 3000 * number,
        )  # fmt: skip
        tape.tell("steps", 3000 * number, record)
    tape.sample(None, 0, 12_000, job="J", **HOT)

    assert buckets(tmp_path, [tape], 12_000) == {"STEP": 12_000}


def test_a_mig_instance_is_its_sevenths_and_the_rest_is_free(tmp_path):
    device = GpuDevice(
        uuid="MIG-1", slot="0000:10:00.0", name=H100, mig_profile="2g.20gb", mig_parent_uuid="GPU-1"
    )
    tape = NodeTape("a", gpus=1, devices=(device,))
    sighting(tape, "J", (0, 7000))
    lease(tape, "J", ("MIG-1",), (0, 7000))
    tape.samples["MIG-1"] = [(0, 7020, {"job": "J", **HOT})]

    assert buckets(tmp_path, [tape], 7000) == {"BUSY_OPAQUE": 2000, "FREE": 5000}


def test_without_a_lease_work_is_opaque_and_an_idle_process_is_free(tmp_path):
    tape = NodeTape("a", gpus=2)
    tape.sample([0], 0, 3600, kernel_active_ratio=0.0, process_count=1)
    tape.sample([1], 0, 3600, kernel_active_ratio=0.5, process_count=1)

    answer = replay(tmp_path, batches(tape, 3600))

    assert answer["ledger"]["reasons_gpu_seconds"] == {
        "FREE:stale_process": 3600, "BUSY_OPAQUE:unleased": 3600
    }  # fmt: skip
    assert (answer["metrics"]["U_alloc"], answer["metrics"]["U_bill"]) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("idle", "expected"), [(290, {"BUSY_OPAQUE": 3600}), (300, {"BUSY_OPAQUE": 3300, "HELD_IDLE": 300})]
)
def test_a_lease_is_idle_from_the_first_idle_second_once_the_grace_is_over(tmp_path, idle, expected):
    tape = leased(interval=10)
    tape.sample(None, 0, 1000, job="J", **HOT)
    tape.sample(None, 1000, 1000 + idle, job="J", **HELD)
    tape.sample(None, 1000 + idle, 3600, job="J", **HOT)

    assert buckets(tmp_path, [tape], 3600) == expected


def test_maintenance_goes_before_fault_and_fault_before_silence_and_spare(tmp_path):
    tape = NodeTape("a", gpus=4)
    tape.sample([0, 1], 0, 3600, **EMPTY)
    tape.sample([2, 3], 0, 600, **EMPTY)
    tape.event(600, "maintenance", "begin", gpu=0)
    tape.event(600, "health", "faulty", gpu=0)
    tape.event(600, "spare", "begin", gpu=1)
    tape.event(600, "health", "faulty", gpu=1)
    tape.event(600, "health", "faulty", gpu=2)

    assert buckets(tmp_path, [tape], 3600) == {"MAINT": 3000, "FAULT": 6000, "UNKNOWN": 3000, "FREE": 2400}


def test_what_is_declared_of_a_node_leaves_a_running_job_alone(tmp_path):
    tape = leased()
    session(tape, "J", 0, 0, 3600, **OK)
    steps(tape, "J", (1, 360, 0))
    tape.sample(None, 0, 3600, job="J", **HOT)
    for kind, value in (("maintenance", "begin"), ("drain", "begin"), ("health", "faulty")):
        tape.event(100, kind, value)

    assert buckets(tmp_path, [tape], 3600) == {"STEP": 3600}


def test_steps_count_though_no_gpu_was_ever_sampled(tmp_path):
    tape = leased(8)
    session(tape, "J", 0, 0, 3600, **OK)
    steps(tape, "J", (1, 360, 0))

    assert buckets(tmp_path, [tape], 3600) == {"STEP": 8 * 3600}


def test_a_node_that_is_only_in_the_inventory_is_unknown_capacity(tmp_path):
    heard, silent = NodeTape("a", gpus=1), NodeTape("b", gpus=8)
    heard.sample(None, 0, 3600, **EMPTY)

    assert buckets(tmp_path, [heard, silent], 3600) == {"FREE": 3600, "UNKNOWN": 8 * 3600}


def test_waiting_for_data_inside_steps_is_taken_out_of_them(tmp_path):
    tape = leased()
    session(tape, "J", 0, 0, 3600, **OK)
    steps(tape, "J", (1, 360, 0), data_wait_seconds=2.5)
    tape.sample(None, 0, 3600, job="J", **HOT)

    assert buckets(tmp_path, [tape], 3600) == {"DATA_WAIT": 900, "STEP": 2700}


def test_a_preempted_run_loses_what_no_checkpoint_kept_and_the_platform_is_liable(tmp_path):
    tape = leased(2)
    session(tape, "J", 0, 0, 2005, exit_reason="PREEMPTED")
    session(tape, "J", 1, 2100, 3600, **OK)
    steps(tape, "J", (1, 200, 0))
    phase(tape, "J", "checkpoint", (1500, 1530), step=150, blocking=False, committed=True)
    steps(tape, "J", (151, 280, 2300), session=1)
    tape.sample(None, 0, 3600, job="J", **HOT)

    answer = replay(tmp_path, batches(tape, 3600))
    found = {name: amount for name, amount in answer["ledger"]["gpu_seconds"].items() if amount}
    (outage,) = answer["goodput"]["interruptions"]

    assert found == {"STEP": 2 * (1500 + 1300), "LOST": 2 * (500 + 5), "RECOVERY": 2 * 295}
    assert answer["ledger"]["reasons_gpu_seconds"] == {"RECOVERY:platform": 590, "LOST:platform": 1010}
    assert outage["liability"] == "platform"
    assert (outage["detect_seconds"], outage["isolate_seconds"], outage["resume_seconds"]) == (5, 95, 200)
    assert (outage["lost_steps"], outage["lost_seconds"]) == (50, 500)


def test_evaluations_are_rolled_back_with_their_steps(tmp_path):
    tape = leased()
    session(tape, "J", 0, 0, 1400, exit_reason="node_fail")
    session(tape, "J", 1, 1500, 3600, resumed_from_step=50, **OK)
    steps(tape, "J", (1, 100, 0))
    phase(tape, "J", "eval", (1000, 1200))
    steps(tape, "J", (101, 120, 1200))
    steps(tape, "J", (51, 240, 1700), session=1)
    tape.sample(None, 0, 3600, job="J", **HOT)

    assert buckets(tmp_path, [tape], 3600) == {"STEP": 500 + 1900, "LOST": 900, "RECOVERY": 300}


def test_launches_that_fail_before_their_first_step_belong_to_one_outage(tmp_path):
    tape = leased(2)
    session(tape, "J", 0, 0, 1000, exit_reason="exit 1")
    session(tape, "J", 1, 1200, 1300, exit_reason="exit 1")
    session(tape, "J", 2, 1400, 3600, **OK)
    steps(tape, "J", (1, 100, 0))
    steps(tape, "J", (101, 300, 1600), session=2)
    tape.sample(None, 0, 3600, job="J", **HOT)

    answer = replay(tmp_path, batches(tape, 3600))
    found = {name: amount for name, amount in answer["ledger"]["gpu_seconds"].items() if amount}

    assert found == {"STEP": 6000, "RECOVERY": 1200}
    assert [each["attempts"] for each in answer["goodput"]["interruptions"]] == [2]
    assert answer["goodput"]["mttr_seconds"] == 600


def test_a_restart_of_which_nobody_told_is_a_recovery_from_the_last_step_on(tmp_path):
    tape = leased()
    steps(tape, "J", (1, 100, 0))
    steps(tape, "J", (51, 300, 1100), session=1)
    tape.sample(None, 0, 3600, job="J", **HOT)

    assert buckets(tmp_path, [tape], 3600) == {"STEP": 500 + 2500, "LOST": 500, "RECOVERY": 100}


def test_silence_is_a_hang_only_when_the_hardware_says_so(tmp_path):
    for folder, watts, expected in (
        ("fell", 100.0, {"STEP": 1000, "HANG": 2600}),
        ("stayed", 600.0, {"STEP": 1000, "BUSY_OPAQUE": 2600}),
    ):
        tape = leased(interval=10)
        session(tape, "J", 0, 0)
        steps(tape, "J", (1, 100, 0))
        tape.sample(None, 0, 1000, job="J", **HOT)
        tape.sample(None, 1000, 3600, job="J", **{**HOT, "power_watts": watts})
        own = tmp_path / folder
        own.mkdir()

        assert buckets(own, [tape], 3600) == expected


def test_a_run_without_a_step_starts_up_for_two_hours_at_most(tmp_path):
    tape = leased(end=10_800)
    session(tape, "J", 0, 0)
    tape.sample(None, 0, 10_800, job="J", **HOT)

    assert buckets(tmp_path, [tape], 10_800) == {"STARTUP": 7200, "BUSY_OPAQUE": 3600}


def test_a_lease_that_outlives_its_run_is_held_empty(tmp_path):
    tape = leased(2, end=7200)
    session(tape, "J", 0, 0, 3000, **OK)
    steps(tape, "J", (1, 300, 0))
    tape.sample(None, 0, 3000, job="J", **HOT)
    tape.sample(None, 3000, 7200, **EMPTY)

    assert buckets(tmp_path, [tape], 7200) == {"STEP": 6000, "HELD_EMPTY": 8400}


def test_a_shared_gpu_is_divided_by_granted_shares(tmp_path):
    tape = NodeTape("a", gpus=1)
    tape.sample(None, 0, 3600, **HOT)
    for ref, share in (("J", 0.25), ("K", 0.5)):
        sighting(tape, ref, (0, 3600), user=ref)
        lease(tape, ref, tape.uuids(), (0, 3600), share_ratio=share)

    answer = replay(tmp_path, batches(tape, 3600))

    assert {name: each["capacity_gpu_seconds"] for name, each in answer["ledger"]["by_user"].items()} == {
        "": 900, "J": 900, "K": 1800
    }  # fmt: skip


def test_a_job_on_two_nodes_that_both_report_its_steps_counts_each_step_once(tmp_path):
    tapes = [NodeTape(name) for name in "ab"]
    for tape in tapes:
        sighting(tape, "J", (0, 3600), world_size=16)
        lease(tape, "J", tape.uuids(), (0, 3600))
        session(tape, "J", 0, 0, 3600, **OK)
        steps(tape, "J", (1, 340, 200))
        tape.sample(None, 0, 3600, job="J", **HOT)

    assert buckets(tmp_path, tapes, 3600) == {"STARTUP": 16 * 200, "STEP": 16 * 3400}


def test_a_schedulers_lease_holds_until_the_scheduler_says_otherwise(tmp_path):
    tape = NodeTape("a", gpus=1)
    tape.sample(None, 0, 7200, **EMPTY)
    made = batches(tape, 7200)
    made[0] = replace(
        made[0],
        jobs=(JobSighting(ref="J", scheduler="slurm", scheduler_job_id="J"),),
        leases=(
            Lease(lease_id="J", job="J", gpus=tape.uuids(), source="slurm", start_seconds=BASE),
        ),
    )  # fmt: skip

    answer = replay(tmp_path, made)

    assert answer["ledger"]["gpu_seconds"]["HELD_EMPTY"] == 7200


def test_a_process_without_a_scheduler_is_a_lease_of_its_user(tmp_path):
    tape = NodeTape("a", gpus=1, interval=10)
    sighting(
        tape,
        "p",
        (600, 3600),
        scheduler="none",
        scheduler_job_id=None,
        uid=1000,
        user="ada",
        gpus=tape.uuids(),
    )
    tape.sample(None, 0, 600, **EMPTY)
    tape.sample(None, 600, 3600, job="p", **HOT)

    answer = replay(tmp_path, batches(tape, 3600))

    assert answer["ledger"]["gpu_seconds"]["BUSY_OPAQUE"] == 3000
    assert answer["metrics"]["U_bill"] == pytest.approx(3000 / 3600)
    assert answer["ledger"]["by_user"]["ada"]["capacity_gpu_seconds"] == 3000


def test_a_card_that_replaces_another_is_no_second_gpu(tmp_path):
    old = NodeTape("a", gpus=1, interval=10)
    old.sample(None, 0, 1800, **EMPTY)
    device = GpuDevice(uuid="GPU-new", slot="0000:10:00.0", name=H100, index=0)
    new = NodeTape("a", gpus=1, interval=10, devices=(device,))
    new.samples["GPU-new"] = [(1800, 3600, EMPTY)]
    later = [
        replace(batch, sequence=batch.sequence + 100, gpus=(device,))
        for batch in batches(new, 3600)
        if batch.gpu_samples
    ]

    answer = replay(tmp_path, [*batches(old, 1800), *later])

    assert answer["gpus"] == 1
    assert answer["ledger"]["capacity_gpu_seconds"] == 3600


def test_a_clock_eight_hours_ahead_is_set_right_by_the_recorders(tmp_path):
    tape = leased()
    session(tape, "J", 0, 0, 3600, **OK)
    steps(tape, "J", (1, 360, 0))
    tape.sample(None, 0, 3600, job="J", **HOT)
    lines = []
    for batch in batches(tape, 3600):
        wrong = ahead(json.loads(encode(batch)), 28_800.0)
        wrong["leases"] = json.loads(encode(batch)).get("leases", [])
        wrong["sent_at_seconds"] = batch.sampled_at_seconds + 28_800.0
        wrong["received_at_seconds"] = batch.sampled_at_seconds
        lines.append(json.dumps(wrong))
    file = tmp_path / "skewed.jsonl"
    file.write_text("\n".join(lines))

    answer = run(str(file))

    assert answer["ledger"]["gpu_seconds"]["STEP"] == 3600
    assert answer["end_seconds"] == BASE + 3600


def ahead(value: object, seconds: float) -> object:
    """A document with all its times later."""
    if isinstance(value, dict):
        return {
            key: each + seconds
            if key.endswith("_seconds") and isinstance(each, float) and each > 1e9
            else ahead(each, seconds)
            for key, each in value.items()
        }
    return [ahead(each, seconds) for each in value] if isinstance(value, list) else value
