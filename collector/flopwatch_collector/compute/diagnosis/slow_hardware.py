"""Causes in the hardware: throttled clocks, slow GPUs, nodes and links; and what only looks like it."""

from typing import Final

from flopwatch.answers.diagnosis import Confidence, Diagnosis, DiagnosisCode, Sign, Unit
from flopwatch_collector.compute.detection import peers
from flopwatch_collector.compute.detection.peers import GpuSignal, Suspect
from flopwatch_collector.compute.diagnosis.evidence import RunEvidence
from flopwatch_collector.compute.diagnosis.signs import at_least, known, sign

THROTTLED_CLOCK: Final = 0.95
CAPPED_SHARE: Final = 0.50
NEAR_LIMIT: Final = 0.95
UNEVEN: Final = 0.10
UNITS: Final[dict[str, Unit]] = {
    "local_compute": "seconds", "sm_clock": "hertz", "power": "watts", "nic_rate": "bytes_per_second",
}  # fmt: skip


def throttled(run: RunEvidence) -> Diagnosis | None:
    """A GPU's clock is held down by heat or the power brake, and lies below its peers'."""
    clocks = sorted(gpu.sm_clock_hertz for gpu in run.gpus if gpu.sm_clock_hertz is not None)
    usual = clocks[len(clocks) // 2] if clocks else None
    slow = [gpu for gpu in run.gpus if _held_down(gpu, usual)]
    if not slow:
        return None
    worst = min(slow, key=lambda gpu: gpu.sm_clock_hertz or 0.0)
    lost = None if usual is None or worst.sm_clock_hertz is None else 1.0 - worst.sm_clock_hertz / usual
    return Diagnosis(
        code="throttled",
        confidence="high" if worst.sm_clock_hertz is not None else "medium",
        evidence=known(
            sign("throttle_share", worst.throttle_share, peers.THROTTLE_SHARE),
            sign("sm_clock", worst.sm_clock_hertz, usual, "hertz"),
        ),
        missing=() if worst.sm_clock_hertz is not None else ("sm_clock",),
        subject=_subject(worst, slow),
        lost_ratio=None if lost is None else lost * min(1.0, worst.throttle_share or 1.0),
    )


def _subject(worst: GpuSignal, slow: list[GpuSignal]) -> str:
    """The GPU, where it is the only one of its node that is held down; else the node."""
    alone = sum(gpu.node == worst.node for gpu in slow) == 1
    return _name(worst.node, worst.gpu, worst.rank) if alone else worst.node


def _held_down(gpu: GpuSignal, usual: float | None) -> bool:
    if not at_least(gpu.throttle_share, peers.THROTTLE_SHARE):
        return False
    if gpu.sm_clock_hertz is None or usual is None:
        return True
    return gpu.sm_clock_hertz < THROTTLED_CLOCK * usual


def power_capped(run: RunEvidence) -> Diagnosis | None:
    """Most of the time at the power limit, on all ranks alike: normal at full load."""
    counters = run.counters
    if not at_least(counters.power_cap_share, CAPPED_SHARE) or not at_least(
        counters.power_limit_ratio, NEAR_LIMIT
    ):
        return None
    evidence = known(
        sign("power_cap_share", counters.power_cap_share, CAPPED_SHARE),
        sign("power_of_limit", counters.power_limit_ratio, NEAR_LIMIT),
    )
    return Diagnosis(code="power_capped", confidence="info", evidence=evidence)


def straggler(run: RunEvidence) -> Diagnosis | None:
    """One GPU, node or link slower than its peers; without evidence that singles it out, one of the nodes."""
    found = peers.suspect_of(run.gpus, run.links)
    if found is None or (found.kind == "compute" and run.rank_rotates):
        return _rotating(run, found)
    slow = Sign(
        code=f"slow_{found.signal}",
        value=found.value,
        unit=UNITS.get(found.signal, "ratio"),
        reference=found.usual,
    )
    hardware = () if found.hardware is None else (Sign(code="hardware", value=found.hardware, unit="text"),)
    return Diagnosis(
        code=_code(found),
        confidence=_confidence(found),
        evidence=(*known(slow), *hardware),
        against=_against(found),
        missing=peers.missing_signals(run.gpus, run.links),
        subject=None
        if found.node is None
        else "; ".join((_name(found.node, found.gpu, found.rank), *found.also)),
        lost_ratio=found.excess_ratio,
    )


def _rotating(run: RunEvidence, found: Suspect | None) -> Diagnosis | None:
    if found is None or not run.rank_rotates:
        return None
    evidence = (
        sign("slow_local_compute", found.value, found.usual, "seconds"),
        Sign(code="rank_rotates", value=1.0),
    )
    return Diagnosis(code="imbalance", confidence="medium", evidence=evidence, lost_ratio=found.excess_ratio)


def _code(found: Suspect) -> DiagnosisCode:
    if found.kind == "imbalance":
        return "imbalance"
    if found.node is None:
        return "one_of_the_nodes"
    if found.kind == "link":
        return "straggler_link"
    return "straggler_gpu" if found.gpu is not None else "straggler_node"


def _confidence(found: Suspect) -> Confidence:
    if found.node is None or found.kind in ("imbalance", "link"):
        return "medium"
    return "high" if found.hardware not in (None, "low_power") else "medium"


def _against(found: Suspect) -> tuple[Sign, ...]:
    """A slow GPU whose hardware shows nothing may as well have more work."""
    if found.kind == "compute" and found.hardware is None:
        return (Sign(code="no_hardware_cause", value=1.0),)
    return ()


def uneven(run: RunEvidence) -> Diagnosis | None:
    """GPUs of one node differ by more than ten points of activity for two minutes (Composer's health check)."""
    spread = run.counters.spread_ratio
    if spread is None or spread <= UNEVEN:
        return None
    return Diagnosis(code="uneven_gpus", confidence="low", evidence=(sign("spread", spread, UNEVEN),))


def _name(node: str, gpu: str | None, rank: int | None) -> str:
    parts = (
        [node] + ([f"GPU {gpu}"] if gpu is not None else []) + ([f"rank {rank}"] if rank is not None else [])
    )
    return ", ".join(parts)
