"""What views are made from, and the moment an answer is of."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from flopwatch.query import Range
from flopwatch_collector.accounting import Accounting
from flopwatch_collector.bookkeeping.prices import Prices, line_of, prices_of
from flopwatch_collector.compute.breakeven import Line
from flopwatch_collector.compute.buckets import WINDOW_SECONDS
from flopwatch_collector.compute.money import Rates
from flopwatch_collector.config import CostSettings, Settings
from flopwatch_collector.economics.case import cases_of, with_measured
from flopwatch_collector.model import Fleet, FleetState
from flopwatch_collector.schedulers.declared import Standing
from flopwatch_collector.store.port import Store
from flopwatch_collector.views.alerts import AlertSource
from flopwatch_collector.views.measured import MeasuredFleet

HOURLY_FROM_SECONDS = 2 * 86_400.0
"""Longer ranges are drawn by the hour."""


def nothing_declared(_: float) -> Iterable[Standing]:
    """Nobody declares anything."""
    return ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Sources:
    """The collector's parts that views read."""

    fleet: Fleet
    store: Store
    accounting: Accounting
    alerts: AlertSource
    base: Settings
    """As the process was started with them."""
    costs: Callable[[], CostSettings]
    """The costs that count now."""
    measured: MeasuredFleet
    declared: Callable[[float], Iterable[Standing]] = nothing_declared
    """What holds of nodes and GPUs at a time, as operators, settings and schedulers say."""

    @property
    def settings(self) -> Settings:
        """The settings with the costs that count now."""
        costs = self.costs()
        return self.base if costs is self.base.costs else replace(self.base, costs=costs)

    @property
    def prices(self) -> Prices:
        """What money and the line are made from."""
        return prices_of(self.costs())

    def line(self) -> Line:
        """The utilisation that the fleet is held against, by what was measured where the costs ask for it."""
        costs = self.costs()
        cases = cases_of(costs)
        if not any(case.needs_measured for case in cases):
            return self.prices.line
        measured = self.measured.efficiency()
        return line_of(costs, tuple(with_measured(case, measured, None) for case in cases))

    def rates(self) -> Rates:
        """What a GPU-hour costs, by node."""
        return self.prices.rates(self.fleet.state().nodes)


@dataclass(frozen=True, kw_only=True, slots=True)
class Moment:
    """One consistent view: a state, a time, and what is asked."""

    state: FleetState
    now: float
    asked: Range

    def at_end(self) -> "Moment":
        """The moment at which the asked range ends; this one where that is now."""
        end = self.asked.end_seconds
        return self if end is None or end >= self.now else replace(self, now=end)

    @property
    def hourly(self) -> bool:
        """Whether the range is drawn by the hour."""
        return self.asked.seconds > HOURLY_FROM_SECONDS

    @property
    def start(self) -> float:
        """The begin of the range, on the border of a window so that neighbouring questions are the same."""
        width = 3_600.0 if self.hourly else float(WINDOW_SECONDS)
        return (self.now - self.asked.seconds) // width * width

    def job_numbers(self) -> Mapping[str, int]:
        """Job numbers by id."""
        return {job.job_id: number for number, job in self.state.jobs.items()}
