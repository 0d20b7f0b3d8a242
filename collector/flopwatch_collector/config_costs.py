"""``[costs]``: what owning costs, what renting costs, how well either is used, and the groups of nodes that differ."""

import dataclasses
import math
import re
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

from flopwatch.settings import SettingError

GroupKind = Literal["owned", "leased", "reserved", "on_demand"]
MOST_TFLOPS = 1e6
RENTS = ("fixed_per_gpu_hour", "rent_per_gpu_month", "rent_per_server_month")
BASES = ("capex_per_gpu", *RENTS)
"""What owning begins with: a price to buy, or one to rent; exactly one of them."""
MOST_YEARS = 100.0
MOST_PUE = 5.0
"""No site has more: 130 is a percentage."""
MOST_NUMBER = 1e15
MOST_RATIO = 5.0
"""A larger uplift or commitment is a percentage taken for a ratio."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnCosts:
    """``[costs.own]``: what an owned or rented machine costs, used or not. What is left out is not counted."""

    gpus: float | None = None
    """GPUs installed; staff and migration are divided by them."""
    capex_per_gpu: float | None = None
    """With its share of server, fabric, storage and installation, cold spares included."""
    fixed_per_gpu_hour: float | None = None
    """Rent of a capacity GPU-hour, instead of ``capex_per_gpu``."""
    rent_per_gpu_month: float | None = None
    rent_per_server_month: float | None = None
    gpus_per_server: float | None = None
    life_years: float | None = None
    residual_ratio: float | None = None
    cost_of_capital: float | None = None
    """A year, as a ratio."""
    colo_kw_per_gpu: float | None = None
    colo_per_kw_month: float | None = None
    colo_includes_power: bool = False
    staff_fte: float | None = None
    staff_cost_per_fte: float | None = None
    maintenance_ratio: float | None = None
    """Of ``capex_per_gpu``, a year."""
    other_per_gpu_year: float | None = None
    migration_once: float | None = None
    """Of the whole fleet, spread over its life."""
    electricity_per_kwh: float | None = None
    pue: float | None = None
    idle_kw_per_gpu: float | None = None
    busy_kw_per_gpu: float | None = None
    resale_per_gpu: float | None = None
    """What a GPU would bring if it were sold today; only the decision to keep or retire asks for it."""
    remaining_years: float | None = None
    """How long it would still be kept."""
    currency: str | None = None
    price_date: date | None = None
    price_source: str | None = None
    price_term: str | None = None
    tax_included: bool | None = None

    def __post_init__(self) -> None:
        _require_numbers(self, "costs.own")
        _require_own_ranges(self)
        _require_pairs(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class CloudCosts:
    """``[costs.cloud]``: what the same work costs rented, by the hour."""

    price_per_gpu_hour: float | None = None
    price_per_server_hour: float | None = None
    price_per_server_month: float | None = None
    gpus_per_server: float | None = None
    uplift_ratio: float = 0.0
    """Storage, egress, support, control plane, as a share of the price."""
    billed_per_used: float = 1.0
    """Billed hours per used hour: start-up, held while idle, smallest block."""
    commitment_ratio: float = 0.0
    """Committed GPUs as a share of the own capacity, billed whether used or not."""
    commitment_price_per_gpu_hour: float | None = None
    currency: str | None = None
    price_date: date | None = None
    price_source: str | None = None
    price_term: str | None = None
    tax_included: bool | None = None

    def __post_init__(self) -> None:
        _require_numbers(self, "costs.cloud")
        prices = ("price_per_gpu_hour", "price_per_server_hour", "price_per_server_month")
        given = _one_of(self, "costs.cloud", prices)
        if given == "price_per_gpu_hour" and self.gpus_per_server is not None:
            raise SettingError(
                "costs.cloud.gpus_per_server", self.gpus_per_server, "only beside a server's price"
            )
        if given != "price_per_gpu_hour":
            _need(self, "costs.cloud", given, "gpus_per_server")
        _least(self, "costs.cloud", "gpus_per_server", 1.0)
        _least(self, "costs.cloud", "billed_per_used", 1.0)
        for name in ("uplift_ratio", "commitment_ratio"):
            _most(self, "costs.cloud", name, MOST_RATIO)
        if self.commitment_ratio > 0.0:
            _need(self, "costs.cloud", "commitment_ratio", "commitment_price_per_gpu_hour")


@dataclass(frozen=True, kw_only=True, slots=True)
class EfficiencySettings:
    """``[costs.efficiency]``: the share of its peak that either side turns into kept work.

    What is left out of the own side is what is measured.
    """

    own_mfu: float | None = None
    own_goodput: float | None = None
    own_peak_tflops: float | None = None
    cloud_mfu: float | None = None
    cloud_goodput: float | None = None
    cloud_peak_tflops: float | None = None
    cloud_basis: Literal["assumed", "measured"] = "assumed"
    """``measured`` when the cloud's figures are of a job compared with ``flopwatch compare``."""

    def __post_init__(self) -> None:
        _require_numbers(self, "costs.efficiency")
        for side in ("own", "cloud"):
            for name in (f"{side}_mfu", f"{side}_goodput"):
                value = getattr(self, name)
                if value is not None and not 0.0 < value <= 1.0:
                    raise SettingError(
                        f"costs.efficiency.{name}", value, "a ratio above 0, at most 1 (0.4 for 40 %)"
                    )
            peak = getattr(self, f"{side}_peak_tflops")
            if peak is not None and not 0.0 < peak < MOST_TFLOPS:
                allowed = f"dense TFLOP/s of one GPU, above 0 and below {MOST_TFLOPS:.0f}"
                raise SettingError(f"costs.efficiency.{side}_peak_tflops", peak, allowed)


