"""The three conditions of owning: used enough and for long, able to make use of it, and steadily in demand."""

from flopwatch.answers.economy import DecisionVerdict, Gate
from flopwatch_collector.economics.case import Case
from flopwatch_collector.economics.observed import Observed

REFERENCE_MFU = 0.35
"""What a tuned run is expected to reach, where the cloud's own MFU is not known."""
REFERENCE_GOODPUT = 0.90
REFERENCE_RECOVERY_SECONDS = 3600.0
REFERENCE_STEADINESS = 0.70
"""The demand of nine tenths of the time over its mean."""
_STATES = {
    "own": "pass", "above_sustained": "pass", "rent": "fail", "below": "fail", "below_sustained": "fail",
    "above_not_sustained": "fail",
}  # fmt: skip


def gates(case: Case, seen: Observed, verdict: DecisionVerdict) -> tuple[Gate, ...]:
    """All three, each with the figures it was decided by."""
    star = case.breakeven().u_star if case.has_line else None
    utilisation = Gate(
        name="utilisation",
        state=_STATES.get(verdict, "unknown"),  # type: ignore[arg-type]
        values={"utilisation_ratio": seen.utilisation, "u_star": star, "verdict": verdict},
    )
    return (utilisation, _ability(case, seen), _steadiness(seen))


def _ability(case: Case, seen: Observed) -> Gate:
    """MFU and goodput at least as good as the reference, and failures of large jobs recovered within the hour."""
    sides = case.ratio()
    mfu, goodput = sides.own["mfu"], sides.own["goodput"]
    reference = sides.cloud["mfu"] if sides.cloud["mfu"] is not None else REFERENCE_MFU
    wanted = sides.cloud["goodput"] if sides.cloud["goodput"] is not None else REFERENCE_GOODPUT
    recovery = seen.recovery_seconds
    checks = [None if mfu is None else mfu >= reference, None if goodput is None else goodput >= wanted]
    if recovery is not None:
        checks.append(recovery <= REFERENCE_RECOVERY_SECONDS)
    return Gate(
        name="ability",
        state="fail" if False in checks else "unknown" if None in checks else "pass",
        values={
            "own_mfu": mfu,
            "reference_mfu": reference,
            "own_goodput": goodput,
            "reference_goodput": wanted,
            "recovery_seconds": recovery,
            "reference_recovery_seconds": REFERENCE_RECOVERY_SECONDS,
            "largest_job_gpus": seen.largest_job_gpus,
        },
    )


def _steadiness(seen: Observed) -> Gate:
    steady = None if seen.demand is None else seen.demand.steadiness
    return Gate(
        name="steadiness",
        state="unknown" if steady is None else "pass" if steady >= REFERENCE_STEADINESS else "fail",
        values={
            "steadiness_ratio": steady,
            "reference_ratio": REFERENCE_STEADINESS,
            "mean_gpus": None if seen.demand is None else seen.demand.mean,
        },
    )
