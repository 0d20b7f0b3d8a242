"""The two decisions: buy or renew at full cost, keep or retire at what can still be avoided.

What is spent is spent: who keeps a machine pays its running cost, and forgoes what a sale would bring today, less
what it will still bring at the end.
"""

from collections.abc import Callable
from typing import Literal

from flopwatch.answers.economy import Decision, DecisionVerdict
from flopwatch.answers.ledger import VerdictCode
from flopwatch_collector.config_costs import OwnCosts
from flopwatch_collector.economics.breakeven import Breakeven
from flopwatch_collector.economics.case import Case
from flopwatch_collector.economics.own import HOURS_PER_YEAR, capital_charge

StateAt = Callable[[float | None], VerdictCode]
"""The sustained state against a line; None: a line that is never reached."""


def avoidable_per_gpu_hour(case: Case) -> float:
    """What keeping costs per capacity GPU-hour: no capital, no migration, and the sale that is forgone."""
    cost = case.cost()
    year = cost.per_gpu_year - cost.capital - cost.migration + resale_per_gpu_year(case.own)
    return year / HOURS_PER_YEAR + cost.idle_energy_per_gpu_hour


def resale_per_gpu_year(own: OwnCosts) -> float:
    """What it costs a year not to sell today; 0 where it is not known what a sale would bring."""
    value = own.resale_per_gpu
    if value is None or own.remaining_years is None:
        return 0.0
    left = min(value, (own.capex_per_gpu or 0.0) * (own.residual_ratio or 0.0))
    return capital_charge(value, left, own.remaining_years, own.cost_of_capital or 0.0)


def verdict_of(
    line: Breakeven | None, utilisation: float | None, state_at: StateAt | None
) -> DecisionVerdict:
    """``own`` or ``rent`` at a given utilisation; without one the sustained state, where days are known."""
    if line is None:
        return "insufficient_data"
    if utilisation is not None:
        return "own" if line.owning_is_cheaper(utilisation) else "rent"
    return "insufficient_data" if state_at is None else state_at(line.u_star)


def decisions(case: Case, utilisation: float | None, state_at: StateAt | None) -> tuple[Decision, ...]:
    """Both decisions, each against its own line; none without a line."""
    if not case.has_line:
        return ()
    full, kept = case.breakeven(), case.breakeven(fixed=avoidable_per_gpu_hour(case))
    return (
        _decision("buy_or_renew", full, verdict_of(full, utilisation, state_at)),
        _decision("keep_or_retire", kept, verdict_of(kept, utilisation, state_at)),
    )


def _decision(
    name: Literal["buy_or_renew", "keep_or_retire"], line: Breakeven, verdict: DecisionVerdict
) -> Decision:
    yes, no = ("buy", "rent") if name == "buy_or_renew" else ("keep", "retire")
    action = {"own": yes, "above_sustained": yes, "rent": no, "below_sustained": no}.get(verdict)
    return Decision(
        name=name,
        fixed_per_gpu_hour=line.fixed_per_gpu_hour,
        u_star=line.u_star,
        verdict=verdict,
        action=action,  # type: ignore[arg-type]
    )