@dataclass(frozen=True, kw_only=True, slots=True)
class DemandSettings:
    """``[costs.demand]``: GPUs asked for, running and queued, and for which share of the time."""

    gpus: tuple[Any, ...] = ()
    time_ratio: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        for name in ("gpus", "time_ratio"):
            for value in getattr(self, name):
                if not _is_number(value) or value < 0:
                    raise SettingError(f"costs.demand.{name}", value, "numbers of 0 or more")
        if len(self.gpus) != len(self.time_ratio):
            raise SettingError(
                "costs.demand.time_ratio", list(self.time_ratio), "as many entries as costs.demand.gpus"
            )
        if self.time_ratio and not math.isclose(sum(self.time_ratio), 1.0, abs_tol=1e-6):
            raise SettingError(
                "costs.demand.time_ratio", list(self.time_ratio), "shares of the time that add up to 1"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class CostGroup:
    """One ``[[costs.group]]``: nodes with prices of their own. ``nodes`` are names, ``*`` stands for any text."""

    name: str = ""
    kind: GroupKind = "owned"
    nodes: tuple[Any, ...] = ()
    gpus: float | None = None
    """GPUs of the group, its weight in the fleet's figures."""
    own: OwnCosts = dataclasses.field(default_factory=OwnCosts)
    cloud: CloudCosts | None = None
    efficiency: EfficiencySettings | None = None

    def __post_init__(self) -> None:
        _require_numbers(self, "costs.group")
        if not self.name.strip():
            raise SettingError("costs.group.name", self.name, "a name of its own for each group")
        for pattern in self.nodes:
            if not isinstance(pattern, str) or not pattern:
                raise SettingError(
                    f"costs.group.{self.name}.nodes", pattern, "names of nodes, such as gpu-a*"
                )


@dataclass(frozen=True, kw_only=True, slots=True)
class CostSettings:
    """``[costs]``: the price of a GPU-hour, and the line that utilisation is held against."""

    price_per_gpu_hour: float | None = None
    currency: str = "USD"
    price_is_example: bool = False
    breakeven_ratio: float = 0.70
    breakeven_source: Literal["default", "costs"] = "default"
    own: OwnCosts | None = None
    cloud: CloudCosts | None = None
    efficiency: EfficiencySettings | None = None
    demand: DemandSettings | None = None
    group: tuple[CostGroup, ...] = ()

    def __post_init__(self) -> None:
        if not 0.0 < self.breakeven_ratio <= 1.0:
            raise SettingError("costs.breakeven_ratio", self.breakeven_ratio, "a ratio above 0, at most 1")
        price = self.price_per_gpu_hour
        if price is not None and not (math.isfinite(price) and price >= 0):
            raise SettingError("costs.price_per_gpu_hour", price, "0 or more")
        if re.fullmatch(r"[A-Z]{3}", self.currency) is None:
            raise SettingError(
                "costs.currency", self.currency, "a code of three capital letters, such as USD"
            )
        for name in ("own", "cloud"):
            require_currency(getattr(self, name), f"costs.{name}", self.currency)


def _require_own_ranges(own: OwnCosts) -> None:
    table = "costs.own"
    for name in ("gpus", "gpus_per_server", "pue"):
        _least(own, table, name, 1.0)
    if own.gpus is not None and not own.gpus.is_integer():
        raise SettingError(f"{table}.gpus", own.gpus, "a whole number of at least 1")
    for name in ("life_years", "remaining_years"):
        value = getattr(own, name)
        if value is not None and not 0 < value <= MOST_YEARS:
            raise SettingError(f"{table}.{name}", value, f"above 0, at most {MOST_YEARS:g}")
    for name in ("residual_ratio", "cost_of_capital"):
        value = getattr(own, name)
        if value is not None and value >= 1.0:
            raise SettingError(f"{table}.{name}", value, "a ratio from 0 to below 1 (0.1 for 10 %)")
    _most(own, table, "maintenance_ratio", 1.0)
    _most(own, table, "pue", MOST_PUE)
    idle, busy = own.idle_kw_per_gpu, own.busy_kw_per_gpu
    if idle is not None and busy is not None and busy < idle:
        raise SettingError(f"{table}.busy_kw_per_gpu", busy, f"at least idle_kw_per_gpu ({idle:g})")


def _require_pairs(own: OwnCosts) -> None:
    """What means nothing without another setting."""
    table = "costs.own"
    given = [name for name in BASES if getattr(own, name) is not None]
    if len(given) > 1:
        raise SettingError(f"{table}.{given[1]}", getattr(own, given[1]), f"left out beside {given[0]}")
    for name, *needed in _NEEDS:
        if getattr(own, name):
            _need(own, table, name, *needed)
    if own.electricity_per_kwh and not own.colo_includes_power:
        _need(own, table, "electricity_per_kwh", "idle_kw_per_gpu", "busy_kw_per_gpu")


_NEEDS = (
    ("capex_per_gpu", "life_years"),
    ("rent_per_server_month", "gpus_per_server"),
    ("colo_kw_per_gpu", "colo_per_kw_month"),
    ("colo_per_kw_month", "colo_kw_per_gpu"),
    ("staff_fte", "staff_cost_per_fte", "gpus"),
    ("staff_cost_per_fte", "staff_fte"),
    ("maintenance_ratio", "capex_per_gpu"),
    ("migration_once", "gpus", "life_years"),
    ("idle_kw_per_gpu", "busy_kw_per_gpu"),
    ("busy_kw_per_gpu", "idle_kw_per_gpu"),
    ("resale_per_gpu", "remaining_years"),
)


def require_own(own: OwnCosts | None) -> OwnCosts:
    """The own costs, complete enough for a price.

    Raises:
        SettingError: they are missing, or have neither a price to buy nor one to rent.
    """
    if own is None:
        raise SettingError("costs.own", None, "a table with what a GPU costs you, [costs.own]")
    require_basis(own, "costs.own")
    return own


def require_basis(own: OwnCosts, table: str) -> None:
    """Raise ``SettingError`` where there is neither a price to buy nor one to rent."""
    if all(getattr(own, name) is None for name in BASES):
        raise SettingError(f"{table}.capex_per_gpu", None, "a number; or one of " + ", ".join(RENTS))


def _require_numbers(value: Any, table: str) -> None:
    """Every number is finite and not negative."""
    for field in dataclasses.fields(value):
        number = getattr(value, field.name)
        if isinstance(number, float) and not 0.0 <= number <= MOST_NUMBER:
            raise SettingError(
                f"{table}.{field.name}", number, f"a number of 0 or more, at most {MOST_NUMBER:g}"
            )


def require_currency(part: OwnCosts | CloudCosts | None, table: str, currency: str) -> None:
    """Raise ``SettingError`` where prices are in another currency."""
    if part is not None and part.currency is not None and part.currency != currency:
        raise SettingError(
            f"{table}.currency", part.currency, f"costs.currency ({currency}): convert the prices"
        )


def _one_of(value: Any, table: str, names: tuple[str, ...]) -> str:
    given = [name for name in names if getattr(value, name) is not None]
    if len(given) != 1:
        allowed = "exactly one of " + ", ".join(names)
        name = given[1] if given else names[0]
        raise SettingError(f"{table}.{name}", getattr(value, name), allowed)
    return given[0]


def _need(value: Any, table: str, because: str, *names: str) -> None:
    for name in names:
        if getattr(value, name) is None:
            raise SettingError(f"{table}.{name}", None, f"a number: {because} needs it")


def _least(value: Any, table: str, name: str, least: float) -> None:
    number = getattr(value, name)
    if number is not None and number < least:
        raise SettingError(f"{table}.{name}", number, f"{least:g} or more")


def _most(value: Any, table: str, name: str, most: float) -> None:
    number = getattr(value, name)
    if number is not None and number > most:
        raise SettingError(f"{table}.{name}", number, f"a ratio of at most {most:g} (0.15 for 15 %)")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
