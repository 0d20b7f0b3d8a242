"""The answer of ``flopwatch breakeven`` for people: every figure with the numbers it comes from."""

from collections.abc import Iterator

from flopwatch.answers.economy import Decision, GroupEconomy, PriceTable, Sensitivity
from flopwatch_collector.economics.case import Case
from flopwatch_collector.economics.fleet import FleetFigures
from flopwatch_collector.economics.own import HOURS_PER_YEAR

NEVER = "never"
UNKNOWN = "unknown"
VERDICTS = {
    "own": "OWN", "rent": "RENT",
    "above_sustained": "OWN: above the line, sustained",
    "above_not_sustained": "above the line, not yet sustained",
    "below": "below the line", "below_sustained": "RENT: below the line, sustained",
    "insufficient_data": "insufficient data",
}  # fmt: skip


def render(
    cases: tuple[Case, ...], groups: tuple[GroupEconomy, ...], fleet: FleetFigures, currency: str
) -> str:
    """All groups, and the fleet where there are several."""
    lines: list[str] = []
    for case, group in zip(cases, groups, strict=True):
        lines += [f"{group.name} ({group.kind}), {currency}", *_group(case, group), ""]
    if len(groups) > 1:
        lines += ["fleet", *_fleet(fleet), ""]
    return "\n".join(lines)


def _group(case: Case, group: GroupEconomy) -> Iterator[str]:
    yield from _own(group)
    if group.has_line:
        yield from _line(group)
    yield from _costs(group)
    yield from (_decision(each, group) for each in group.decisions)
    yield from _demand(case, group)
    yield from (f"  gate {gate.name:<13} {gate.state}" for gate in group.gates)
    yield from _sensitivity(group.sensitivity)
    yield from _table(group.table)
    yield from _sizes(group)
    yield from (f"  note: {note.text}" for note in group.notes)


def _demand(case: Case, group: GroupEconomy) -> Iterator[str]:
    demand = group.demand
    if demand is None:
        return
    base, burst = _count(demand.ownable_gpus), _count(demand.burst_gpus)
    yield f"  demand             own-able base {base} GPUs, burst {burst}"
    if demand.marginal_time_ratio is not None:
        share = f"{demand.marginal_time_ratio:.1%}"
        yield f"                     the last of {case.gpus:g} GPUs is asked for {share} of the time"


def _own(group: GroupEconomy) -> Iterator[str]:
    """The fixed cost term by term."""
    yield "  own cost                        a GPU-year    a GPU-hour"
    for term in group.terms:
        if term.per_gpu_year:
            yield f"    {term.name:<24} {term.per_gpu_year:>14,.2f} {term.per_gpu_hour:>13.6f}"
    total = group.fixed_per_gpu_hour
    yield f"    {'F' + chr(39) + ' fixed':<24} {total * HOURS_PER_YEAR:>14,.2f} {total:>13.6f}"
    yield f"    {'V when busy, on top':<24} {'':>14} {group.variable_per_gpu_hour:>13.6f}"


def _line(group: GroupEconomy) -> Iterator[str]:
    """U* with its formula filled in."""
    sides = group.efficiency
    price, billed = group.cloud_price or 0.0, group.billed_per_used or 1.0
    yield f"  cloud              P = {price:.4f} per billed GPU-hour, uplift included; beta = {billed:g}"
    yield f"  efficiency         rho = {sides.ratio:.6f} ({_rho(group)})"
    above, below = f"{group.fixed_per_gpu_hour:.6f}", f"{sides.ratio:.4f} x {billed:g} x {price:.4f}"
    if group.commitment_ratio:
        paid = group.commitment_price or 0.0
        above = f"({above} + {group.commitment_ratio:g} x ({price:.4f} - {paid:.4f}))"
        yield f"  commitment         {group.commitment_ratio:g} of capacity at {paid:.4f}, used or not"
    shown = f"{above} / ({below} - {group.variable_per_gpu_hour:.6f}) = {_threshold(group)}"
    yield f"  U*                 {'0: owning is cheaper at every utilisation' if group.u_star == 0.0 else shown}"
    if sides.basis != "none":
        yield f"                     at equal efficiency (rho = 1): {_percent(group.u_star_at_equal_efficiency)}"


