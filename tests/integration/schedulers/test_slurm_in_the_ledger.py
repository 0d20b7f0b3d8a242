"""Slurm's commands through ingest and the ledger: who held what, and why the rest was free."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.schedulers.site import T0, Site, command, reports, site, uuid

from flopwatch import wire


def running(number: int, node: str, indices: str, gpus: int, **more: Any) -> dict[str, Any]:
    row = {
        "job_id": number, "job_state": ["RUNNING"], "name": f"job{number}", "user_name": "alice", "account": "nlp",
        "qos": "high", "partition": "h100", "submit_time": {"set": True, "infinite": False, "number": int(T0) - 60},
        "start_time": {"set": True, "infinite": False, "number": int(T0)}, "nodes": node,
        "tres_alloc_str": f"cpu=8,node=1,gres/gpu={gpus}", "gres_detail": [f"gpu:h100:{gpus}(IDX:{indices})"],
    }  # fmt: skip
    return {**row, **more}


def waiting(number: int, gpus: int, **more: Any) -> dict[str, Any]:
    return {
        "job_id": number, "job_state": ["PENDING"], "name": f"job{number}", "partition": "h100",
        "tres_req_str": f"gres/gpu={gpus}", "state_reason": "Resources", **more,
    }  # fmt: skip


def node(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "hostname": name, "gres": "gpu:h100:8(S:0-1)", "state": ["MIXED"], **more}


HELD = (running(101, "n1", "0-3", 4), running(102, "n2", "0-3", 4))


class Slurm:
    """What its commands print."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, folder / "bin"
        for name in ("jobs", "nodes", "reservations", "ended"):
            self.says(name, {name if name != "ended" else "jobs": []})
        command(self.bin, "squeue", f"exec cat {folder}/jobs.json")
        command(
            self.bin,
            "scontrol",
            f'case "$2" in nodes) exec cat {folder}/nodes.json ;; *) exec cat {folder}/reservations.json ;; esac',
        )
        command(self.bin, "sacct", f"exec cat {folder}/ended.json")
        command(self.bin, "sacctmgr", 'echo "Slurm accounting storage is disabled" >&2; exit 1')

    def says(self, name: str, document: dict[str, Any]) -> None:
        (self.folder / f"{name}.json").write_text(json.dumps(document))

    def jobs(self, *rows: dict[str, Any]) -> None:
        self.says("jobs", {"jobs": list(rows)})


@pytest.fixture
def slurm(tmp_path: Path) -> Slurm:
    made = Slurm(tmp_path)
    made.says("nodes", {"nodes": [node("n1"), node("n2")]})
    return made


@pytest.fixture
def cluster(tmp_path: Path, slurm: Slurm) -> Iterator[Site]:
    with site(
        tmp_path, {"scheduler": [{"kind": "slurm", "cluster": "c1", "commands": str(slurm.bin)}]}
    ) as made:
        yield made


def test_held_and_free_time_come_out_as_worked_out_by_hand(cluster: Site, slurm: Slurm) -> None:
    cluster.push(reports("n1", T0 - 10.0, T0, (0, 1)))
    cluster.push(reports("n2", T0 - 10.0, T0, (0, 1, 2, 3)))
    slurm.jobs(*HELD)
    cluster.read(T0)
    slurm.jobs(*HELD, waiting(103, 8))
    cluster.read(T0 + 600.0)
    slurm.jobs(*HELD, waiting(104, 2))
    cluster.read(T0 + 1200.0)
    slurm.jobs(*HELD, waiting(105, 16, state_reason="Dependency"))
    cluster.read(T0 + 1800.0)
    cluster.push(reports("n1", T0, T0 + 3600.0, (0, 1)))
    cluster.push(reports("n2", T0, T0 + 3600.0, (0, 1, 2, 3)))
    cluster.settle(T0 + 3600.0)

    spent = cluster.ledger(T0, T0 + 2400.0)
    by_job = {
        job.name: cluster.ledger(T0, T0 + 2400.0, job=job.number) for job in cluster.state.jobs.values()
    }

    # Of 16 GPUs 8 are held: six with a process that works, two (n1, 2 and 3) with none. Four of each node are free.
    assert spent == {
        "BUSY_OPAQUE": 6 * 2_400_000,
        "HELD_EMPTY": 2 * 2_400_000,
        "FREE:no_demand": 8 * 1_200_000,
        "FREE:fragmented": 8 * 600_000,
        "FREE:sched_delay": 8 * 600_000,
    }
    assert by_job == {
        "job101": {"BUSY_OPAQUE": 2 * 2_400_000, "HELD_EMPTY": 2 * 2_400_000},
        "job102": {"BUSY_OPAQUE": 4 * 2_400_000},
    }
    (job,) = [job for job in cluster.state.jobs.values() if job.name == "job101"]
    assert (job.user, job.account, job.scheduler_job_id) == ("alice", "nlp", "101")
    assert {lease.qos for lease in cluster.state.leases.values()} == {"high"}


