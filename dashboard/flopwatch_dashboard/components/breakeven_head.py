"""The top of the Breakeven page: the verdict with both decisions, its arithmetic, what was changed, five tiles."""

from collections.abc import Iterator

from dash import html
from dash.development.base_component import Component

from flopwatch.answers.economy import Decision, DecisionVerdict, Economy, GroupEconomy
from flopwatch.query import Day
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import cost_file, cost_form, cost_saving, parts, tiles
from flopwatch_dashboard.components.cost_inputs import Answered, Typed
from flopwatch_dashboard.components.tiles import TileText
from flopwatch_dashboard.view import View

HOURS_PER_YEAR = 8760.0
TONES: dict[DecisionVerdict, str] = {
    "own": "good", "rent": "warning", "above_sustained": "good", "above_not_sustained": "good", "below": "warning",
    "below_sustained": "warning", "insufficient_data": "info",
}  # fmt: skip


def tone(economy: Economy, group: GroupEconomy | None) -> str:
    """The colour of the strip; money is no emergency, so it is never red."""
    if not economy.configured or group is None or not group.has_line:
        return "info"
    return "warning" if group.u_star is None else TONES[group.verdict]


def verdict(economy: Economy, group: GroupEconomy | None, view: View) -> list[Component]:
    """The sentence, both decisions, and the arithmetic one click away; what to give first where nothing is."""
    if group is None:
        key = "econ.unavailable_title" if without_ledger(economy) else "econ.unset_title"
        return [parts.icon("info"), html.B(view.t(key))]
    colour = tone(economy, group)
    csv = html.A(
        [parts.icon("down"), html.Span(view.t("frame.csv"))],
        href=cost_file.address(cost_file.table(economy), "text/csv"),
        download=cost_file.name("breakeven.csv", economy),
        className="more",
        title=view.t("econ.csv_hint"),
    )
    lines = html.Ul([html.Li(line) for line in arithmetic(group, economy.currency, view)])
    return [
        parts.icon("check" if colour == "good" else colour),
        html.B(_title(group, view)),
        html.Span(_detail(group, view), className="sum-d"),
        html.Span([_decision(each, view) for each in group.decisions], className="decisions"),
        html.Details([html.Summary(view.t("econ.arithmetic")), lines], className="arith"),
        csv,
    ]


def without_ledger(economy: Economy) -> bool:
    """Whether the source of the data cannot say what was billable."""
    return "ledger" in economy.status.unavailable


def _title(group: GroupEconomy, view: View) -> str:
    if not group.has_line:
        return view.t("econ.on_demand_title" if group.kind == "on_demand" else "econ.no_line_title")
    if group.u_star is None:
        return view.t("econ.never_title")
    return view.t(f"econ.verdict.{group.verdict}", line=view.line(group.u_star))


def line(group: GroupEconomy, view: View) -> str:
    """The line of a group; unknown where it has none."""
    return view.line(group.u_star) if group.has_line else wording.UNKNOWN


def _detail(group: GroupEconomy, view: View) -> str:
    days = wording.number(group.valid_days)
    return view.t(
        "econ.detail", mean=wording.percent(group.utilisation_ratio), line=line(group, view), days=days
    )


def _decision(decision: Decision, view: View) -> Component:
    action = view.t(f"action.{decision.action}") if decision.action else view.t("econ.undecided")
    name = view.t(f"decision.{decision.name}")
    state = view.t(f"decision_short.{decision.verdict}")
    hint = f"U* {view.line(decision.u_star)} · {state}"
    return html.Span(
        [view.t("econ.decision", name=name), html.B(action)],
        className="chip decision",
        title=hint,
        **{"aria-label": f"{name}: {action}, {hint}"},
    )


