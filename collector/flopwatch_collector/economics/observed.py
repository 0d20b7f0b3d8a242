"""What is known of a group beside its costs: how much it is used, and for how long that is known."""

from dataclasses import dataclass
from typing import Literal

from flopwatch_collector.economics.decisions import StateAt
from flopwatch_collector.economics.demand import DurationCurve

PURCHASE_DAYS = 90
"""Fewer valid days tell the state, and are too few for a purchase."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Observed:
    """Utilisation, days and demand of a group; ``None`` is not known."""

    asked_ratio: float | None = None
    """A utilisation that somebody asks about: it decides by itself."""
    mean_ratio: float | None = None
    """Mean billable utilisation of the last 30 days: it sets the costs shown, and never the verdict."""
    state_at: StateAt | None = None
    valid_days: int | None = None
    demand: DurationCurve | None = None
    demand_basis: Literal["running", "running_and_queued", "file"] = "running"
    recovery_seconds: float | None = None
    """Mean time to recover of own jobs of 100 GPUs and more."""
    largest_job_gpus: int | None = None

    @property
    def utilisation(self) -> float | None:
        """What costs are shown at."""
        return self.mean_ratio if self.asked_ratio is None else self.asked_ratio

    @property
    def enough_for_purchase(self) -> bool | None:
        """Whether 90 valid days are known; None where no days are looked at."""
        return None if self.valid_days is None else self.valid_days >= PURCHASE_DAYS
