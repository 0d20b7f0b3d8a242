"""Causes that stop or pause a run: hangs, checkpoints, data, pauses of the host."""

from typing import Final

from flopwatch.answers.diagnosis import Confidence, Diagnosis, Sign
from flopwatch_collector.compute.detection import overdue
from flopwatch_collector.compute.diagnosis.evidence import Host, RunEvidence
from flopwatch_collector.compute.diagnosis.signs import at_least, below, known, missing, sign

CHECKPOINT_SHARE: Final = 0.05
DATA_SHARE: Final = 0.20
DATA_SUSPECT_SHARE: Final = 0.10
SPIKE_SHARE: Final = 0.01
PCIE_BYTES_PER_SECOND: Final = 1e9


def hang(run: RunEvidence) -> Diagnosis | None:
    """No step for too long, and the hardware agrees; with two signals the confidence is high."""
    if run.silence is None or overdue.standing(run.silence) != "hang":
        return None
    silence, signals = run.silence, overdue.corroboration(run.silence)
    return Diagnosis(
        code="hang",
        confidence="high" if len(signals) >= overdue.EARLY_SIGNALS else "medium",
        evidence=known(
            sign("no_step", silence.overdue_seconds, silence.gap_seconds, "seconds"),
            sign("tensor_active", silence.tensor_active_ratio, overdue.TENSOR_RATIO),
            sign("power_of_usual", silence.power_ratio, overdue.POWER_RATIO),
            sign("network_of_usual", silence.nic_ratio, overdue.NIC_RATIO),
        ),
        missing=() if len(signals) >= overdue.EARLY_SIGNALS else overdue.missing_signals(silence),
        lost_ratio=1.0,
    )


def checkpoint(run: RunEvidence) -> Diagnosis | None:
    """Blocking checkpoints take a twentieth of the time or more."""
    shares = run.shares
    if at_least(shares.checkpoint_ratio, CHECKPOINT_SHARE):
        told: Confidence = "high" if shares.checkpoint_recorded else "medium"
        share = sign("checkpoint_share", shares.checkpoint_ratio, CHECKPOINT_SHARE)
        return Diagnosis(
            code="checkpoint_stall", confidence=told, evidence=(share,), lost_ratio=shares.checkpoint_ratio
        )
    if at_least(shares.periodic_dip_ratio, CHECKPOINT_SHARE) and shares.write_io_high:
        return Diagnosis(
            code="checkpoint_stall", confidence="medium",
            evidence=(*_dips(run), Sign(code="write_io", value=1.0)), missing=("phases",),
            lost_ratio=shares.periodic_dip_ratio,
        )  # fmt: skip
    return None


def periodic_pauses(run: RunEvidence) -> Diagnosis | None:
    """Dips that come back and no phase explains, where the run is not known to write to storage meanwhile."""
    shares = run.shares
    if not at_least(shares.periodic_dip_ratio, CHECKPOINT_SHARE) or shares.write_io_high:
        return None
    quiet = shares.write_io_high is False
    return Diagnosis(
        code="periodic_pauses", confidence="medium", evidence=_dips(run),
        against=(Sign(code="no_writes", value=1.0),) if quiet else (),
        missing=("phases",) if quiet else ("phases", "writes"), lost_ratio=shares.periodic_dip_ratio,
    )  # fmt: skip


def _dips(run: RunEvidence) -> tuple[Sign, ...]:
    """The share, length and rhythm of regular dips: in steps where they follow the steps, else in seconds."""
    shares = run.shares
    by_steps = shares.dip_period_steps is not None
    return known(
        sign("periodic_dips", shares.periodic_dip_ratio, CHECKPOINT_SHARE),
        sign("dip_length", shares.dip_seconds, None, "seconds"),
        sign("dip_every_steps", shares.dip_period_steps, None, "count"),
        sign("dip_every", None if by_steps else shares.dip_period_seconds, None, "seconds"),
    )


