"""What an hour of own capacity costs: capital with interest and residual, the running cost, idle and busy energy.

Per installed GPU: K capex, L years of life, R residual, r cost of capital. The charge of a year is
A = K (CRF - R (CRF - r)) with CRF = r (1 + r)^L / ((1 + r)^L - 1); without interest A = K (1 - R) / L.
"""

import math
from dataclasses import dataclass

from flopwatch_collector.config_costs import OwnCosts

HOURS_PER_YEAR = 8760.0
MONTHS_PER_YEAR = 12.0
HOURS_PER_MONTH = HOURS_PER_YEAR / MONTHS_PER_YEAR


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnCost:
    """The cost of one GPU of own capacity. Terms are money per GPU-year."""

    capital: float
    """The charge for what was bought; 0 where the capacity is rented."""
    rent: float
    colocation: float
    staff: float
    maintenance: float
    other: float
    migration: float
    idle_energy_per_gpu_hour: float
    """V_i: what flows also when the GPU is idle."""
    variable_per_gpu_hour: float
    """V: what a busy hour adds."""

    @property
    def terms(self) -> dict[str, float]:
        """Money per GPU-year of every fixed term, idle energy included, in the order they are added."""
        return {
            "capital": self.capital,
            "rent": self.rent,
            "colocation": self.colocation,
            "staff": self.staff,
            "maintenance": self.maintenance,
            "other": self.other,
            "migration": self.migration,
            "idle_energy": self.idle_energy_per_gpu_hour * HOURS_PER_YEAR,
        }

    @property
    def per_gpu_year(self) -> float:
        """A + O: fixed money per GPU-year, without energy."""
        years = (self.capital, self.rent, self.colocation, self.staff, self.maintenance, self.other)
        return sum(years) + self.migration

    @property
    def capacity_per_gpu_hour(self) -> float:
        """F: fixed money per capacity GPU-hour, without energy."""
        return self.per_gpu_year / HOURS_PER_YEAR

    @property
    def fixed_per_gpu_hour(self) -> float:
        """F': money per capacity GPU-hour that is spent also when it is idle."""
        return self.capacity_per_gpu_hour + self.idle_energy_per_gpu_hour

    def at(self, utilisation: float) -> float:
        """C_own(U): money per capacity GPU-hour at a utilisation."""
        return self.fixed_per_gpu_hour + self.variable_per_gpu_hour * utilisation


def own_cost(own: OwnCosts) -> OwnCost:
    """The cost that follows from the settings; what they leave out is not counted."""
    idle, variable = _energy(own)
    capex, gpus = own.capex_per_gpu or 0.0, own.gpus or 1.0
    return OwnCost(
        capital=_capital(own),
        rent=rent_per_gpu_hour(own) * HOURS_PER_YEAR,
        colocation=_product(own.colo_kw_per_gpu, own.colo_per_kw_month) * MONTHS_PER_YEAR,
        staff=_product(own.staff_fte, own.staff_cost_per_fte) / gpus,
        maintenance=capex * (own.maintenance_ratio or 0.0),
        other=own.other_per_gpu_year or 0.0,
        migration=(own.migration_once or 0.0) / (gpus * (own.life_years or 1.0)),
        idle_energy_per_gpu_hour=idle,
        variable_per_gpu_hour=variable,
    )


SMALLEST_RATE = 1e-100
"""Smaller rates are none: their products with a number of years have lost their digits."""


def recovery_factor(cost_of_capital: float, years: float) -> float:
    """CRF: the share of a loan that is paid back each year, interest included."""
    if cost_of_capital < SMALLEST_RATE:
        return 1.0 / years
    # r / (1 - (1 + r)^-L): the same, exact for the smallest rates as well.
    return cost_of_capital / -math.expm1(-years * math.log1p(cost_of_capital))


def capital_charge(value: float, left_over: float, years: float, cost_of_capital: float) -> float:
    """Money a year for a ``value`` of which ``left_over`` remains after ``years``."""
    factor = recovery_factor(cost_of_capital, years)
    return value * factor - left_over * (factor - cost_of_capital)


def rent_per_gpu_hour(own: OwnCosts) -> float:
    """What rented capacity costs; 0 where it was bought. A month has 730 hours."""
    if own.rent_per_gpu_month is not None:
        return own.rent_per_gpu_month / HOURS_PER_MONTH
    if own.rent_per_server_month is not None:
        return own.rent_per_server_month / (own.gpus_per_server or 1.0) / HOURS_PER_MONTH
    return own.fixed_per_gpu_hour or 0.0


def _capital(own: OwnCosts) -> float:
    if own.capex_per_gpu is None or own.life_years is None:
        return 0.0
    left = own.capex_per_gpu * (own.residual_ratio or 0.0)
    return capital_charge(own.capex_per_gpu, left, own.life_years, own.cost_of_capital or 0.0)


def _energy(own: OwnCosts) -> tuple[float, float]:
    """(V_i, V); nothing where the colocation's price holds the power."""
    if own.colo_includes_power:
        return 0.0, 0.0
    price = (own.electricity_per_kwh or 0.0) * (1.0 if own.pue is None else own.pue)
    idle, busy = own.idle_kw_per_gpu or 0.0, own.busy_kw_per_gpu or 0.0
    return price * idle, price * (busy - idle)


def _product(one: float | None, other: float | None) -> float:
    return (one or 0.0) * (other or 0.0)