def arithmetic(group: GroupEconomy, currency: str, view: View) -> Iterator[str]:
    """The line step by step, with the numbers that it is made from."""

    def money(value: float | None, digits: int = 4) -> str:
        return wording.money(value, currency, digits)

    terms = [term for term in group.terms if term.per_gpu_year]
    told = " + ".join(view.t(f"cost.{term.name}", money=money(term.per_gpu_year, 0)) for term in terms)
    year = sum(term.per_gpu_year for term in terms)
    yield view.t("econ.a_terms", terms=f"{told} = {money(year, 0)}" if told else money(year, 0))
    yield view.t("econ.a_fixed", year=money(year, 0), fixed=money(group.fixed_per_gpu_hour))
    yield view.t("econ.a_variable", variable=money(group.variable_per_gpu_hour))
    if group.has_line:
        yield from _of_line(group, currency, view)
    for decision in group.decisions:
        yield view.t(
            "econ.a_decision",
            name=view.t(f"decision.{decision.name}"),
            fixed=money(decision.fixed_per_gpu_hour),
            line=view.line(decision.u_star),
            verdict=view.t(f"decision_short.{decision.verdict}"),
        )
    yield view.t("econ.a_sustained")


def _of_line(group: GroupEconomy, currency: str, view: View) -> Iterator[str]:
    price = wording.money(group.cloud_price, currency, 4)
    billed, ratio = wording.number(group.billed_per_used, 3), wording.number(group.efficiency.ratio, 4)
    yield view.t("econ.a_cloud", price=price, billed=billed, ratio=ratio)
    shown = wording.percent(group.threshold if group.u_star is None else group.u_star, 2)
    if group.commitment_ratio:
        share = wording.percent(group.commitment_ratio, 0)
        committed = wording.money(group.commitment_price, currency, 4)
        yield view.t("econ.a_star_committed", share=share, committed=committed, line=shown)
    else:
        yield view.t(
            "econ.a_star",
            fixed=wording.money(group.fixed_per_gpu_hour, currency, 4),
            ratio=ratio,
            billed=billed,
            price=price,
            variable=wording.money(group.variable_per_gpu_hour, currency, 4),
            line=shown,
        )
    if group.u_star is None:
        yield view.t("econ.a_never")


def changes(answered: Answered, given: Typed, group: GroupEconomy | None, view: View) -> list[Component]:
    """That figures are what-if, or why what was typed was not taken; nothing where nothing was typed."""
    if not given.raw:
        return []
    back = html.A(view.t("econ.reset"), href=cost_form.reset(view), className="more")
    if answered.refused is not None:
        return [parts.icon("warning"), html.Span(view.t("econ.refused", why=answered.refused)), back]
    saved = next((each for each in answered.saved.groups if group and each.name == group.name), None)
    words = view.t(
        "econ.what_if", count=len(given.values), saved=wording.UNKNOWN if saved is None else line(saved, view)
    )
    return [parts.icon("info"), html.Span(words), *cost_saving.offer(answered, view), back]


def tiles_of(economy: Economy, group: GroupEconomy, view: View) -> list[Component]:
    """Utilisation, the line, a used hour on either side, a year's difference, what is worth owning."""
    return [
        _mean(economy, group, view),
        _star(group, view),
        _hour(economy, group, view),
        _year(economy, group, view),
        _base(group, view),
    ]


def _mean(economy: Economy, group: GroupEconomy, view: View) -> Component:
    days = group.days or economy.days
    mean = group.utilisation_ratio
    text = TileText(
        title=view.t("econ.tile_mean"),
        value=_percent_number(mean),
        unit="" if mean is None else "%",
        hint=view.t("econ.tile_mean_hint"),
        left=view.t("econ.tile_today", value=wording.percent(_today(days))),
        right=view.t("econ.tile_line", line=line(group, view)),
    )
    gauge = tiles.bullet(mean, group.u_star, 1.0, view)
    return tiles.tile(text, gauge, view, [day.billable_ratio for day in days][-30:])


def _today(days: tuple[Day, ...]) -> float | None:
    return days[-1].billable_ratio if days else None


