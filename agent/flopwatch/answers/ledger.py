"""Where GPU time went, by class, bucket and day, and the verdict over the days."""

from dataclasses import dataclass
from typing import Literal

LedgerClass = Literal[
    "down", "unallocated", "allocated_idle", "stalled", "in_job_loss", "productive", "unmeasured", "unknown"
]
LEDGER_CLASSES: tuple[LedgerClass, ...] = (
    "down", "unallocated", "allocated_idle", "stalled", "in_job_loss", "productive", "unmeasured", "unknown",
)  # fmt: skip
WASTE_CLASSES: tuple[LedgerClass, ...] = ("allocated_idle", "stalled", "in_job_loss")
VerdictCode = Literal[
    "above_sustained", "above_not_sustained", "below", "below_sustained", "insufficient_data"
]


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassAmount:
    """GPU time of one class, its buckets, and its money."""

    name: LedgerClass
    gpu_milliseconds: int
    money: float | None
    buckets: dict[str, int]
    """GPU milliseconds by bucket of ``waste`` accounting, reasons as ``BUCKET:reason``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ledger:
    """Where GPU time went. The classes add up to ``capacity_gpu_milliseconds`` exactly."""

    start_seconds: float
    end_seconds: float
    provisional_from_seconds: float | None
    capacity_gpu_milliseconds: int
    classes: tuple[ClassAmount, ...]
    """In the order of ``LEDGER_CLASSES``, all eight, also the empty ones."""
    waste_gpu_milliseconds: int
    waste_money: float | None
    billable_ratio: float | None
    """U_bill = (leased - held empty - held idle) / capacity; ``None`` without capacity."""
    billable_upper_ratio: float | None
    """The same with UNKNOWN counted as billable."""
    allocated_ratio: float | None
    unknown_ratio: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Day:
    """One local calendar day's utilisation."""

    day: str
    """ISO date in ``Status.time_zone``."""
    billable_ratio: float | None
    unknown_ratio: float | None
    capacity_gpu_milliseconds: int
    complete: bool
    valid: bool
    """Known samples cover at least 90 % of capacity."""
    frozen: bool = False
    """Whether its figures were frozen, a day after its end."""
    revision: int | None = None
    """Rises when the figures of a frozen day change; ``None`` while the day is not complete."""
    revised_seconds: float | None = None
    """When its figures last changed after they were frozen."""
    barely_used_gpu_milliseconds: int | None = None
    """Work without steps in hours of less than 5 % SM activity; ``None`` unknown."""
    billable_without_barely_used_ratio: float | None = None
    """U_bill with that time left out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """The fleet against the utilisation at which owning beats renting."""

    code: VerdictCode
    line_ratio: float
    line_source: Literal["default", "costs"]
    mean_30d_ratio: float | None
    valid_days: int
    days_above: int
    days_total: int
    sustained: bool
    days_in_state: int
    """Days since the sustained state was entered; days needed when data do not suffice."""
    cost_at_mean: float | None
    """Money a billable GPU-hour costs at the 30-day mean: price of a capacity hour / mean."""
    cost_at_line: float | None
    never: bool = False
    """Owning pays at no utilisation; ``line_ratio`` is 1 then."""
    code_without_barely_used: VerdictCode | None = None
    """The same verdict with barely used time left out of every day; ``None`` where that time is not known."""
    mean_30d_without_barely_used_ratio: float | None = None
