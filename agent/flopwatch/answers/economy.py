"""The Breakeven page: what owning and renting cost, where they meet, and what that rests on.

Money is in ``currency`` per GPU-hour of capacity unless a name says otherwise; utilisations are billable ratios.
"""

from dataclasses import dataclass
from typing import Any, Literal

from flopwatch.answers.frame import Status
from flopwatch.answers.ledger import Day
from flopwatch.figure import FindingInfo

GroupKind = Literal["owned", "leased", "reserved", "on_demand"]
DecisionVerdict = Literal[
    "own", "rent", "above_sustained", "above_not_sustained", "below", "below_sustained", "insufficient_data"
]
InputSource = Literal["file", "default", "measured", "override"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CostInput:
    """One input of the model and where it is from."""

    name: str
    """As in the settings: ``own.capex_per_gpu``."""
    value: Any
    """``None``: not given, and not counted."""
    source: InputSource
    adjustable: bool
    """Whether ``Query.economy`` takes it as an override."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PriceTag:
    """A price with what makes it believable."""

    side: Literal["own", "cloud"]
    value: float
    unit: str
    """The setting it was given in: ``price_per_gpu_hour``, ``capex_per_gpu``, ``rent_per_server_month`` …"""
    per_gpu_hour: float | None
    """The same as a price of a GPU-hour; ``None`` for what was bought."""
    currency: str
    date: str | None
    """ISO date."""
    source: str | None
    term: str | None
    tax_included: bool | None
    age_days: int | None
    stale: bool
    """Older than 90 days."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CostTerm:
    """One part of the fixed cost."""

    name: str
    """``capital``, ``rent``, ``colocation``, ``staff``, ``maintenance``, ``other``, ``migration``, ``idle_energy``."""
    per_gpu_year: float
    per_gpu_hour: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """One decision: its own fixed cost, its own line."""

    name: Literal["buy_or_renew", "keep_or_retire"]
    fixed_per_gpu_hour: float
    """Full cost to buy or renew; to keep or retire without what is spent, with what a sale would bring."""
    u_star: float | None
    """``None``: never."""
    verdict: DecisionVerdict
    action: Literal["buy", "rent", "keep", "retire"] | None
    """``None`` while it is undecided."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Variation:
    """U* with one input changed."""

    change: str
    """``-20%``, ``x2``, ``+1``, or ``=`` before a value."""
    value: float
    u_star: float | None
    delta: float | None
    """Against the base; ``None`` where either is *never*."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sensitivity:
    """How far one input moves U*."""

    parameter: str
    base: float
    variations: tuple[Variation, ...]
    swing: float | None
    """The largest change of the line, also beyond 1; ``None`` where it goes to infinity."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CurvePoint:
    """Both costs at a utilisation."""

    utilisation_ratio: float
    own_per_gpu_hour: float
    cloud_per_gpu_hour: float


@dataclass(frozen=True, kw_only=True, slots=True)
class PriceTable:
    """U* by capex (rows; where capacity is rented, its fixed cost) and cloud price (columns)."""

    rows: tuple[float, ...]
    prices: tuple[float, ...]
    u_star: tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class SizeRow:
    """What the size of the fleet makes of the same team."""

    gpus: int
    staff_per_gpu_hour: float
    fixed_per_gpu_hour: float
    u_star: float | None
    threshold: float | None
    """The same beyond 1; ``None`` when infinite."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DemandInfo:
    """The duration curve of demand, and what of it is worth owning."""

    basis: Literal["running", "running_and_queued", "file"]
    """``running`` is cut off at the size of the cluster: a lower bound."""
    gpus: tuple[float, ...]
    """Levels, highest first."""
    time_ratio: tuple[float, ...]
    """Share of the time for which at least so many GPUs were asked for."""
    mean_gpus: float | None
    ownable_gpus: int | None
    """The largest k with a demand of k or more for longer than U* of the time."""
    burst_gpus: int | None
    """The highest demand less that."""
    marginal_time_ratio: float | None
    """Share of the time for which the last GPU that is owned is asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gate:
    """One of the three conditions of owning."""

    name: Literal["utilisation", "ability", "steadiness"]
    state: Literal["pass", "fail", "unknown"]
    values: dict[str, float | int | str | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class EfficiencyInfo:
    """rho and what it is made from."""

    ratio: float
    basis: Literal["none", "assumed", "measured"]
    """Where the cloud's figures are from; ``none``: nothing to compare, rho is 1."""
    own_mfu: float | None
    own_goodput: float | None
    own_peak_tflops: float | None
    cloud_mfu: float | None
    cloud_goodput: float | None
    cloud_peak_tflops: float | None
    own_sources: dict[str, str]
    """``file``, ``measured`` or ``unknown`` by ``mfu``, ``goodput``, ``peak_tflops``."""
    compared: tuple[str, ...]
    one_sided: tuple[str, ...]
    coverage_ratio: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupEconomy:
    """One group of nodes, or the whole site where there are none."""

    name: str
    kind: GroupKind
    gpus: int | None
    has_line: bool
    """False for on-demand groups, and without a cloud price: then U* is unknown, not *never*."""
    terms: tuple[CostTerm, ...]
    prices: tuple[PriceTag, ...]
    fixed_per_gpu_hour: float
    """F'."""
    variable_per_gpu_hour: float
    """V."""
    efficiency: EfficiencyInfo
    cloud_price: float | None
    """P with its uplift, per billed GPU-hour."""
    billed_per_used: float | None
    commitment_ratio: float | None
    commitment_price: float | None
    u_star: float | None
    threshold: float | None
    """The same beyond 1; ``None`` when infinite."""
    u_star_at_equal_efficiency: float | None
    """U* at rho = 1."""
    verdict: DecisionVerdict
    verdict_at_equal_efficiency: DecisionVerdict
    decisions: tuple[Decision, ...]
    utilisation_ratio: float | None
    """What the costs below are at: given, else the mean of 30 days."""
    own_per_gpu_hour: float | None
    cloud_per_gpu_hour: float | None
    own_per_used_hour: float | None
    own_per_useful_eflop: float | None
    cloud_per_useful_eflop: float | None
    curve: tuple[CurvePoint, ...]
    sensitivity: tuple[Sensitivity, ...]
    table: PriceTable | None
    sizes: tuple[SizeRow, ...]
    least_gpus: int | None
    """From which size on owning pays at this utilisation; ``None`` where no size does, or it is not asked."""
    demand: DemandInfo | None
    gates: tuple[Gate, ...]
    valid_days: int | None
    enough_for_purchase: bool | None
    """Whether 90 valid days are known; ``None`` where no days are looked at."""
    notes: tuple[FindingInfo, ...]
    days: tuple[Day, ...] = ()
    """The group's own last 90 days; empty where they are the fleet's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Economy:
    """The Breakeven page."""

    status: Status
    currency: str
    configured: bool
    """Whether there are own costs or groups; without them ``groups`` is empty."""
    groups: tuple[GroupEconomy, ...]
    u_star: float | None
    """The fleet's: that of its groups, weighted by what they cost (F' x GPUs)."""
    has_line: bool
    fixed_per_gpu_hour: float | None
    """Mean over GPUs."""
    variable_per_gpu_hour: float | None
    verdict: DecisionVerdict
    utilisation_ratio: float | None
    measured: EfficiencyInfo
    """What the collector measured of the own side, whatever the file says."""
    measured_billed_per_used: float | None
    """Leased over billable GPU time: the value to set beside ``billed_per_used``."""
    inputs: tuple[CostInput, ...]
    days: tuple[Day, ...]
    """The last 90 days, oldest first, today last: what the sustained state is made from."""
    notes: tuple[FindingInfo, ...]
    saved: "SavedCosts | None" = None
    """Who saved the costs that count; ``None`` where those of the settings do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SavedCosts:
    """Costs that an operator saved: they stand in place of those of the settings."""

    version: int
    seconds: float
    by: str
    comment: str
    settings_differ: bool
    """The settings' costs were changed since."""


NOTHING_MEASURED = EfficiencyInfo(
    ratio=1.0,
    basis="none",
    own_mfu=None,
    own_goodput=None,
    own_peak_tflops=None,
    cloud_mfu=None,
    cloud_goodput=None,
    cloud_peak_tflops=None,
    own_sources={},
    compared=(),
    one_sided=(),
    coverage_ratio=None,
)


def no_economy(status: Status, days: tuple[Day, ...] = ()) -> Economy:
    """Nothing is configured, so nothing is said."""
    return Economy(
        status=status,
        currency=status.currency,
        configured=False,
        groups=(),
        u_star=None,
        has_line=False,
        fixed_per_gpu_hour=None,
        variable_per_gpu_hour=None,
        verdict="insufficient_data",
        utilisation_ratio=None,
        measured=NOTHING_MEASURED,
        measured_billed_per_used=None,
        inputs=(),
        days=days,
        notes=(),
    )
