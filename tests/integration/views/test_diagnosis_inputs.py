"""Each input of the diagnosis on its way from the wire to a job's page; without it the page says what is missing."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.integration.views.site import GPUS_A_NODE, Site, gpu_name, job_ref, tokens_for

from flopwatch.answers.diagnosis import Diagnosis
from flopwatch.query import Range
from flopwatch.wire import JobSample, NodeSample, Phase, PortSample, RunFacts, StepRecord

SECONDS, STEP = 400.0, 10.0
EMPTY = {
    "kernel_active_ratio": 0.55,
    "sm_active_ratio": 0.15,
    "dram_active_ratio": 0.12,
    "tensor_active_ratio": 0.1,
}
SHAPE = {
    "n_layers": 32, "hidden": 4096, "ffn_hidden": 14336, "n_heads": 32, "n_kv_heads": 8, "gated_mlp": True,
    "vocab": 128256,
}  # fmt: skip


def steps(start: float, **changes: Any) -> tuple[StepRecord, ...]:
    values: dict[str, Any] = {"source": "log", "source_id": "log-17", "rank": 0, **changes}
    return tuple(
        StepRecord(
            job="slurm:17", step=number, end_time_seconds=start + number * STEP, seconds=STEP,
            tokens=tokens_for(0.20, STEP), **values,
        )
        for number in range(1, int(SECONDS / STEP) + 1)
    )  # fmt: skip


def sampled(start: float, make: Callable[..., Any], **values: Any) -> tuple[Any, ...]:
    """Ten seconds apart; a value may be a function of the time since the start."""
    return tuple(
        make(
            time_seconds=start + at,
            **{name: value(at) if callable(value) else value for name, value in values.items()},
        )
        for at in range(10, int(SECONDS) + 1, 10)
    )


def diagnosed(site: Site, samples: dict[str, Any], **given: Any) -> dict[str, Diagnosis]:
    """The page's diagnosis by code, after 400 s of training."""
    start = site.now
    busy = {"power_watts": 500.0, "process_count": 1, **samples}
    given = {"steps": steps(start), "job": job_ref(), **given}
    site.push("n1", start, SECONDS, samples=busy, **given)
    site.tick()
    page = site.query.job(site.job_facts().row.job_id, Range(seconds=3_600.0))
    assert page is not None
    return {one.code: one for one in page.diagnosis}


def evidence(one: Diagnosis) -> dict[str, Any]:
    return {sign.code: sign.value for sign in one.evidence}


def test_a_full_main_thread_beside_empty_gpus_is_launch_bound(site: Site) -> None:
    hosts = sampled(site.now, JobSample, job="slurm:17", main_thread_ratio=0.99, cpu_pressure_ratio=0.02)

    found = diagnosed(site, EMPTY, job_samples=hosts)

    assert evidence(found["launch_bound"])["main_thread"] == pytest.approx(0.99)
    assert evidence(found["launch_bound"])["cpu_pressure"] == pytest.approx(0.02)


def test_without_host_signals_the_same_run_is_not_explained_and_they_are_named(site: Site) -> None:
    found = diagnosed(site, EMPTY)

    (only,) = found.values()
    assert only.code == "unexplained"
    assert set(only.missing) == {
        "profiler",
        "main_thread",
        "host_wait",
        "pcie_receive",
        "nic_rate",
        "local_compute_seconds",
    }


def test_one_full_data_loader_or_a_waiting_cgroup_beside_idle_gpus_is_a_data_stall(site: Site) -> None:
    hosts = sampled(
        site.now, JobSample, job="slurm:17", loader_busiest_ratio=0.97, io_pressure_ratio=0.6, memory_pressure_ratio=0.1
    )  # fmt: skip
    nodes = sampled(site.now, NodeSample, cpu_busy_ratio=0.2, io_wait_ratio=0.3)
    idle = {"kernel_active_ratio": 0.08, "sm_active_ratio": 0.05, "tensor_active_ratio": 0.02}

    told = evidence(diagnosed(site, idle, job_samples=hosts, node_samples=nodes)["data_stall"])

    assert told["loader"] == pytest.approx(0.97)
    assert told["io_pressure"] == pytest.approx(0.6)
    assert told["cpu_busy"] == pytest.approx(0.2)
    assert told["io_wait"] == pytest.approx(0.3)