def test_what_the_agent_sees_of_a_job_and_what_slurm_says_is_one_job(cluster: Site, slurm: Slurm) -> None:
    told = wire.JobSighting(
        ref="slurm:101",
        scheduler="slurm",
        scheduler_job_id="101",
        gpus=(uuid("n1", 0),),
        start_time_seconds=T0 + 5.0,
    )
    cluster.push(reports("n1", T0, T0 + 10.0, (0,)))
    slurm.jobs(HELD[0])

    cluster.read(T0 + 10.0)
    seen = reports("n1", T0 + 10.0, T0 + 20.0, (0,))
    cluster.push(wire.Batch(**{**{name: getattr(seen, name) for name in seen.__slots__}, "jobs": (told,)}))
    cluster.read(T0 + 40.0)

    (job,) = cluster.state.jobs.values()
    (lease,) = cluster.state.leases.values()
    assert (job.user, [part.ref for part in job.parts], job.start_seconds) == ("alice", ["slurm:101"], T0)
    assert (lease.source, lease.start_seconds, lease.end_seconds, len(lease.gpus)) == ("slurm", T0, None, 4)


def test_a_job_that_slurm_forgot_ends_when_accounting_says(cluster: Site, slurm: Slurm) -> None:
    cluster.push(reports("n1", T0 - 10.0, T0, ()))
    slurm.jobs(HELD[0])
    cluster.read(T0)
    slurm.jobs()
    slurm.says("ended", {"jobs": [{
        "job_id": 101, "state": {"current": ["NODE_FAIL"]}, "nodes": "n1", "user": "alice",
        "time": {"submission": int(T0) - 60, "start": int(T0), "end": int(T0) + 333},
        "tres": {"allocated": [{"type": "gres", "name": "gpu", "count": 4}]},
    }]})  # fmt: skip

    cluster.read(T0 + 400.0)
    cluster.read(T0 + 430.0)

    (job,) = cluster.state.jobs.values()
    (lease,) = cluster.state.leases.values()
    assert (lease.end_seconds, len(lease.gpus)) == (T0 + 333.0, 4)
    assert (job.end_seconds, job.exit_reason) == (T0 + 333.0, "node_fail")


def test_a_requeued_job_has_a_lease_for_each_start(cluster: Site, slurm: Slurm) -> None:
    cluster.push(reports("n1", T0 - 10.0, T0, ()))
    slurm.jobs(HELD[0])
    cluster.read(T0)
    slurm.jobs(waiting(101, 4, restart_cnt=1))
    cluster.read(T0 + 100.0)
    slurm.jobs(
        running(101, "n1", "4-7", 4, restart_cnt=1, start_time=int(T0) + 200, submit_time=int(T0) + 90)
    )
    cluster.read(T0 + 230.0)

    leases = sorted(cluster.state.leases.values(), key=lambda lease: lease.start_seconds)
    assert [(lease.start_seconds, lease.end_seconds) for lease in leases] == [
        (T0, T0 + 100.0),
        (T0 + 200.0, None),
    ]
    assert len(cluster.state.jobs) == 1
    indices = {gpu.number: gpu.index for gpu in cluster.state.gpus.values()}
    assert [sorted(indices[gpu] for gpu in lease.gpus) for lease in leases] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_nodes_that_nobody_reports_are_capacity_of_which_nothing_is_known(
    cluster: Site, slurm: Slurm
) -> None:
    cluster.push(reports("n1", T0 - 10.0, T0, ()))
    slurm.jobs()
    cluster.read(T0)
    cluster.push(reports("n1", T0, T0 + 1200.0, ()))
    cluster.settle(T0 + 1200.0)

    assert cluster.ledger(T0, T0 + 600.0) == {"FREE:no_demand": 8 * 600_000, "UNKNOWN": 8 * 600_000}

    cluster.push(reports("n2", T0 + 1200.0, T0 + 2400.0, ()))
    present = [gpu for gpu in cluster.state.gpus.values() if gpu.to_seconds is None]
    assert len(present) == 16
    assert {gpu.state for gpu in present} == {"ok"}


def test_a_drained_node_is_out_of_service_from_when_slurm_says_until_it_is_back(
    cluster: Site, slurm: Slurm
) -> None:
    cluster.push(reports("n1", T0 - 10.0, T0, ()))
    drained = node("n1", state=["IDLE", "DRAIN"], reason="bad NIC", reason_changed_at=int(T0) + 300)
    login = {"name": "login", "gres": "", "state": ["IDLE", "DRAIN"], "reason": "no GPUs here"}
    slurm.jobs()
    slurm.says("nodes", {"nodes": [node("n1"), login]})
    cluster.read(T0)
    slurm.says("nodes", {"nodes": [drained, login]})
    cluster.read(T0 + 330.0)
    slurm.says("nodes", {"nodes": [node("n1", state=["IDLE"])]})
    cluster.read(T0 + 900.0)
    cluster.push(reports("n1", T0, T0 + 2400.0, ()))
    cluster.settle(T0 + 2400.0)

    assert [known.name for known in cluster.state.nodes.values()] == ["n1"]
    assert cluster.ledger(T0, T0 + 1200.0) == {"FAULT": 8 * 600_000, "FREE:no_demand": 8 * 600_000}


def test_a_slurm_that_cannot_be_asked_changes_nothing_and_is_said(cluster: Site, slurm: Slurm) -> None:
    cluster.push(reports("n1", T0 - 10.0, T0, ()))
    slurm.jobs(HELD[0])
    cluster.read(T0)
    command(
        slurm.bin, "squeue", 'echo "slurm_load_jobs error: Unable to contact slurm controller" >&2; exit 1'
    )

    cluster.read(T0 + 30.0)

    (lease,) = cluster.state.leases.values()
    (health,) = cluster.schedulers.polls.health()
    assert lease.end_seconds is None
    assert health.read_seconds == T0
    assert health.problem == (
        "squeue --all --json ends with 1: slurm_load_jobs error: Unable to contact slurm controller"
    )
