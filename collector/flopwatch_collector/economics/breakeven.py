"""The utilisation at which owning and renting cost the same.

C_own(U) = F' + V U; C_cloud(U) = P_c c + P max(0, rho beta U - c). Beyond the commitment the two meet at
U* = (F' + c (P - P_c)) / (rho beta P - V); within it the cloud is flat, and owning is cheaper where
F' + V U < P_c c.
"""

import math
from dataclasses import dataclass

from flopwatch_collector.config_costs import CloudCosts
from flopwatch_collector.economics.own import HOURS_PER_MONTH


@dataclass(frozen=True, kw_only=True, slots=True)
class CloudPrice:
    """What renting costs, uplift included, in money per billed GPU-hour."""

    price: float
    """P, of pay per use."""
    billed_per_used: float = 1.0
    """beta."""
    commitment_ratio: float = 0.0
    """c, of the own capacity, billed whether used or not."""
    commitment_price: float = 0.0
    """P_c."""


def list_price(cloud: CloudCosts) -> float:
    """The price of a GPU-hour before the uplift; a month has 730 hours."""
    if cloud.price_per_gpu_hour is not None:
        return cloud.price_per_gpu_hour
    gpus = cloud.gpus_per_server or 1.0
    if cloud.price_per_server_hour is not None:
        return cloud.price_per_server_hour / gpus
    return (cloud.price_per_server_month or 0.0) / gpus / HOURS_PER_MONTH


def cloud_price(cloud: CloudCosts) -> CloudPrice:
    """The prices with their uplift, which counts on committed hours as well."""
    factor = 1.0 + cloud.uplift_ratio
    return CloudPrice(
        price=list_price(cloud) * factor,
        billed_per_used=cloud.billed_per_used,
        commitment_ratio=cloud.commitment_ratio,
        commitment_price=(cloud.commitment_price_per_gpu_hour or 0.0) * factor,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Breakeven:
    """Owning against renting: F', V, the cloud's price and rho."""

    fixed_per_gpu_hour: float
    variable_per_gpu_hour: float
    cloud: CloudPrice
    efficiency_ratio: float = 1.0

    @property
    def billed_ratio(self) -> float:
        """Cloud GPU-hours billed for one own used GPU-hour: rho beta."""
        return self.efficiency_ratio * self.cloud.billed_per_used

    def own_at(self, utilisation: float) -> float:
        """Money per own capacity GPU-hour."""
        return self.fixed_per_gpu_hour + self.variable_per_gpu_hour * utilisation

    def cloud_at(self, utilisation: float) -> float:
        """Money that the same work costs in the cloud, per own capacity GPU-hour."""
        cloud = self.cloud
        beyond = max(0.0, self.billed_ratio * utilisation - cloud.commitment_ratio)
        return cloud.commitment_price * cloud.commitment_ratio + cloud.price * beyond

    def owning_is_cheaper(self, utilisation: float) -> bool:
        """Whether owning costs no more at a utilisation."""
        return self.own_at(utilisation) <= self.cloud_at(utilisation) + 1e-12

    @property
    def kink(self) -> float:
        """The utilisation at which the commitment is used up; 0 without one."""
        return self.cloud.commitment_ratio / self.billed_ratio if self.billed_ratio > 0.0 else math.inf

    @property
    def threshold(self) -> float:
        """From which utilisation on owning is cheaper up to all hours: 0 always; beyond 1, or infinite, never."""
        cloud = self.cloud
        gain = self.billed_ratio * cloud.price - self.variable_per_gpu_hour
        if gain <= 0.0:
            # What more use costs, owning costs more of: it is cheaper at all hours, or at none that last.
            return 0.0 if self.own_at(1.0) <= self.cloud_at(1.0) else math.inf
        if self.kink >= 1.0 and self.own_at(1.0) <= self.cloud_at(1.0):
            return 0.0
        extra = cloud.commitment_ratio * (cloud.price - cloud.commitment_price)
        met = (self.fixed_per_gpu_hour + extra) / gain
        # Where they would meet within the commitment, owning is cheaper on both sides of its end.
        return met if met > self.kink or not cloud.commitment_ratio else 0.0

    @property
    def u_star(self) -> float | None:
        """The breakeven utilisation; None: owning never pays."""
        return self.threshold if self.threshold <= 1.0 else None

    @property
    def cheaper_below(self) -> float | None:
        """Up to which utilisation owning is cheaper although it is not at the end of the commitment; None: nowhere."""
        cloud = self.cloud
        flat = cloud.commitment_price * cloud.commitment_ratio
        if self.fixed_per_gpu_hour > flat or self.threshold == 0.0 or not cloud.commitment_ratio:
            return None
        if self.variable_per_gpu_hour == 0.0:
            return min(1.0, self.kink)
        return min(1.0, self.kink, (flat - self.fixed_per_gpu_hour) / self.variable_per_gpu_hour)


def price_at_breakeven(fixed: float, variable: float, utilisation: float, billed_ratio: float = 1.0) -> float:
    """The pay-per-use price at which the breakeven is at this utilisation."""
    return (fixed / utilisation + variable) / billed_ratio


def per_useful_eflop(per_capacity_hour: float, utilisation: float, kept_flops: float | None) -> float | None:
    """Money per 10^18 kept FLOPs, of capacity that is used for a share of its hours; None where unknown."""
    if kept_flops is None or utilisation <= 0.0:
        return None
    return per_capacity_hour / (utilisation * kept_flops * 3600.0) * 1e18
