"""What money and the line are made from: one price for all, or those of groups of nodes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache

from flopwatch_collector.compute.breakeven import Line
from flopwatch_collector.compute.money import Rates
from flopwatch_collector.config_costs import CostSettings, GroupKind
from flopwatch_collector.economics.case import Case, cases_of, fleet_threshold
from flopwatch_collector.economics.own import own_cost
from flopwatch_collector.model import Gpu, Node


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupPrice:
    """What a GPU-hour of a group costs; its nodes by name, ``*`` for any text."""

    name: str
    kind: GroupKind
    patterns: tuple[str, ...]
    fixed_per_gpu_hour: float
    variable_per_gpu_hour: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Prices:
    """The price of a GPU-hour of capacity, and the line that utilisation is held against."""

    price_per_gpu_hour: float | None = None
    """Of nodes that are in no group; what an idle hour costs as well."""
    variable_per_gpu_hour: float = 0.0
    """What a busy hour costs more."""
    line: Line = field(default_factory=Line)
    groups: tuple[GroupPrice, ...] = ()

    def group_of(self, node: str) -> GroupPrice | None:
        """The first group that the node's name fits; None when it is in none."""
        return next(
            (group for group in self.groups if any(fnmatchcase(node, each) for each in group.patterns)), None
        )

    def rates(self, nodes: Mapping[int, Node]) -> Rates:
        """Prices by node."""
        by_node = {}
        if self.groups:
            names = tuple(sorted((number, node.name) for number, node in nodes.items()))
            by_node = _by_node(self, names)
        return Rates(
            fixed_per_gpu_hour=self.price_per_gpu_hour,
            variable_per_gpu_hour=self.variable_per_gpu_hour,
            by_node=by_node,
        )

    def mean(self, nodes: Mapping[int, Node], gpus: Iterable[Gpu]) -> tuple[float | None, float | None]:
        """(fixed, variable) of a GPU-hour, the mean over present GPUs; None where one of them has no price."""
        if not self.groups:
            price = self.price_per_gpu_hour
            return price, None if price is None else self.variable_per_gpu_hour
        rates = self.rates(nodes)
        fixed, variable, count = 0.0, 0.0, 0
        for gpu in gpus:
            if gpu.to_seconds is not None:
                continue
            known = rates.by_node.get(gpu.node)
            if known is None and self.price_per_gpu_hour is None:
                return None, None
            own = known or (self.price_per_gpu_hour or 0.0, self.variable_per_gpu_hour)
            fixed, variable, count = fixed + own[0], variable + own[1], count + 1
        return (fixed / count, variable / count) if count else (None, None)


@lru_cache(maxsize=8)
def _by_node(prices: Prices, names: tuple[tuple[int, str], ...]) -> dict[int, tuple[float, float]]:
    result = {}
    for number, name in names:
        group = prices.group_of(name)
        if group is not None:
            result[number] = (group.fixed_per_gpu_hour, group.variable_per_gpu_hour)
    return result


@lru_cache(maxsize=8)
def prices_of(costs: CostSettings) -> Prices:
    """The prices that follow from the settings: a flat price beats the worked-out one."""
    fixed, variable = costs.price_per_gpu_hour, 0.0
    if fixed is None and costs.own is not None:
        cost = own_cost(costs.own)
        fixed, variable = cost.fixed_per_gpu_hour, cost.variable_per_gpu_hour
    groups = []
    for group in costs.group:
        cost = own_cost(group.own)
        groups.append(
            GroupPrice(
                name=group.name,
                kind=group.kind,
                patterns=group.nodes,
                fixed_per_gpu_hour=cost.fixed_per_gpu_hour,
                variable_per_gpu_hour=cost.variable_per_gpu_hour,
            )
        )
    return Prices(
        price_per_gpu_hour=fixed,
        variable_per_gpu_hour=variable,
        line=line_of(costs, cases_of(costs)),
        groups=tuple(groups),
    )


def line_of(costs: CostSettings, cases: tuple[Case, ...]) -> Line:
    """The line of the cases, else the one that is set."""
    threshold = fleet_threshold(cases)
    if threshold is None:
        return Line(ratio=costs.breakeven_ratio, source=costs.breakeven_source)
    return Line(ratio=threshold if threshold <= 1.0 else None, source="costs")
