"""Jobs, nodes and limits in the documents of several versions of Slurm."""

import json
from pathlib import Path
from typing import Any

from flopwatch_collector.schedulers.queue_depth import snapshots
from flopwatch_collector.schedulers.reading import Allocation, GpuLimit
from flopwatch_collector.schedulers.slurm import jobs_of
from flopwatch_collector.schedulers.slurm_jobs import ended_from_accounting, job_from_queue
from flopwatch_collector.schedulers.slurm_nodes import gpu_limits, node_from, reserved

FIXTURES = Path(__file__).parents[3] / "fixtures" / "schedulers"


def set_(number: int) -> dict[str, Any]:
    return {"set": True, "infinite": False, "number": number}


UNSET = {"set": False, "infinite": False, "number": 0}


def newer(**changes: Any) -> dict[str, Any]:
    """A job in the form of API v0.0.40 and later."""
    row = {
        "job_id": 4242,
        "job_state": ["RUNNING"],
        "name": "llama-70b",
        "user_name": "alice",
        "account": "nlp",
        "qos": "high",
        "partition": "h100",
        "submit_time": set_(1_796_000_000),
        "start_time": set_(1_796_000_100),
        "end_time": set_(1_796_086_500),
        "restart_cnt": 0,
        "array_job_id": set_(0),
        "array_task_string": "",
        "het_job_id": set_(0),
        "state_reason": "None",
        "node_count": set_(2),
        "tasks": set_(16),
        "tres_alloc_str": "cpu=192,mem=2T,node=2,billing=192,gres/gpu=16,gres/gpu:h100=16",
        "tres_req_str": "cpu=192,mem=2T,node=2,billing=192,gres/gpu=16",
        "gres_detail": ["gpu:h100:8(IDX:0-7)", "gpu:h100:8(IDX:0-7)"],
        "job_resources": {"nodes": {"count": 2, "list": "gpu[001-002]"}},
        "nodes": "gpu[001-002]",
    }
    return {**row, **changes}


def test_the_queue_of_a_22_05_controller_is_read() -> None:
    jobs = jobs_of(json.loads((FIXTURES / "slurm_22_05_squeue.json").read_text()))

    by_state = {job.state: job for job in jobs}
    running = by_state["running"]
    assert (running.scheduler_job_id, running.name, running.user) == ("3", "train", "root")
    assert running.allocations == (Allocation(node="gpu001", gpu_count=2, indices=(0, 1)),)
    assert (running.account, running.qos, running.partition) == (None, None, "main")
    waiting = {job.scheduler_job_id: job for job in jobs if job.state == "pending"}
    assert (waiting["4"].requested_gpus, waiting["4"].waiting_jobs, waiting["4"].reason) == (
        4,
        1,
        "Resources",
    )
    assert (waiting["5"].requested_gpus, waiting["5"].waiting_jobs) == (1, 6)
    assert by_state["ended"].exit_reason == "completed"


def test_a_held_array_is_no_demand_and_a_job_that_waits_for_resources_is() -> None:
    jobs = jobs_of(json.loads((FIXTURES / "slurm_22_05_squeue.json").read_text()))

    told = {each.partition: each for each in snapshots(jobs, (), 1.0)}

    assert (told["main"].pending_jobs, told["main"].pending_gpus, told["main"].largest_request_gpus) == (
        1,
        4,
        4,
    )
    assert (told[""].pending_jobs, told[""].pending_gpus) == (0, 0)


def test_the_nodes_of_22_05_have_their_gpus_and_no_trouble() -> None:
    (row,) = json.loads((FIXTURES / "slurm_22_05_sinfo.json").read_text())["nodes"]

    node = node_from(row)

    assert (node.name, node.gpu_count, node.trouble, node.maintenance) == ("gpu001", 4, None, False)


def test_a_job_of_the_newer_form_says_node_by_node_what_it_holds() -> None:
    job = job_from_queue(newer())

    assert job.allocations == (
        Allocation(node="gpu001", gpu_count=8, indices=(0, 1, 2, 3, 4, 5, 6, 7)),
        Allocation(node="gpu002", gpu_count=8, indices=(0, 1, 2, 3, 4, 5, 6, 7)),
    )
    assert (job.user, job.account, job.qos, job.state) == ("alice", "nlp", "high", "running")
    assert (job.submit_seconds, job.start_seconds, job.end_seconds) == (
        1_796_000_000.0,
        1_796_000_100.0,
        None,
    )


def test_without_details_the_gpus_are_shared_out_over_the_nodes_and_never_guessed() -> None:
    even = job_from_queue(newer(gres_detail=[]))
    uneven = job_from_queue(newer(gres_detail=[], tres_alloc_str="gres/gpu=9"))

    assert even.allocations == (
        Allocation(node="gpu001", gpu_count=8),
        Allocation(node="gpu002", gpu_count=8),
    )
    assert uneven.allocations == ()


def test_a_job_without_gpus_holds_none() -> None:
    assert job_from_queue(newer(gres_detail=["", ""], tres_alloc_str="cpu=4,node=2")).allocations == ()


def test_a_requeued_job_is_the_same_job_whatever_its_submit_time() -> None:
    job = job_from_queue(newer(restart_cnt=2))

    assert (job.submit_seconds, job.restart_count, job.ref) == (None, 2, "slurm:4242")