def data(run: RunEvidence) -> Diagnosis | None:
    """The run waits for its data: as it tells itself, else by idle GPUs beside busy hosts, or by the PCIe traffic."""
    wait, counters, host = run.shares.data_wait_ratio, run.counters, run.host
    if at_least(wait, DATA_SUSPECT_SHARE):
        high: Confidence = "high" if at_least(wait, DATA_SHARE) else "medium"
        told = sign("data_wait", wait, DATA_SHARE)
        return Diagnosis(
            code="data_stall", confidence=high, evidence=(told, *_held_up_by(host)), lost_ratio=wait
        )
    if wait is not None:
        return None
    idle = counters.kernel_active_ratio is not None and counters.kernel_active_ratio <= 0.10
    starved = idle and bool(_held_up_by(host))
    copying = at_least(counters.pcie_receive_bytes_per_second, PCIE_BYTES_PER_SECOND) and below(
        counters.sm_active_ratio, 0.30
    )
    if not starved and not copying:
        return None
    evidence = known(
        sign("kernel_active", counters.kernel_active_ratio),
        sign("sm_active", counters.sm_active_ratio, 0.30),
        sign(
            "pcie_receive", counters.pcie_receive_bytes_per_second, PCIE_BYTES_PER_SECOND, "bytes_per_second"
        ),
    )
    return Diagnosis(
        code="data_stall",
        confidence="medium",
        evidence=(*evidence, *_host_signs(host)),
        missing=("data_wait",),
    )


def _host_signs(host: Host) -> tuple[Sign, ...]:
    """What is known of a host's CPUs, data loaders, storage and memory."""
    return known(
        sign("cpu_busy", host.cpu_busy_ratio, 0.90),
        sign("loader", host.loader_ratio, 0.90),
        sign("io_wait", host.io_wait_ratio, 0.50),
        sign("io_pressure", host.io_pressure_ratio, 0.50),
        sign("memory_pressure", host.memory_pressure_ratio, 0.50),
    )


def _held_up_by(host: Host) -> tuple[Sign, ...]:
    """Which of them keep batches from being made."""
    return tuple(
        each
        for each in _host_signs(host)
        if isinstance(each.value, float) and each.reference is not None and each.value >= each.reference
    )


def unmeasured(run: RunEvidence) -> tuple[str, ...]:
    """Signals beside the GPUs' own that are not there and might say more."""
    host, counters = run.host, run.counters
    waits = host.io_wait_ratio if host.io_pressure_ratio is None else host.io_pressure_ratio
    names = missing(
        main_thread=host.main_thread_ratio, host_wait=waits, pcie_receive=counters.pcie_receive_bytes_per_second,
        nic_rate=counters.nic_ratio,
    )  # fmt: skip
    if run.pipeline is None and (run.pipeline_stages or 1) > 1:
        names = (*names, "micro_batches")
    if not any(gpu.local_compute_seconds is not None for gpu in run.gpus):
        names = (*names, "local_compute_seconds")
    return names


def host_pauses(run: RunEvidence) -> Diagnosis | None:
    """Single long steps on random ranks: pauses of the host's own."""
    if not at_least(run.shares.spike_ratio, SPIKE_SHARE) or not run.shares.spikes_on_random_ranks:
        return None
    evidence = (sign("spike_share", run.shares.spike_ratio, SPIKE_SHARE),)
    return Diagnosis(code="host_pauses", confidence="low", evidence=evidence, missing=("profiler",))


def insufficient(run: RunEvidence) -> Diagnosis:
    """What would be needed to say more."""
    counters = run.counters
    return Diagnosis(
        code="insufficient_data",
        confidence="info",
        evidence=known(
            sign("samples", run.coverage_ratio if run.coverage_ratio < 1.0 else None, 0.60),
            sign("kernel_active", counters.kernel_active_ratio),
            sign("mfu", run.efficiency.mfu_ratio, run.efficiency.norm_ratio),
        ),
        missing=missing(tensor_active=counters.tensor_active_ratio, sm_active=counters.sm_active_ratio)
        or ("samples",),
    )
