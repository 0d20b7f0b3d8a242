"""Everything that is said of one group: both costs, the line, the decisions, and what they rest on."""

import math
from datetime import date
from typing import Any

from flopwatch.answers.economy import (
    CostTerm,
    CurvePoint,
    DecisionVerdict,
    DemandInfo,
    EfficiencyInfo,
    GroupEconomy,
)
from flopwatch_collector.economics import variations
from flopwatch_collector.economics.breakeven import Breakeven, per_useful_eflop
from flopwatch_collector.economics.case import Case
from flopwatch_collector.economics.decisions import decisions, verdict_of
from flopwatch_collector.economics.gates import gates
from flopwatch_collector.economics.notes import notes_of, prices_of
from flopwatch_collector.economics.observed import Observed
from flopwatch_collector.economics.own import HOURS_PER_YEAR, OwnCost

CURVE_POINTS = 41


def assess(case: Case, seen: Observed, today: date) -> GroupEconomy:
    """The whole answer for a group."""
    cost, line = case.cost(), case.breakeven() if case.has_line else None
    verdict = verdict_of(line, seen.asked_ratio, seen.state_at)
    prices = prices_of(case, today)
    return GroupEconomy(
        name=case.name,
        kind=case.kind,
        gpus=None if case.gpus is None else round(case.gpus),
        has_line=case.has_line,
        terms=_terms(cost),
        prices=prices,
        fixed_per_gpu_hour=cost.fixed_per_gpu_hour,
        variable_per_gpu_hour=cost.variable_per_gpu_hour,
        efficiency=efficiency_info(case),
        verdict=verdict,
        decisions=decisions(case, seen.asked_ratio, seen.state_at),
        utilisation_ratio=seen.utilisation,
        demand=demand_info(case, seen),
        gates=gates(case, seen, verdict),
        valid_days=seen.valid_days,
        enough_for_purchase=seen.enough_for_purchase,
        notes=notes_of(case, seen, prices),
        **_of_line(case, line, seen),
        **_of_use(case, line, cost, seen.utilisation),
    )


def _of_line(case: Case, line: Breakeven | None, seen: Observed) -> dict[str, Any]:
    """The cloud's side, the line, and what moves it; unknown without one."""
    even = None if line is None else case.breakeven(efficiency_ratio=1.0)
    cloud = None if line is None else line.cloud
    used = seen.utilisation
    return {
        "cloud_price": None if cloud is None else cloud.price,
        "billed_per_used": None if cloud is None else cloud.billed_per_used,
        "commitment_ratio": None if cloud is None else cloud.commitment_ratio,
        "commitment_price": cloud.commitment_price if cloud is not None and cloud.commitment_ratio else None,
        "u_star": None if line is None else line.u_star,
        "threshold": _finite(line),
        "u_star_at_equal_efficiency": None if even is None else even.u_star,
        "verdict_at_equal_efficiency": verdict_of(even, seen.asked_ratio, seen.state_at),
        "curve": () if line is None else _curve(line),
        "sensitivity": () if line is None else variations.sensitivity(case),
        "table": None if line is None else variations.price_table(case),
        "sizes": () if line is None else variations.sizes(case),
        "least_gpus": None if line is None or used is None else variations.least_gpus(case, used),
    }


def _of_use(case: Case, line: Breakeven | None, cost: OwnCost, used: float | None) -> dict[str, Any]:
    """Both costs at a utilisation; unknown without one."""
    own_eflop, cloud_eflop = _eflops(case, line, cost, used)
    own = None if used is None else cost.at(used)
    return {
        "own_per_gpu_hour": own,
        "cloud_per_gpu_hour": None if used is None or line is None else line.cloud_at(used),
        "own_per_used_hour": own / used if own is not None and used else None,
        "own_per_useful_eflop": own_eflop,
        "cloud_per_useful_eflop": cloud_eflop,
    }


def _terms(cost: OwnCost) -> tuple[CostTerm, ...]:
    return tuple(
        CostTerm(name=name, per_gpu_year=value, per_gpu_hour=value / HOURS_PER_YEAR)
        for name, value in cost.terms.items()
    )


def efficiency_info(case: Case) -> EfficiencyInfo:
    """The ratio of both sides with what it is made from, for the answer."""
    sides = case.ratio()
    return EfficiencyInfo(
        ratio=sides.ratio,
        basis=sides.basis,
        own_mfu=sides.own["mfu"],
        own_goodput=sides.own["goodput"],
        own_peak_tflops=sides.own["peak_tflops"],
        cloud_mfu=sides.cloud["mfu"],
        cloud_goodput=sides.cloud["goodput"],
        cloud_peak_tflops=sides.cloud["peak_tflops"],
        own_sources=dict(sides.own_sources),
        compared=sides.compared,
        one_sided=sides.one_sided,
        coverage_ratio=case.measured.coverage_ratio,
    )


def _finite(line: Breakeven | None) -> float | None:
    return None if line is None or not math.isfinite(line.threshold) else line.threshold


def _eflops(
    case: Case, line: Breakeven | None, cost: OwnCost, used: float | None
) -> tuple[float | None, float | None]:
    """Money per useful EFLOP, own and cloud; the cloud's pay per use does not depend on the utilisation."""
    sides = case.ratio()
    own = None if used is None else per_useful_eflop(cost.at(used), used, sides.own_flops)
    if line is None:
        return own, None
    if line.cloud.commitment_ratio:
        cloud = None if used is None else per_useful_eflop(line.cloud_at(used), used, sides.own_flops)
        return own, cloud
    return own, per_useful_eflop(line.cloud.price * line.cloud.billed_per_used, 1.0, sides.cloud_flops)


def _curve(line: Breakeven) -> tuple[CurvePoint, ...]:
    points = {index / (CURVE_POINTS - 1) for index in range(CURVE_POINTS)}
    points |= {point for point in (line.kink, line.u_star) if point is not None and 0.0 <= point <= 1.0}
    return tuple(
        CurvePoint(
            utilisation_ratio=point,
            own_per_gpu_hour=line.own_at(point),
            cloud_per_gpu_hour=line.cloud_at(point),
        )
        for point in sorted(points)
    )


def demand_info(case: Case, seen: Observed) -> DemandInfo | None:
    """The duration curve with what of it is worth owning; None where no demand is known."""
    curve = seen.demand
    if curve is None or curve.most is None:
        return None
    ownable = curve.ownable(case.breakeven().u_star) if case.has_line else None
    return DemandInfo(
        basis=seen.demand_basis,
        gpus=curve.gpus,
        time_ratio=curve.time_ratio,
        mean_gpus=curve.mean,
        ownable_gpus=ownable,
        burst_gpus=None if ownable is None else max(0, math.ceil(curve.most) - ownable),
        marginal_time_ratio=None if case.gpus is None else curve.share_at(case.gpus),
    )


def fleet_verdict(groups: tuple[GroupEconomy, ...]) -> DecisionVerdict:
    """The verdict of all groups that have a line: theirs where they agree, else that of the costliest."""
    lined = [group for group in groups if group.has_line]
    if not lined:
        return "insufficient_data"
    return max(lined, key=lambda group: group.fixed_per_gpu_hour * (group.gpus or 1)).verdict