def _rho(group: GroupEconomy) -> str:
    sides = group.efficiency
    if sides.basis == "none":
        return "nothing to compare: equal efficiency is taken"
    pairs = {
        "mfu": (sides.own_mfu, sides.cloud_mfu),
        "goodput": (sides.own_goodput, sides.cloud_goodput),
        "peak_tflops": (sides.own_peak_tflops, sides.cloud_peak_tflops),
    }
    words = [f"{name} {pairs[name][0]:g} / {pairs[name][1]:g}" for name in sides.compared]
    return f"{', '.join(words)}; the cloud's {sides.basis}"


def _threshold(group: GroupEconomy) -> str:
    if group.u_star is not None:
        return f"{group.u_star:.6f} = {group.u_star:.1%}"
    return NEVER if group.threshold is None else f"{NEVER} ({group.threshold:.4f} is more than all hours)"


def _costs(group: GroupEconomy) -> Iterator[str]:
    """Both costs at the utilisation."""
    used = group.utilisation_ratio
    verdict = VERDICTS[group.verdict] if group.has_line else "none, there is no line"
    yield f"  verdict            {verdict}" + ("" if used is None else f" (at {used:.1%} used)")
    if group.efficiency.basis != "none":
        yield f"                     at equal efficiency: {VERDICTS[group.verdict_at_equal_efficiency]}"
    if used is None:
        return
    yield f"  a capacity hour    own {_money(group.own_per_gpu_hour)}, cloud {_money(group.cloud_per_gpu_hour)}"
    yield f"  a used hour        own {_money(group.own_per_used_hour)}"
    own, cloud = _money(group.own_per_useful_eflop), _money(group.cloud_per_useful_eflop)
    yield f"  a useful EFLOP     own {own}, cloud {cloud}"


def _decision(decision: Decision, group: GroupEconomy) -> str:
    name = decision.name.replace("_", " ")
    what = decision.action.upper() if decision.action else VERDICTS[decision.verdict]
    costs = f"{decision.fixed_per_gpu_hour:.6f} fixed, U* {_percent(decision.u_star)}"
    short = "" if group.enough_for_purchase in (None, True) else ", state only"
    return f"  {name:<18} {what}{short} ({costs})"


def _sensitivity(rows: tuple[Sensitivity, ...]) -> Iterator[str]:
    if rows:
        yield "  what moves U*, the strongest first"
    for row in rows:
        changes = "   ".join(f"{each.change} {_change(each.u_star, each.delta)}" for each in row.variations)
        yield f"    {row.parameter:<26} {_number(row.base):>12}   {changes}"


def _change(u_star: float | None, delta: float | None) -> str:
    if u_star is None:
        return NEVER
    return f"{u_star:.1%}" + ("" if delta is None else f" ({delta * 100:+.1f})")


def _table(table: PriceTable | None) -> Iterator[str]:
    if table is None:
        return
    yield "  U* by capex (down) and cloud price (across)"
    yield "    " + " " * 10 + "".join(f"{price:>8.2f}" for price in table.prices)
    for capex, row in zip(table.rows, table.u_star, strict=True):
        yield f"    {capex:>10,.0f}" + "".join(f"{'-' if x is None else f'{x:.1%}':>8}" for x in row)


def _sizes(group: GroupEconomy) -> Iterator[str]:
    if group.sizes:
        yield "  the same team over   GPUs   staff a GPU-h      F'    U*"
    for row in group.sizes:
        over = "" if row.u_star is not None or row.threshold is None else f" ({row.threshold:.2f})"
        costs = f"{row.staff_per_gpu_hour:>15.3f} {row.fixed_per_gpu_hour:>7.3f}"
        yield f"  {row.gpus:>25,} {costs}    {_percent(row.u_star)}{over}"
    if group.least_gpus is not None:
        yield f"  at this utilisation owning pays from {group.least_gpus:,} GPUs on"


def _fleet(fleet: FleetFigures) -> Iterator[str]:
    yield f"  F' {_money(fleet.fixed_per_gpu_hour)}, V {_money(fleet.variable_per_gpu_hour)}"
    yield f"  U* {_percent(fleet.u_star) if fleet.has_line else UNKNOWN}, weighted by what the groups cost"
    yield f"  verdict {VERDICTS[fleet.verdict]}"


def _percent(ratio: float | None) -> str:
    return NEVER if ratio is None else f"{ratio:.1%}"


def _money(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.4f}"


def _number(value: float) -> str:
    """Without an exponent, and without zeros at its end."""
    return f"{value:,.4f}".rstrip("0").rstrip(".")


def _count(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value:,}"