def test_pcie_traffic_is_a_rate_of_the_counter(site: Site) -> None:
    start = site.now
    copying = {
        "kernel_active_ratio": 0.5, "sm_active_ratio": 0.22, "tensor_active_ratio": 0.1,
        "pcie_receive_bytes": lambda time: round((time - start) * 6e9),
    }  # fmt: skip

    found = diagnosed(site, copying)["data_stall"]

    assert found.confidence == "medium"
    assert evidence(found)["pcie_receive"] == pytest.approx(6e9)


def test_network_traffic_is_held_against_the_line_rate_of_the_ports(site: Site) -> None:
    ports = [
        sample
        for name in ("mlx5_0/1", "mlx5_1/1")
        for sample in sampled(
            site.now, PortSample, port=name, role="rdma", link_up=True, link_rate_bits_per_second=400e9,
            transmit_bytes=lambda at: round(at * 41e9), receive_bytes=lambda at: round(at * 30e9),
        )
    ]  # fmt: skip
    busy = {"kernel_active_ratio": 0.97, "sm_active_ratio": 0.6, "tensor_active_ratio": 0.20}

    found = diagnosed(site, busy, port_samples=ports)["communication_bandwidth"]

    assert evidence(found)["nic_rate"] == pytest.approx(0.82)


def test_the_rank_that_waits_least_is_the_slow_one(site: Site) -> None:
    start = site.now
    waits = {rank: 0.1 if rank == 5 else 2.0 for rank in range(GPUS_A_NODE)}
    told = [
        step
        for rank in waits
        for step in steps(start, source="sdk", source_id=f"sdk-{rank}", rank=rank)
    ]  # fmt: skip
    phases = [
        Phase(
            job="slurm:17", kind="communication", source="sdk", source_id=f"sdk-{rank}",
            begin_seconds=step.end_time_seconds - wait, end_seconds=step.end_time_seconds, step=step.step,
        )
        for rank, wait in waits.items()
        for step in steps(start)
    ]  # fmt: skip
    job = job_ref(ranks=tuple(waits), gpu_ranks=tuple(waits))
    busy = {"kernel_active_ratio": 0.97, "sm_active_ratio": 0.6, "tensor_active_ratio": 0.3}

    found = diagnosed(site, busy, job=job, steps=told, phases=phases)["straggler_gpu"]

    assert found.subject == f"n1, GPU {gpu_name('n1', 5)}, rank 5"
    assert evidence(found)["slow_local_compute"] == pytest.approx(9.9, abs=0.02)
    assert found.lost_ratio == pytest.approx(1 - 8.0 / 9.9, abs=0.005)


def run(**facts: Any) -> RunFacts:
    return RunFacts(source="log", origin="log", dtype="bf16", dtype_basis="log", **facts)


def test_stages_and_micro_batches_of_the_run_give_its_bubble(site: Site) -> None:
    facts = run(parameter_count=8_000_000_000, pipeline_parallel=8, micro_batches=8, pipeline_chunks=2)

    found = diagnosed(site, EMPTY, job=job_ref(run=(facts,)))["pipeline_bubble"]

    # (8 - 1) / 2 chunks over 8 micro batches and that.
    assert evidence(found)["bubble"] == pytest.approx(3.5 / 11.5)


def test_stages_without_their_micro_batches_are_said(site: Site) -> None:
    facts = run(parameter_count=8_000_000_000, pipeline_parallel=8)

    assert "micro_batches" in diagnosed(site, EMPTY, job=job_ref(run=(facts,)))["unexplained"].missing


def test_full_recompute_is_a_third_more_work_than_the_models(site: Site) -> None:
    facts = run(shape=SHAPE, sequence_length=8192, activation_recompute="full")
    busy = {"kernel_active_ratio": 0.97, "sm_active_ratio": 0.6, "tensor_active_ratio": 0.4}

    found = diagnosed(site, busy, job=job_ref(run=(facts,)))["recompute"]

    told = evidence(found)
    assert told["hfu"] / told["mfu"] == pytest.approx(4 / 3)
    assert found.lost_ratio == pytest.approx(0.25)
