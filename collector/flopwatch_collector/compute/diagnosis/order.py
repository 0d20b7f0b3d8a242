"""The order in which causes are looked for, and which of them are told: three at most, by the time they explain."""

from collections.abc import Callable
from typing import Final

from flopwatch.answers.diagnosis import Diagnosis
from flopwatch_collector.compute.diagnosis import siblings, slow_hardware, stalls, workload
from flopwatch_collector.compute.diagnosis.evidence import RunEvidence

MOST: Final = 3
LEAST_COVERAGE: Final = 0.60
Rule = Callable[[RunEvidence], Diagnosis | None]
FROM_RECORDS: Final[tuple[Rule, ...]] = (stalls.checkpoint, stalls.periodic_pauses, stalls.data)
"""Rules that need no hardware samples."""
FROM_SAMPLES: Final[tuple[Rule, ...]] = (
    slow_hardware.throttled, slow_hardware.straggler, stalls.host_pauses, workload.bandwidth, workload.waiting,
    workload.bubble, workload.launch_bound, workload.memory_bandwidth, workload.under_filled, slow_hardware.uneven,
    workload.recompute, workload.step_time, siblings.layouts, siblings.nodes,
)  # fmt: skip
CERTAINTY: Final = {"high": 0, "medium": 1, "low": 2, "info": 3}


def diagnose(run: RunEvidence) -> tuple[Diagnosis, ...]:
    """The likely causes, most GPU time first; never empty, never more than three.

    A hang explains everything. Where no cause was found, the run is healthy, the data does not suffice (and says
    which signal is missing), or its slowness is not explained.
    """
    hung = stalls.hang(run)
    if hung is not None:
        return (hung,)
    enough = run.coverage_ratio >= LEAST_COVERAGE
    rules = (*FROM_RECORDS, *FROM_SAMPLES) if enough else FROM_RECORDS
    causes = [found for rule in rules if (found := rule(run)) is not None]
    if not enough:
        causes.append(stalls.insufficient(run))
    elif not causes:
        causes.append(_without_cause(run))
    ranked = sorted(causes, key=_rank)
    note = slow_hardware.power_capped(run) if enough else None
    return tuple(ranked[:MOST] if note is None else [*ranked[: MOST - 1], note])


def _without_cause(run: RunEvidence) -> Diagnosis:
    fine = workload.healthy(run)
    if fine is not None:
        return fine
    counters = run.counters
    if counters.tensor_active_ratio is None or counters.sm_active_ratio is None:
        return stalls.insufficient(run)
    return Diagnosis(code="unexplained", confidence="info", missing=("profiler", *stalls.unmeasured(run)))


def _rank(found: Diagnosis) -> tuple[bool, float, int]:
    return found.confidence == "info", -(found.lost_ratio or 0.0), CERTAINTY[found.confidence]
