"""Causes in the work itself: communication, pipeline, small kernels, memory bandwidth, recompute, step time."""

from typing import Final

from flopwatch.answers.diagnosis import Diagnosis
from flopwatch_collector.compute.detection import peers
from flopwatch_collector.compute.diagnosis.evidence import RunEvidence
from flopwatch_collector.compute.diagnosis.signs import at_least, below, known, sign

BUBBLE: Final = 0.10
LINE_SHARE: Final = 0.60
EXPOSED: Final = 0.20
RECOMPUTE: Final = 0.05
IMPOSSIBLE_MFU: Final = 0.75
NORM: Final = 0.40
"""What a healthy run reaches where its class has no published range."""


def bandwidth(run: RunEvidence) -> Diagnosis | None:
    """Kernels resident, little arithmetic, links near their line rate, all ranks alike."""
    counters, exposed = run.counters, run.shares.exposed_communication_ratio
    loaded = at_least(counters.nic_ratio, LINE_SHARE) or at_least(counters.nvlink_ratio, LINE_SHARE)
    busy = at_least(counters.kernel_active_ratio, 0.90) and below(counters.tensor_active_ratio, 0.25)
    if not (busy and loaded) or peers.suspect_of(run.gpus, run.links) is not None:
        return None
    return Diagnosis(
        code="communication_bandwidth",
        confidence="high" if at_least(exposed, EXPOSED) else "medium",
        evidence=known(
            sign("tensor_active", counters.tensor_active_ratio, 0.25),
            sign("nic_rate", counters.nic_ratio, LINE_SHARE),
            sign("nvlink_rate", counters.nvlink_ratio, LINE_SHARE),
            sign("exposed_communication", exposed, EXPOSED),
        ),
        missing=() if exposed is not None else ("profiler",),
        lost_ratio=exposed,
    )


def waiting(run: RunEvidence) -> Diagnosis | None:
    """Kernels resident, hardly any arithmetic and hardly any traffic: ranks wait for one another."""
    counters = run.counters
    idle = below(counters.tensor_active_ratio, 0.15) and below(counters.nic_ratio, 0.20)
    few = counters.sm_active_ratio is None or counters.sm_active_ratio < 0.50
    if not at_least(counters.kernel_active_ratio, 0.90) or not idle or not few:
        return None
    if peers.suspect_of(run.gpus, run.links) is not None:
        return None
    return Diagnosis(
        code="communication_waiting",
        confidence="medium" if counters.sm_active_ratio is not None else "low",
        evidence=known(
            sign("tensor_active", counters.tensor_active_ratio, 0.15),
            sign("nic_rate", counters.nic_ratio, 0.20),
            sign("sm_active", counters.sm_active_ratio, 0.50),
        ),
        missing=peers.missing_signals(run.gpus, run.links),
    )


def bubble(run: RunEvidence) -> Diagnosis | None:
    """The pipeline's own idle share, by arithmetic."""
    pipeline = run.pipeline
    if pipeline is None or pipeline.bubble_ratio < BUBBLE:
        return None
    return Diagnosis(
        code="pipeline_bubble",
        confidence="high",
        evidence=(
            sign("bubble", pipeline.bubble_ratio, BUBBLE),
            sign("stages", float(pipeline.stages), None, "count"),
            sign("micro_batches", float(pipeline.micro_batches), None, "count"),
        ),
        lost_ratio=pipeline.bubble_ratio,
    )


def launch_bound(run: RunEvidence) -> Diagnosis | None:
    """One thread of the host cannot launch kernels fast enough: GPUs resident but nearly empty."""
    counters, thread = run.counters, run.host.main_thread_ratio
    empty = below(counters.sm_active_ratio, 0.25) and below(counters.dram_active_ratio, 0.40)
    quiet = counters.nic_ratio is None or counters.nic_ratio < 0.20
    if not (at_least(counters.kernel_active_ratio, 0.40) and empty and quiet and at_least(thread, 0.90)):
        return None
    return Diagnosis(
        code="launch_bound",
        confidence="medium",
        evidence=known(
            sign("sm_active", counters.sm_active_ratio, 0.25),
            sign("dram_active", counters.dram_active_ratio, 0.40),
            sign("main_thread", thread, 0.90),
            sign("cpu_pressure", run.host.cpu_pressure_ratio),
        ),
        missing=("profiler",),
    )


def memory_bandwidth(run: RunEvidence) -> Diagnosis | None:
    """HBM busy, SMs and tensor pipes not."""
    counters = run.counters
    busy = at_least(counters.dram_active_ratio, 0.50) and below(counters.sm_active_ratio, 0.50)
    if not busy or not below(counters.tensor_active_ratio, 0.25):
        return None
    return Diagnosis(
        code="memory_bandwidth",
        confidence="medium",
        evidence=known(
            sign("dram_active", counters.dram_active_ratio, 0.50),
            sign("sm_active", counters.sm_active_ratio, 0.50),
            sign("tensor_active", counters.tensor_active_ratio, 0.25),
        ),
    )


def under_filled(run: RunEvidence) -> Diagnosis | None:
    """Neither hosts nor GPUs nor their memory are ever full: there is room for a larger batch."""
    values = (run.host.cpu_p95_ratio, run.counters.kernel_p95_ratio, run.counters.memory_p95_ratio)
    if not all(below(value, 0.70) for value in values):
        return None
    codes = ("cpu_p95", "kernel_p95", "memory_p95")
    evidence = tuple(sign(code, value, 0.70) for code, value in zip(codes, values, strict=True))
    return Diagnosis(code="under_filled", confidence="medium", evidence=evidence)


def recompute(run: RunEvidence) -> Diagnosis | None:
    """Work done twice, or a figure that cannot be."""
    mfu, hfu = run.efficiency.mfu_ratio, run.efficiency.hfu_ratio
    if mfu is not None and mfu > IMPOSSIBLE_MFU:
        return Diagnosis(code="wrong_peak", confidence="high", evidence=(sign("mfu", mfu, IMPOSSIBLE_MFU),))
    if mfu is None or hfu is None or hfu - mfu <= RECOMPUTE:
        return None
    evidence = (sign("hfu", hfu), sign("mfu", mfu))
    return Diagnosis(code="recompute", confidence="high", evidence=evidence, lost_ratio=1.0 - mfu / hfu)


def step_time(run: RunEvidence) -> Diagnosis | None:
    """The step time rose, at once or slowly, with shape and batch unchanged."""
    change = run.change
    if change is None or change.ratio <= 0.0:
        return None
    return Diagnosis(
        code="step_time_rose" if change.kind == "step" else "step_time_drifts",
        confidence="medium",
        evidence=(sign("step_time", change.after_seconds, change.before_seconds, "seconds"),),
        lost_ratio=1.0 - change.before_seconds / change.after_seconds,
    )


def healthy(run: RunEvidence) -> Diagnosis | None:
    """The MFU is what runs of the class reach, or the tensor pipes are as busy as good runs keep them."""
    efficiency, counters = run.efficiency, run.counters
    level = efficiency.norm_ratio if efficiency.norm_ratio is not None else NORM
    full = at_least(counters.tensor_active_ratio, 0.50) and at_least(counters.sm_active_ratio, 0.60)
    if not at_least(efficiency.mfu_ratio, level) and not (efficiency.mfu_ratio is None and full):
        return None
    evidence = known(
        sign("mfu", efficiency.mfu_ratio, level),
        sign("tensor_active", counters.tensor_active_ratio, 0.50),
        sign("sm_active", counters.sm_active_ratio, 0.60),
    )
    return Diagnosis(code="healthy", confidence="info", evidence=evidence)
