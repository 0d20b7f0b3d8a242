"""Tables and lists of the Breakeven page."""

from collections.abc import Sequence
from typing import Any

from dash import html
from dash.development.base_component import Component

from flopwatch.answers.economy import Economy, EfficiencyInfo, Gate, GroupEconomy, PriceTag
from flopwatch.figure import FindingInfo
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import parts
from flopwatch_dashboard.components.breakeven_head import line
from flopwatch_dashboard.components.cost_inputs import GROUP
from flopwatch_dashboard.components.tables import table
from flopwatch_dashboard.view import View

GATE_ICONS = {"pass": ("check", "good"), "fail": ("warning", "warning"), "unknown": ("info", "muted")}
FACTORS = ("mfu", "goodput", "peak_tflops")
MONEY_VALUES = frozenset({"fixed_per_gpu_hour", "resale_per_gpu", "residual"})


def price_table(group: GroupEconomy, currency: str, view: View) -> Component:
    """U* by purchase price and cloud price; the row and column in use are marked."""
    found = group.table
    if found is None:
        return parts.next_step(view.t("econ.table_none"))
    used = {(i, j) for i, j in [_nearest(group, found.rows, found.prices)] if i is not None}
    columns = [(view.t("econ.table_corner"), False)]
    columns += [(wording.money(price, currency, 2), True) for price in found.prices]
    rows: list[Sequence[Component | str]] = []
    for i, (capex, values) in enumerate(zip(found.rows, found.u_star, strict=True)):
        cells: list[Component | str] = [html.B(wording.money(capex, currency))]
        for j, star in enumerate(values):
            cells.append(_cell(star, group.utilisation_ratio, view, used=(i, j) in used))
        rows.append(cells)
    return table(columns, rows)


def _nearest(
    group: GroupEconomy, rows: Sequence[float], prices: Sequence[float]
) -> tuple[int | None, int | None]:
    """Which cell is that of the inputs: the one whose prices are those that are given."""
    given = {tag.side: tag for tag in group.prices}
    own, cloud = given.get("own"), given.get("cloud")
    if own is None or cloud is None or cloud.per_gpu_hour is None:
        return None, None
    near = [_index(rows, own.value), _index(prices, cloud.per_gpu_hour)]
    return (None, None) if None in near else (near[0], near[1])


def _index(values: Sequence[float], wanted: float) -> int | None:
    return next((i for i, value in enumerate(values) if abs(value - wanted) <= 1e-9 * abs(wanted)), None)


def _cell(star: float | None, mean: float | None, view: View, *, used: bool) -> Component:
    """A line, tinted where the measured utilisation is above it; with its words for those who see no colour."""
    pays = None if mean is None else star is not None and mean >= star
    kind = "" if pays is None else "pays" if pays else "pays-not"
    hint = "" if pays is None else view.t("econ.own" if pays else "econ.cloud")
    shown = wording.percent(star) if star else view.line(star)
    return html.Span(shown, className=f"cell {kind}{' used' if used else ''}", title=hint)


def gates(group: GroupEconomy, view: View) -> Component:
    """The three gates as shape, word and the figures they were decided by."""
    return html.Ul([_gate(gate, group, view) for gate in group.gates], className="gates")


def _gate(gate: Gate, group: GroupEconomy, view: View) -> Component:
    icon, colour = GATE_ICONS[gate.state]
    key = f"gate_words.{gate.name}"
    values = {name: _gate_value(name, gate.values.get(name), group, view) for name in view.placeholders(key)}
    state = html.Span(
        [parts.icon(icon), html.Span(view.t(f"gate_state.{gate.state}"))], className=f"sev sev-{colour}"
    )
    words = html.Div(view.t(key, **values), className="gate-x")
    return html.Li([html.Div([html.B(view.t(f"gate.{gate.name}")), state], className="gate-h"), words])


def _gate_value(name: str, value: Any, group: GroupEconomy, view: View) -> str:
    if name == "u_star":
        return line(group, view)
    if name.endswith("seconds"):
        return view.duration(value)
    return wording.percent(value)


def sizes(group: GroupEconomy, currency: str, view: View) -> Component:
    """The same team over fleets of other sizes."""
    if not group.sizes:
        return parts.next_step(view.t("econ.sizes_none"))
    columns = [(view.t(f"col.{name}"), True) for name in ("gpus", "staff", "fixed", "star")]
    rows: list[Sequence[Component | str]] = [
        [
            wording.number(row.gpus),
            wording.money(row.staff_per_gpu_hour, currency, 2),
            wording.money(row.fixed_per_gpu_hour, currency, 2),
            _cell(row.u_star, group.utilisation_ratio, view, used=row.gpus == group.gpus),
        ]
        for row in group.sizes
    ]
    told = []
    if group.least_gpus is not None:
        mean = wording.percent(group.utilisation_ratio)
        words = view.t("econ.sizes_least", mean=mean, gpus=wording.number(group.least_gpus))
        told = [html.P(words, className="empty-s")]
    return html.Div([table(columns, rows), *told])


