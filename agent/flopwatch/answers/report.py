"""Reports: a period's ledger by whom it is charged to, its jobs, verdict and goodput, as one value.

GPU time is integer milliseconds; the lines of one report add up to its ledger exactly.
"""

from dataclasses import dataclass
from typing import Literal

from flopwatch.answers.budget import BudgetStanding
from flopwatch.answers.economy import PriceTag
from flopwatch.answers.frame import Status
from flopwatch.answers.goodput import Goodput
from flopwatch.answers.job import Cause, Target
from flopwatch.answers.ledger import Day, Ledger, Verdict
from flopwatch.figure import MfuFigure

ReportBy = Literal["team", "user", "job", "node", "cluster", "group"]
REPORT_BY: tuple[ReportBy, ...] = ("team", "user", "job", "node", "cluster", "group")
AdviceCode = Literal[
    "release_idle", "release_empty", "checkpoint_interval", "restart_faster", "detect_faster", "data_loading",
    "startup", "gaps", "throttle", "straggler", "report_steps", "raise_mfu", "platform_losses",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportLine:
    """What is charged to one name."""

    key: str | None
    """Name of team, user, node, cluster or group, or a job's id; ``None``: nobody's, or not known."""
    label: str | None
    """For people: a job's name."""
    user: str | None
    account: str | None
    leased_somewhere: bool
    """False for the line of capacity that nobody held."""
    gpu_milliseconds: int
    leased_gpu_milliseconds: int
    by_class: dict[str, int]
    """GPU milliseconds by ledger class, all eight."""
    waste_gpu_milliseconds: int
    unknown_gpu_milliseconds: int
    opaque_gpu_milliseconds: int
    """Working, unmeasured."""
    credit_gpu_milliseconds: int
    """Losses of the platform inside leases."""
    cost: float | None
    """Of all time of the line, leased or not."""
    billed: float | None
    """Of its leased time."""
    credit: float | None
    """Of platform losses; 0 or less."""
    net: float | None
    """``billed + credit``."""
    waste_money: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportJob:
    """One of the jobs that wasted most."""

    job_id: str
    name: str
    user: str | None
    account: str | None
    kind: str
    gpus: int | None
    mfu: MfuFigure
    wall_mfu_ratio: float | None
    target: Target
    leased_gpu_milliseconds: int
    waste_gpu_milliseconds: int
    waste_money: float | None
    waste_by_class: dict[str, int]
    cause: Cause | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Coverage:
    """How much of the period the figures rest on."""

    first_data_seconds: float | None
    """Begin of what is known; ``None`` without any."""
    capacity_ratio: float | None
    """Share of the period for which there is any capacity in the ledger."""
    known_ratio: float | None
    """Capacity less UNKNOWN / capacity."""
    measured_ratio: float | None
    """Share of leased time of jobs that report steps."""
    valid_days: int
    total_days: int
    provisional_from_seconds: float | None
    """From when on figures may still change; ``None``: all are final."""
    history_progress_ratio: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """One report."""

    status: Status
    by: ReportBy
    cluster: str | None
    start_seconds: float
    end_seconds: float
    verdict: Verdict
    """As of the period's end: over the 90 days before it."""
    ledger: Ledger
    """Of the period; every other amount is a part of it."""
    days: tuple[Day, ...]
    lines: tuple[ReportLine, ...]
    jobs: tuple[ReportJob, ...]
    goodput: Goodput | None
    """Of the largest runs together; ``None`` without any that reports."""
    goodput_coverage_ratio: float | None
    """Share of the runs' GPU time that these runs are."""
    fleet_mfu_ratio: float | None
    fleet_mfu_coverage_ratio: float | None
    prices: tuple[PriceTag, ...]
    coverage: Coverage
    budgets: tuple[BudgetStanding, ...] = ()
    """In the calendar periods that the report's end lies in; of one cluster only its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Advice:
    """What to do, as a code of the report's texts, with what it would bring."""

    code: AdviceCode
    gpu_milliseconds: int | None
    ratio: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class JobReport:
    """What a job came to, as it is kept when its raw data are gone."""

    job_id: str
    name: str
    cluster: str
    user: str | None
    account: str | None
    kind: str
    gpus: int | None
    gpu_model: str | None
    start_seconds: float | None
    end_seconds: float | None
    """``None`` while it runs."""
    exit_reason: str | None
    made_seconds: float
    final: bool
    """Whether the job is over and all its time is final."""
    simulated: bool
    currency: str
    mfu: MfuFigure
    wall_mfu_ratio: float | None
    target: Target
    ledger: Ledger
    cost: float | None
    credit: float | None
    sessions: int
    restarts: int
    goodput: Goodput | None
    cause: Cause | None
    advice: tuple[Advice, ...]
