"""One group of capacity with its costs: what every question of the economics is asked of."""

from dataclasses import dataclass, field, replace

from flopwatch_collector.config_costs import (
    CloudCosts,
    CostSettings,
    EfficiencySettings,
    GroupKind,
    OwnCosts,
)
from flopwatch_collector.economics.breakeven import Breakeven, cloud_price
from flopwatch_collector.economics.efficiency import FACTORS, Efficiency, Measured, efficiency_of
from flopwatch_collector.economics.own import OwnCost, own_cost

WHOLE_SITE = "site"


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """Costs of one group, and what was measured of it."""

    name: str = WHOLE_SITE
    kind: GroupKind = "owned"
    gpus: float | None = None
    own: OwnCosts
    cloud: CloudCosts | None = None
    efficiency: EfficiencySettings | None = None
    measured: Measured = field(default_factory=Measured)
    currency: str = "USD"

    @property
    def has_line(self) -> bool:
        """Whether there is a line: not for on-demand capacity, and not without a price to compare with."""
        return self.kind != "on_demand" and self.cloud is not None

    @property
    def needs_measured(self) -> bool:
        """Whether the line rests on what is measured: a figure of the cloud that the file has no own one for."""
        told = self.efficiency
        return told is not None and any(
            getattr(told, f"cloud_{name}") is not None and getattr(told, f"own_{name}") is None
            for name in FACTORS
        )

    def cost(self) -> OwnCost:
        """What an hour of it costs."""
        return own_cost(self.own)

    def ratio(self) -> Efficiency:
        """Its efficiency against the cloud's."""
        return efficiency_of(self.efficiency, self.measured)

    def breakeven(self, *, fixed: float | None = None, efficiency_ratio: float | None = None) -> Breakeven:
        """Owning against renting; another fixed cost or rho than its own where given.

        Raises:
            ValueError: there is no cloud price.
        """
        if self.cloud is None:
            raise ValueError(f"group {self.name} has no cloud price")
        cost = self.cost()
        return Breakeven(
            fixed_per_gpu_hour=cost.fixed_per_gpu_hour if fixed is None else fixed,
            variable_per_gpu_hour=cost.variable_per_gpu_hour,
            cloud=cloud_price(self.cloud),
            efficiency_ratio=self.ratio().ratio if efficiency_ratio is None else efficiency_ratio,
        )


def cases_of(costs: CostSettings) -> tuple[Case, ...]:
    """The groups of the settings; without any the whole site as one; nothing without own costs."""
    if costs.group:
        return tuple(
            Case(
                name=group.name,
                kind=group.kind,
                gpus=group.gpus,
                own=group.own,
                cloud=group.cloud,
                efficiency=group.efficiency,
                currency=costs.currency,
            )
            for group in costs.group
        )
    if costs.own is None:
        return ()
    return (
        Case(
            gpus=costs.own.gpus,
            kind="owned" if costs.own.capex_per_gpu is not None else "leased",
            own=costs.own,
            cloud=costs.cloud,
            efficiency=costs.efficiency,
            currency=costs.currency,
        ),
    )


def with_measured(case: Case, measured: Measured, gpus: int | None) -> Case:
    """The case with what a collector knows; its own count of GPUs stands where nothing is counted."""
    return replace(case, measured=measured, gpus=case.gpus if gpus is None else float(gpus))


def fleet_threshold(cases: tuple[Case, ...]) -> float | None:
    """The fleet's line: that of its groups, weighted by what they cost; beyond 1 it is never. None without one.

    Groups whose size is not known count as one GPU each only where no size is known at all.
    """
    lined = [case for case in cases if case.has_line]
    known = [case for case in lined if case.gpus]
    pairs = [
        (case.cost().fixed_per_gpu_hour * (case.gpus or 1.0), case.breakeven().threshold)
        for case in (known or lined)
    ]
    total = sum(weight for weight, _ in pairs)
    if not pairs:
        return None
    if total == 0.0:
        return 0.0
    return sum(weight * threshold for weight, threshold in pairs if weight) / total