def efficiency(group: GroupEconomy, currency: str, view: View) -> list[Component]:
    """What rho is made from, the verdict at rho = 1 beside it, and money per useful EFLOP."""
    info = group.efficiency
    columns = [
        (view.t("col.factor"), False),
        (view.t("econ.side_own"), True),
        (view.t("econ.side_cloud"), True),
    ]
    rows: list[Sequence[Component | str]] = [_factor(name, info, view) for name in FACTORS]
    told = []
    if group.has_line:
        even = view.line(group.u_star_at_equal_efficiency)
        state = view.t(f"decision_short.{group.verdict_at_equal_efficiency}")
        told.append(view.t("econ.verdict_at", line=even, verdict=state))
    if group.own_per_useful_eflop is not None or group.cloud_per_useful_eflop is not None:
        amounts = [
            wording.money(x, currency, 4) for x in (group.own_per_useful_eflop, group.cloud_per_useful_eflop)
        ]
        told.append(view.t("econ.useful", own=amounts[0], cloud=amounts[1]))
    if info.basis == "none":
        told.append(view.t("econ.efficiency_next"))
    return [table(columns, rows), *(html.P(words, className="empty-s") for words in told)]


def _factor(name: str, info: EfficiencyInfo, view: View) -> list[Component | str]:
    source = view.t(f"factor_source.{info.own_sources.get(name, 'unknown')}")
    own, cloud = getattr(info, f"own_{name}"), getattr(info, f"cloud_{name}")
    shown = wording.number if name == "peak_tflops" else wording.percent
    badge = [html.Span(source, className="badge")] if own is not None else []
    basis = (
        [html.Span(view.t(f"rho.{info.basis}"), className="badge")]
        if cloud is not None and info.basis != "none"
        else []
    )
    return [
        view.t(f"factor.{name}"),
        html.Span([shown(own, 1), *badge], className="mfu-c"),
        html.Span([shown(cloud, 1), *basis], className="mfu-c"),
    ]


def groups(economy: Economy, shown: str, view: View) -> Component:
    """Every group of nodes with its own line; its name leads to its figures."""
    names = ("group", "kind", "gpus", "fixed", "price_cloud", "star", "mean30", "state30")
    numbers = ("gpus", "fixed", "price_cloud", "star", "mean30")
    columns = [(view.t(f"col.{name}"), name in numbers) for name in names]
    return table(
        columns, [_group_row(each, economy.currency, view, on=each.name == shown) for each in economy.groups]
    )


def _group_row(group: GroupEconomy, currency: str, view: View, *, on: bool) -> Sequence[Component | str]:
    kept = {**dict(view.inputs), GROUP: group.name}
    name = html.A(
        group.name,
        href=view.link("breakeven", **kept),
        className="name on" if on else "name",
        **({"aria-current": "true"} if on else {}),
    )
    return [
        name,
        view.t(f"kind.{group.kind}"),
        wording.number(group.gpus),
        wording.money(group.fixed_per_gpu_hour, currency, 2),
        wording.money(group.cloud_price, currency, 2),
        line(group, view),
        wording.percent(group.utilisation_ratio),
        view.t(f"decision_short.{group.verdict}") if group.has_line else wording.UNKNOWN,
    ]


def prices(group: GroupEconomy, view: View) -> Component:
    """What was paid and what is asked, with what makes it believable."""
    names = ("price", "unit", "date", "source", "term", "tax")
    columns = [(view.t(f"col.{name}"), name == "price") for name in names]
    return table(columns, [_price(tag, view) for tag in group.prices])


def _price(tag: PriceTag, view: View) -> Sequence[Component | str]:
    side = view.t("econ.own" if tag.side == "own" else "econ.cloud")
    age: list[Component] = []
    if tag.age_days is not None and tag.age_days >= 0:
        words = view.t("econ.price_stale" if tag.stale else "econ.price_days", days=tag.age_days)
        age = [html.Span(words, className="badge stale" if tag.stale else "badge")]
    tax = (
        wording.UNKNOWN if tag.tax_included is None else view.t(f"tax.{'yes' if tag.tax_included else 'no'}")
    )
    return [
        wording.money(tag.value, tag.currency, 2 if tag.value < 1000 else 0),
        f"{side} · {view.code('input', tag.unit)}",
        html.Span([_day(tag.date, view), *age], className="mfu-c"),
        tag.source or wording.UNKNOWN,
        tag.term or wording.UNKNOWN,
        tax,
    ]


def _day(date: str | None, view: View) -> str:
    return wording.UNKNOWN if date is None else wording.written_day(date, view.lang)


def notes(economy: Economy, group: GroupEconomy, view: View) -> Component:
    """What must be known beside the figures, the weightiest first."""
    told = (
        [html.Li([_mark("info"), html.Span(view.t("note.example"))])]
        if economy.status.price_is_example
        else []
    )
    told += [_note(each, economy.currency, view) for each in (*economy.notes, *group.notes)]
    if not told:
        return html.P(view.t("econ.notes_none"), className="empty-s")
    return html.Ul(told, className="findings")


def _mark(level: str) -> Component:
    return html.Span(className=f"ic ic-{level} sev-{level}", **{"aria-hidden": "true"})


def _note(note: FindingInfo, currency: str, view: View) -> Component:
    key = f"note.{note.code}"
    words = note.text
    if view.knows(key):
        values = {
            name: _note_value(name, note.values.get(name), currency, view) for name in view.placeholders(key)
        }
        words = view.t(key, **values)
    mark = (
        "warning" if note.code in ("price_stale", "tax_mixed", "fixed_unusual", "short_history") else "info"
    )
    return html.Li([_mark(mark), html.Span(words)])


def _note_value(name: str, value: Any, currency: str, view: View) -> str:
    if name == "settings":
        return ", ".join(view.code("input", each) for each in value or ())
    if name == "factor":
        return view.code("factor", str(value))
    if name == "date" and isinstance(value, str):
        return _day(value, view)
    if name in MONEY_VALUES:
        return wording.money(value, currency, 2)
    if name.endswith("_ratio"):
        return wording.percent(value)
    return f"{value:.4g}" if isinstance(value, float) else wording.UNKNOWN if value is None else str(value)
