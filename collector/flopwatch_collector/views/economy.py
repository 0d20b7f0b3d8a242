"""The Breakeven page: costs of the settings, what was measured, and the days, put together."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np

from flopwatch.answers.economy import (
    NOTHING_MEASURED,
    Economy,
    EfficiencyInfo,
    GroupEconomy,
    no_economy,
)
from flopwatch.query import Day, Status, VerdictCode
from flopwatch_collector.bookkeeping.prices import Prices, prices_of
from flopwatch_collector.compute import days as calendar
from flopwatch_collector.compute.breakeven import Line, verdict
from flopwatch_collector.compute.layout import take
from flopwatch_collector.economics.assessment import assess
from flopwatch_collector.economics.case import Case, cases_of, with_measured
from flopwatch_collector.economics.efficiency import Measured
from flopwatch_collector.economics.fleet import fleet_figures
from flopwatch_collector.economics.observed import Observed
from flopwatch_collector.economics.overrides import inputs_of, overridden
from flopwatch_collector.model import FleetState
from flopwatch_collector.views.sources import Moment, Sources


@dataclass(frozen=True, kw_only=True, slots=True)
class History:
    """The last 90 days of the fleet and of its groups, today last."""

    days: tuple[Day, ...]
    by_group: Mapping[str, tuple[Day, ...]]

    def of(self, group: str) -> tuple[Day, ...]:
        """Those of a group; the fleet's where it has none of its own."""
        return self.by_group.get(group, self.days)


def economy_of(
    sources: Sources, moment: Moment, status: Status, history: History, overrides: Mapping[str, float]
) -> Economy:
    """The page, with some inputs changed.

    Raises:
        SettingError: an override is not known, or its value not allowed.
    """
    costs = overridden(sources.settings.costs, overrides)
    measured = sources.measured.efficiency()
    counts = gpus_by_group(prices_of(costs), moment.state)
    cases = tuple(with_measured(case, measured, counts.get(case.name)) for case in cases_of(costs))
    measured_info = _measured_info(measured)
    if not cases:
        empty = no_economy(status, history.days)
        return replace(
            empty, measured=measured_info, measured_billed_per_used=measured.billed_per_used,
            utilisation_ratio=_mean(history.days),
        )  # fmt: skip
    groups = tuple(_group(sources, moment, case, history, alone=len(cases) == 1) for case in cases)
    fleet = fleet_figures(cases, groups)
    return Economy(
        status=status,
        currency=costs.currency,
        configured=True,
        groups=groups,
        u_star=fleet.u_star,
        has_line=fleet.has_line,
        fixed_per_gpu_hour=fleet.fixed_per_gpu_hour,
        variable_per_gpu_hour=fleet.variable_per_gpu_hour,
        verdict=_fleet_verdict(history.days, fleet.u_star) if fleet.has_line else "insufficient_data",
        utilisation_ratio=_mean(history.days),
        measured=measured_info,
        measured_billed_per_used=measured.billed_per_used,
        inputs=inputs_of(costs, overrides, measured),
        days=history.days,
        notes=(),
    )


def _fleet_verdict(days: tuple[Day, ...], u_star: float | None) -> VerdictCode:
    return verdict(days, line=Line(ratio=u_star, source="costs")).code


def _group(sources: Sources, moment: Moment, case: Case, history: History, *, alone: bool) -> GroupEconomy:
    days = history.of(case.name)
    zone = ZoneInfo(sources.settings.collector.time_zone)
    recovery, largest = sources.measured.recovery()
    seen = Observed(
        mean_ratio=_mean(days),
        state_at=lambda line: verdict(days, line=Line(ratio=line, source="costs")).code,
        valid_days=sum(1 for day in days if day.valid and day.complete),
        recovery_seconds=recovery,
        largest_job_gpus=largest,
    )
    if alone:
        curve, queued = sources.measured.demand()
        seen = replace(seen, demand=curve, demand_basis="running_and_queued" if queued else "running")
    made = assess(case, seen, datetime.fromtimestamp(moment.now, tz=zone).date())
    return replace(made, days=history.by_group.get(case.name, ()))


def _mean(days: tuple[Day, ...]) -> float | None:
    return verdict(days, line=Line()).mean_30d_ratio


def _measured_info(measured: Measured) -> EfficiencyInfo:
    return replace(
        NOTHING_MEASURED,
        own_mfu=measured.mfu,
        own_goodput=measured.goodput,
        own_peak_tflops=measured.peak_tflops,
        own_sources={
            name: "unknown" if getattr(measured, name) is None else "measured"
            for name in ("mfu", "goodput", "peak_tflops")
        },
        coverage_ratio=measured.coverage_ratio,
    )


def gpus_by_group(prices: Prices, state: FleetState) -> dict[str, int]:
    """Present GPUs of every group that has any; nothing without groups."""
    counts: dict[str, int] = {}
    if not prices.groups:
        return counts
    names = {number: prices.group_of(node.name) for number, node in state.nodes.items()}
    for gpu in state.gpus.values():
        group = names.get(gpu.node)
        if group is not None and gpu.to_seconds is None:
            counts[group.name] = counts.get(group.name, 0) + 1
    return counts


def days_by_group(sources: Sources, moment: Moment, days: tuple[Day, ...]) -> dict[str, tuple[Day, ...]]:
    """The same days of every group of nodes."""
    prices, state = sources.prices, moment.state
    zone = ZoneInfo(sources.settings.collector.time_zone)
    members: dict[str, list[int]] = {}
    for number, node in state.nodes.items():
        group = prices.group_of(node.name)
        if group is not None:
            members.setdefault(group.name, []).append(number)
    result: dict[str, list[Day]] = {name: [] for name in members}
    borders = calendar.borders(moment.now, len(days), zone)
    for known, (day, start, end) in zip(days, borders, strict=True):
        rows = sources.accounting.ledger_rows(start, end, cluster=moment.asked.cluster)
        for name, numbers in members.items():
            own = take(rows, np.isin(rows["node"], np.array(numbers, dtype=np.int64)))
            result[name].append(calendar.day_answer(day, own, complete=known.complete))
    return {name: tuple(found) for name, found in result.items()}
