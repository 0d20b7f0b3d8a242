"""Inputs and the causes they must give, worked out by hand from the table in docs/diagnosis.md."""

from dataclasses import replace

import pytest

from flopwatch_collector.compute.detection.overdue import Silence
from flopwatch_collector.compute.detection.peers import GpuSignal, LinkSignal
from flopwatch_collector.compute.diagnosis.evidence import (
    Counters,
    Efficiency,
    Host,
    Layout,
    Pipeline,
    RunEvidence,
    Shares,
    Sibling,
)
from flopwatch_collector.compute.diagnosis.order import diagnose

ALIKE = tuple(
    GpuSignal(node=f"n{i // 4}", gpu=str(i % 4), rank=i, local_compute_seconds=10.0) for i in range(16)
)


def codes(run: RunEvidence) -> list[str]:
    return [found.code for found in diagnose(run)]


def test_a_silent_run_with_idle_tensor_pipes_and_low_power_hangs() -> None:
    silence = Silence(overdue_seconds=700.0, gap_seconds=9.0, tensor_active_ratio=0.0005, power_ratio=0.12)

    found = diagnose(RunEvidence(silence=silence, counters=Counters(kernel_active_ratio=1.0)))

    assert [(one.code, one.confidence, one.lost_ratio) for one in found] == [("hang", "high", 1.0)]


def test_a_throttled_rank_is_throttled_and_a_straggler_and_no_communication() -> None:
    gpus = tuple(
        replace(g, local_compute_seconds=13.5, throttle_share=0.5) if g.rank == 5 else g for g in ALIKE
    )
    counters = Counters(kernel_active_ratio=0.98, tensor_active_ratio=0.08, nic_ratio=0.07)

    found = {one.code: one for one in diagnose(RunEvidence(counters=counters, gpus=gpus))}

    assert set(found) == {"throttled", "straggler_gpu"}
    assert found["straggler_gpu"].subject == "n1, GPU 1, rank 5"
    assert found["straggler_gpu"].lost_ratio == pytest.approx(0.259, abs=0.001)
    assert found["straggler_gpu"].confidence == "high"


def test_a_node_whose_gpus_are_all_throttled_is_named_and_none_of_its_gpus() -> None:
    gpus = tuple(
        GpuSignal(
            node=f"n{i // 4}", gpu=str(i % 4), rank=i, sm_clock_hertz=1.1e9 if i // 4 == 2 else 1.7e9,
            throttle_share=1.0 if i // 4 == 2 else 0.0,
        )
        for i in range(16)
    )  # fmt: skip
    alone = tuple(replace(g, sm_clock_hertz=1.7e9, throttle_share=0.0) if g.rank != 9 else g for g in gpus)

    node = {one.code: one.subject for one in diagnose(RunEvidence(gpus=gpus))}
    gpu = {one.code: one.subject for one in diagnose(RunEvidence(gpus=alone))}

    assert node == {"throttled": "n2", "straggler_node": "n2"}
    assert gpu == {"throttled": "n2, GPU 1, rank 9", "straggler_gpu": "n2, GPU 1, rank 9"}


def test_busy_links_on_all_nodes_are_communication_bandwidth() -> None:
    counters = Counters(kernel_active_ratio=0.97, tensor_active_ratio=0.20, nic_ratio=0.82)
    links = tuple(LinkSignal(node=f"n{i}", bytes_per_second=41e9) for i in range(4))

    found = diagnose(RunEvidence(counters=counters, gpus=ALIKE, links=links))

    assert [one.code for one in found] == ["communication_bandwidth"]
    assert found[0].confidence == "medium"
    assert found[0].missing == ("profiler",)


def test_one_full_core_and_empty_gpus_are_launch_bound() -> None:
    counters = Counters(kernel_active_ratio=0.55, sm_active_ratio=0.15, dram_active_ratio=0.12)

    assert codes(RunEvidence(counters=counters, host=Host(main_thread_ratio=0.99))) == ["launch_bound"]


def test_pcie_traffic_beside_idle_sms_is_a_data_stall() -> None:
    counters = Counters(sm_active_ratio=0.22, pcie_receive_bytes_per_second=6e9)

    found = diagnose(RunEvidence(counters=counters, host=Host(cpu_busy_ratio=0.96)))

    assert [(one.code, one.confidence) for one in found] == [("data_stall", "medium")]


def test_busy_memory_and_idle_pipes_are_memory_bandwidth() -> None:
    counters = Counters(dram_active_ratio=0.74, sm_active_ratio=0.41, tensor_active_ratio=0.09)

    assert codes(RunEvidence(counters=counters)) == ["memory_bandwidth"]


@pytest.mark.parametrize(
    ("stages", "micro_batches", "chunks", "ratio"),
    [(8, 8, 1, 7 / 15), (8, 64, 1, 7 / 71), (8, 8, 2, 3.5 / 11.5), (1, 8, 1, 0.0)],
)
def test_the_bubble_is_arithmetic(stages: int, micro_batches: int, chunks: int, ratio: float) -> None:
    pipeline = Pipeline(stages=stages, micro_batches=micro_batches, chunks=chunks)

    assert pipeline.bubble_ratio == pytest.approx(ratio)
    assert ("pipeline_bubble" in codes(RunEvidence(pipeline=pipeline))) is (ratio >= 0.10)


def test_at_the_power_limit_and_at_its_norm_is_healthy_with_a_note() -> None:
    run = RunEvidence(
        counters=Counters(power_cap_share=0.98, power_limit_ratio=0.99),
        efficiency=Efficiency(mfu_ratio=0.46),
    )

    assert [(one.code, one.confidence) for one in diagnose(run)] == [
        ("healthy", "info"),
        ("power_capped", "info"),
    ]


