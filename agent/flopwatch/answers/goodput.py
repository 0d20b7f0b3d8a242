"""How much of a run's time was kept work, what its interruptions cost, and what faster recovery would bring."""

from dataclasses import dataclass
from typing import Literal

from flopwatch.answers.frame import Status

Liability = Literal["platform", "user", "unknown"]
GainName = Literal["detect_halved", "restart_halved", "checkpoint_optimum"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Interruption:
    """One outage of a run: from its last progress to the first step after it."""

    session: int
    """Number of the session that was interrupted, 1 for the job's first."""
    start_seconds: float
    """End of the last progress before it."""
    detected_seconds: float | None
    """When the session was ended; ``None`` where nobody told."""
    restarted_seconds: float | None
    """When the session that came back began."""
    resumed_seconds: float | None
    """Begin of the first step after it; ``None`` while there is none."""
    attempts: int
    """Launches until a step came."""
    exit_reason: str | None
    liability: Liability
    lost_steps: int
    """Steps of the session that were done again."""
    lost_seconds: float
    """Wall time of these steps, and of checkpoints and evaluations rolled back with them."""

    @property
    def detect_seconds(self) -> float | None:
        """Time to detect: from the last progress to the end of the session."""
        return _apart(self.start_seconds, self.detected_seconds)

    @property
    def isolate_seconds(self) -> float | None:
        """Time to isolate: from the end of the session to the begin of the one that came back."""
        return _apart(self.detected_seconds, self.restarted_seconds)

    @property
    def resume_seconds(self) -> float | None:
        """Time to resume: from the begin of the session that came back to its first step."""
        return _apart(self.restarted_seconds, self.resumed_seconds)

    @property
    def outage_seconds(self) -> float | None:
        """From the last progress to the first step after it."""
        return _apart(self.start_seconds, self.resumed_seconds)


def _apart(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else max(0.0, end - start)


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkpointing:
    """Blocking checkpoints of a run, and the interval at which they would cost least."""

    saves: int
    save_seconds: float | None
    """Mean length of a blocking save."""
    interval_seconds: float | None
    """Mean time of run from the end of a save to the begin of the next."""
    overhead_ratio: float | None
    """Blocking saves as a share of the run's time."""
    optimum_interval_seconds: float | None
    """Young and Daly: the square root of 2 x save x mean time to failure; ``None`` without failures or saves."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gain:
    """What a change would bring, by the first-order loss model."""

    name: GainName
    ratio: float
    """Share of the run's time that it would give back."""
    gpu_milliseconds: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Goodput:
    """Goodput of one run, or of several added up. Ratios are of the GPU time that belongs to runs."""

    jobs: int
    run_gpu_milliseconds: int
    kept_gpu_milliseconds: int
    """Kept step time."""
    unknown_gpu_milliseconds: int
    """Time of the run in which nothing was reported: it may have been kept."""
    ettr_ratio: float | None
    """Kept step time / time of the run; ``None`` without any."""
    ettr_upper_ratio: float | None
    """The same with unknown time counted as kept."""
    wall_seconds: float
    """From the begin to the end of runs, added up."""
    interruptions: tuple[Interruption, ...]
    mtbf_seconds: float | None
    """Mean time between failures: wall time / interruptions."""
    mttf_seconds: float | None
    """Mean time to failure: wall time without outages / interruptions."""
    mttr_seconds: float | None
    """Mean time to repair: mean outage of the interruptions that ended."""
    detect_seconds: float | None
    isolate_seconds: float | None
    resume_seconds: float | None
    """Means over the interruptions that tell them."""
    lost_gpu_milliseconds: int
    """Work that was rolled back."""
    lost_per_interruption_gpu_milliseconds: int | None
    checkpointing: Checkpointing
    modelled_loss_ratio: float | None
    """Lost share by the loss model with the measured values; ``None`` where one is missing."""
    gains: tuple[Gain, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetGoodput:
    """The runs of a period together: the largest, whose share of all runs' time is ``coverage_ratio``."""

    status: Status
    cluster: str | None
    start_seconds: float
    end_seconds: float
    goodput: Goodput | None
    """``None`` where no run reported anything."""
    coverage_ratio: float | None