def _percent_number(ratio: float | None) -> str:
    return wording.number(None if ratio is None else ratio * 100, 1)


def _star(group: GroupEconomy, view: View) -> Component:
    known = group.has_line and group.u_star is not None
    even = group.u_star_at_equal_efficiency
    equal = view.line(even) if group.has_line else wording.UNKNOWN
    text = TileText(
        title=view.t("econ.tile_star"),
        value=_percent_number(group.u_star) if known else line(group, view),
        unit="%" if known else "",
        hint=view.t("econ.tile_star_hint"),
        left=view.t("econ.tile_equal", line=equal),
        right=view.t(
            "econ.tile_rho",
            ratio=wording.number(group.efficiency.ratio, 2),
            basis=view.t(f"rho.{group.efficiency.basis}"),
        ),
    )
    return tiles.tile(
        text,
        tiles.bullet(group.u_star if known else None, group.utilisation_ratio, 1.0, view, low_is_good=True),
        view,
    )


def rented_used_hour(group: GroupEconomy) -> float | None:
    """What the work of an own used hour costs rented; None where the utilisation or the price is unknown."""
    if group.cloud_per_gpu_hour is None or not group.utilisation_ratio:
        return None
    return group.cloud_per_gpu_hour / group.utilisation_ratio


def _hour(economy: Economy, group: GroupEconomy, view: View) -> Component:
    own, cloud = group.own_per_used_hour, rented_used_hour(group)
    text = TileText(
        title=view.t("econ.tile_own"),
        value=wording.money(own, economy.currency, 2),
        hint=view.t("econ.tile_own_hint"),
        left=view.t("econ.tile_fixed", money=wording.money(group.fixed_per_gpu_hour, economy.currency, 2)),
        right=view.t("econ.tile_cloud", money=wording.money(cloud, economy.currency, 2)),
    )
    top = max(own or 0.0, cloud or 0.0) * 1.15
    return tiles.tile(text, tiles.bullet(own, cloud, top, view, low_is_good=True), view)


def saved_a_year(group: GroupEconomy) -> float | None:
    """What owning saves a year at the utilisation; negative where renting is cheaper, None where unknown."""
    own, cloud = group.own_per_gpu_hour, group.cloud_per_gpu_hour
    if own is None or cloud is None or group.gpus is None:
        return None
    return (cloud - own) * HOURS_PER_YEAR * group.gpus


def _year(economy: Economy, group: GroupEconomy, view: View) -> Component:
    amount = saved_a_year(group)
    sign = "+" if amount is not None and amount > 0 else ""
    short = amount is not None and abs(amount) >= 1e6
    value = wording.money(
        amount / 1e6 if short and amount is not None else amount, economy.currency, 2 if short else 0
    )
    text = TileText(
        title=view.t("econ.tile_year"),
        value=f"{sign}{value}",
        unit="M" if short else "",
        hint=view.t("econ.tile_year_hint"),
        left=""
        if amount is None
        else view.t("econ.tile_saves_own" if amount > 0 else "econ.tile_saves_rent"),
        right=view.t("frame.gpus", gpus=wording.number(group.gpus)),
    )
    return tiles.tile(text, tiles.no_gauge(), view)


def _base(group: GroupEconomy, view: View) -> Component:
    curve = group.demand
    ownable = None if curve is None else curve.ownable_gpus
    basis = "" if curve is None else view.t(f"demand.{curve.basis}")
    text = TileText(
        title=view.t("econ.tile_base"),
        value=wording.number(ownable),
        unit="" if ownable is None else view.t("econ.tile_of", gpus=wording.number(group.gpus)),
        hint=f"{view.t('econ.tile_base_hint')} · {basis}",
        left=view.t("econ.tile_burst", gpus=wording.number(None if curve is None else curve.burst_gpus)),
        right=basis,
    )
    top = max(group.gpus or 0, ownable or 0) or 1
    return tiles.tile(text, tiles.bullet(ownable, group.gpus, top, view), view)
