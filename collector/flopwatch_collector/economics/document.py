"""The answer of ``flopwatch breakeven`` as JSON."""

import dataclasses
from typing import Any

from flopwatch.answers.economy import GroupEconomy
from flopwatch_collector.economics.case import Case
from flopwatch_collector.economics.fleet import FleetFigures
from flopwatch_collector.economics.own import recovery_factor


def document(
    cases: tuple[Case, ...], groups: tuple[GroupEconomy, ...], fleet: FleetFigures, currency: str
) -> dict[str, Any]:
    """The fleet's figures by their names; everything else of a group under ``groups``, of a single one also here."""
    entries = [group_document(case, group) for case, group in zip(cases, groups, strict=True)]
    if len(entries) == 1:
        return {"currency": currency, **entries[0], "groups": entries}
    first = groups[0]
    return {
        "currency": currency,
        "fixed_per_gpu_hour": fleet.fixed_per_gpu_hour,
        "variable_per_gpu_hour": fleet.variable_per_gpu_hour,
        "efficiency_ratio": None,
        "has_line": fleet.has_line,
        "u_star": fleet.u_star,
        "threshold": fleet.threshold,
        "verdict": fleet.verdict,
        "utilisation_ratio": first.utilisation_ratio,
        "buy_or_renew": None,
        "keep_or_retire": None,
        "own_per_gpu_hour": None,
        "cloud_per_gpu_hour": None,
        "own_per_useful_eflop": None,
        "cloud_per_useful_eflop": None,
        "sensitivity": [],
        "groups": entries,
    }


def group_document(case: Case, group: GroupEconomy) -> dict[str, Any]:
    """One group, with the intermediate values of its arithmetic."""
    made = dataclasses.asdict(group)
    cost, own = case.cost(), case.own
    for decision in made.pop("decisions"):
        made[decision["name"]] = decision
    life = own.life_years if own.capex_per_gpu is not None else None
    made["terms"] = {term.pop("name"): term for term in made["terms"]}
    return {
        **made,
        "buy_or_renew": made.get("buy_or_renew"),
        "keep_or_retire": made.get("keep_or_retire"),
        "efficiency_ratio": group.efficiency.ratio,
        "capital_recovery_factor": None
        if life is None
        else recovery_factor(own.cost_of_capital or 0.0, life),
        "fixed_per_gpu_year": cost.per_gpu_year,
        "capacity_per_gpu_hour": cost.capacity_per_gpu_hour,
        "idle_energy_per_gpu_hour": cost.idle_energy_per_gpu_hour,
    }