def test_parts_of_a_heterogeneous_job_are_one_request() -> None:
    rows = [
        newer(
            job_id=number,
            job_state=["PENDING"],
            het_job_id=set_(50),
            state_reason="Resources",
            tres_req_str=f"gres/gpu={gpus}",
            nodes="",
            start_time=UNSET,
        )
        for number, gpus in ((50, 8), (51, 16))
    ]

    told = {each.partition: each for each in snapshots([job_from_queue(row) for row in rows], ("old",), 1.0)}

    assert (told["h100"].pending_jobs, told["h100"].pending_gpus, told["h100"].largest_request_gpus) == (
        1,
        24,
        24,
    )
    assert (told["old"].pending_jobs, told["old"].pending_gpus) == (0, 0)


def test_requests_by_node_and_by_task_are_counted() -> None:
    waiting = {"job_state": ["PENDING"], "tres_req_str": "cpu=4", "tres_alloc_str": "", "start_time": UNSET}

    by_node = job_from_queue(newer(**waiting, tres_per_node="gres/gpu:8"))
    by_task = job_from_queue(newer(**waiting, tres_per_task="gres/gpu:1"))
    by_job = job_from_queue(newer(**waiting, tres_per_job="gres/gpu:12"))

    assert [job.requested_gpus for job in (by_node, by_task, by_job)] == [16, 16, 12]


def test_a_completing_job_has_ended_and_a_suspended_one_holds_its_gpus() -> None:
    completing = job_from_queue(newer(job_state=["FAILED", "COMPLETING"]))
    suspended = job_from_queue(newer(job_state="SUSPENDED"))
    requeued = job_from_queue(newer(job_state=["PENDING", "REQUEUED"]))

    assert (completing.state, completing.exit_reason, completing.end_seconds) == (
        "ended",
        "failed",
        1_796_086_500.0,
    )
    assert (suspended.state, len(suspended.allocations)) == ("running", 2)
    assert (requeued.state, requeued.allocations) == ("pending", ())


def test_accounting_says_how_a_forgotten_job_ended() -> None:
    row = {
        "job_id": 77,
        "name": "eval",
        "user": "bob",
        "account": "vision",
        "qos": "normal",
        "partition": "h100",
        "nodes": "gpu003",
        "state": {"current": ["OUT_OF_MEMORY"], "reason": "None"},
        "time": {"submission": 1_796_000_000, "start": 1_796_000_010, "end": 1_796_000_910},
        "tres": {
            "allocated": [
                {"type": "cpu", "name": "", "count": 8},
                {"type": "gres", "name": "gpu", "count": 2},
            ]
        },
        "array": {"job_id": 0},
    }

    job = ended_from_accounting(row)
    runs_on = ended_from_accounting(
        {**row, "state": {"current": ["RUNNING"]}, "time": {"start": 1, "end": 0}}
    )

    assert job is not None
    assert (job.exit_reason, job.end_seconds, job.user) == ("out_of_memory", 1_796_000_910.0, "bob")
    assert job.allocations == (Allocation(node="gpu003", gpu_count=2),)
    assert runs_on is None


def test_nodes_are_drained_out_of_order_or_in_maintenance() -> None:
    base = {"name": "gpu007", "hostname": "gpu007", "gres": "gpu:h100:8(S:0-1)"}
    drained = node_from(
        {**base, "state": ["IDLE", "DRAIN"], "reason": "bad NIC", "reason_changed_at": set_(1_796_000_000)}
    )
    down = node_from({**base, "state": ["DOWN", "DRAIN"], "reason": "Not responding"})
    asleep = node_from({**base, "state": ["DOWN", "POWERED_DOWN", "CLOUD"]})
    older = node_from({**base, "state": "idle", "state_flags": ["DRAIN"], "reason_changed_at": 1_796_000_000})
    kept = node_from({**base, "state": ["IDLE", "MAINTENANCE"]})

    assert (drained.trouble, drained.trouble_since_seconds, drained.trouble_text) == (
        "drain", 1_796_000_000.0, "bad NIC",
    )  # fmt: skip
    assert [node.trouble for node in (down, asleep, older)] == ["health", None, "drain"]
    assert [node.gpu_count for node in (down, asleep, older)] == [8, None, 8]
    assert (kept.maintenance, kept.trouble, kept.gpu_count) == (True, None, 8)


def test_a_reservation_for_maintenance_is_maintenance_of_its_nodes_while_it_lasts() -> None:
    rows = [
        {"name": "maint", "flags": ["MAINT", "IGNORE_JOBS"], "node_list": "gpu[001-002]",
         "start_time": set_(1000), "end_time": set_(2000)},
        {"name": "course", "flags": [], "node_list": "gpu003", "start_time": set_(1000), "end_time": set_(2000)},
    ]  # fmt: skip

    assert reserved(rows, 1500.0) == {"gpu001": (1000.0, "maint"), "gpu002": (1000.0, "maint")}
    assert reserved(rows, 999.0) == {}
    assert reserved(rows, 2000.0) == {}


def test_limits_of_a_qos_are_those_of_the_group_of_users_and_of_accounts() -> None:
    def gpu(count: int) -> list[dict[str, Any]]:
        return [{"type": "gres", "name": "gpu", "id": 1001, "count": count}]

    document = {
        "qos": [
            {
                "name": "normal",
                "limits": {"max": {"tres": {"total": gpu(64), "per": {"user": gpu(16), "account": []}}}},
            },
            {"name": "free", "limits": {"max": {"tres": {"total": [], "per": {"user": []}}}}},
        ]
    }

    assert gpu_limits(document) == (
        GpuLimit(kind="qos", name="normal", gpus=64),
        GpuLimit(kind="qos_per_user", name="normal", gpus=16),
    )