def test_utilisation_alone_never_gives_a_cause() -> None:
    run = RunEvidence(counters=Counters(kernel_active_ratio=0.96), efficiency=Efficiency(mfu_ratio=0.21))

    found = diagnose(run)

    assert [one.code for one in found] == ["insufficient_data"]
    assert found[0].missing == ("tensor_active", "sm_active")


def test_too_few_samples_are_said_and_nothing_is_concluded_from_them() -> None:
    counters = Counters(dram_active_ratio=0.74, sm_active_ratio=0.41, tensor_active_ratio=0.09)

    found = diagnose(RunEvidence(coverage_ratio=0.5, counters=counters))

    assert [(one.code, one.missing) for one in found] == [("insufficient_data", ("samples",))]


@pytest.mark.parametrize(("wait", "confidence"), [(0.25, "high"), (0.12, "medium")])
def test_a_run_that_tells_of_its_data_wait_is_believed(wait: float, confidence: str) -> None:
    found = diagnose(RunEvidence(shares=Shares(data_wait_ratio=wait)))[0]

    assert (found.code, found.confidence, found.lost_ratio) == ("data_stall", confidence, wait)


def test_what_keeps_batches_from_being_made_stands_beside_the_told_wait_and_nothing_else_of_the_host() -> (
    None
):
    host = Host(loader_ratio=0.98, io_wait_ratio=0.07, cpu_busy_ratio=0.31, io_pressure_ratio=0.62)

    found = diagnose(RunEvidence(shares=Shares(data_wait_ratio=0.37), host=host))[0]

    assert [(one.code, one.value, one.reference) for one in found.evidence] == [
        ("data_wait", 0.37, 0.20), ("loader", 0.98, 0.90), ("io_pressure", 0.62, 0.50),
    ]  # fmt: skip


def test_causes_are_ranked_by_the_time_they_explain_and_three_at_most() -> None:
    run = RunEvidence(
        shares=Shares(data_wait_ratio=0.11, checkpoint_ratio=0.07, checkpoint_recorded=True),
        pipeline=Pipeline(stages=4, micro_batches=8),
        efficiency=Efficiency(mfu_ratio=0.30, hfu_ratio=0.40),
    )

    found = diagnose(run)

    assert [one.code for one in found] == ["pipeline_bubble", "recompute", "data_stall"]
    assert found[0].lost_ratio == pytest.approx(3 / 11)


DIPS = Shares(periodic_dip_ratio=0.12, dip_seconds=34.0, dip_period_seconds=283.0, dip_period_steps=25.0)


def test_dips_that_come_back_while_it_writes_are_checkpoints_that_nobody_told_of() -> None:
    (found,) = diagnose(RunEvidence(shares=replace(DIPS, write_io_high=True)))

    assert (found.code, found.confidence, found.lost_ratio) == ("checkpoint_stall", "medium", 0.12)
    assert {one.code: one.value for one in found.evidence} == {
        "periodic_dips": 0.12, "dip_length": 34.0, "dip_every_steps": 25.0, "write_io": 1.0,
    }  # fmt: skip


def test_dips_that_come_back_without_writes_are_told_as_such() -> None:
    quiet = diagnose(RunEvidence(shares=replace(DIPS, write_io_high=False)))[0]
    unknown = diagnose(RunEvidence(shares=replace(DIPS, dip_period_steps=None)))[0]

    assert (quiet.code, quiet.lost_ratio) == ("periodic_pauses", 0.12)
    assert [one.code for one in quiet.against] == ["no_writes"]
    assert (unknown.code, unknown.missing) == ("periodic_pauses", ("phases", "writes"))
    assert {one.code: one.value for one in unknown.evidence}["dip_every"] == 283.0


def test_dips_below_a_twentieth_of_the_time_are_no_cause() -> None:
    assert codes(RunEvidence(shares=replace(DIPS, periodic_dip_ratio=0.049))) == ["insufficient_data"]


def test_an_impossible_mfu_is_doubted() -> None:
    assert codes(RunEvidence(efficiency=Efficiency(mfu_ratio=0.80))) == ["wrong_peak"]


def test_another_layout_that_reached_more_is_told_with_what_it_cost() -> None:
    this = Sibling(job_id="b", mfu_ratio=0.33, gpus=512, layout=Layout(data=32, tensor=8, pipeline=2))
    best = Sibling(
        job_id="a", mfu_ratio=0.41, gpus=512, layout=Layout(data=64, tensor=8, memory_headroom_ratio=0.04)
    )

    found = diagnose(RunEvidence(this=this, siblings=(best,)))[0]

    assert found.code == "slower_layout"
    assert found.evidence[0].value == "DP 64 x TP 8 (a)"
    assert found.evidence[2].value == "DP 32 x TP 8 x PP 2"
    assert found.against[0].value == 0.04
    assert found.lost_ratio == pytest.approx(1 - 0.33 / 0.41)


def test_the_same_layout_on_other_nodes_that_reached_more_is_told() -> None:
    layout = Layout(data=64, tensor=8)
    this = Sibling(job_id="b", mfu_ratio=0.33, gpus=512, layout=layout, nodes=frozenset(("n1",)))
    best = Sibling(job_id="a", mfu_ratio=0.41, gpus=512, layout=layout, nodes=frozenset(("n2",)))

    assert codes(RunEvidence(this=this, siblings=(best,))) == ["slower_nodes"]
