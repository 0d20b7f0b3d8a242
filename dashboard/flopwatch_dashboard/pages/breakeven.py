"""The Breakeven page: what owning and renting cost, where they meet, what moves that, and what the reader changes."""

from typing import Any

from dash import html
from dash.development.base_component import Component

from flopwatch.answers.economy import Economy, GroupEconomy
from flopwatch.query import Query
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import (
    breakeven_head,
    breakeven_tables,
    cost_file,
    cost_form,
    cost_inputs,
    cost_saving,
    parts,
    run_compare,
    run_planner,
)
from flopwatch_dashboard.components.cost_inputs import Answered, Typed
from flopwatch_dashboard.figures import cost_curves, demand, sustained, tornado
from flopwatch_dashboard.page import Page
from flopwatch_dashboard.view import View

GRAPHS = ("curve", "tornado", "days", "demand")
LISTS = ("form", "gates", "table", "sizes", "efficiency", "groups", "prices", "notes", "plan", "compare")
CARDS = (*GRAPHS, *LISTS)


def skeleton() -> list[Component]:
    """The page without data."""
    cards = {name: parts.card(f"be-{name}", parts.graph(f"be-{name}-g"), kind="plot") for name in GRAPHS}
    for name in LISTS:
        content = html.Div(id=f"be-{name}", className="scroll", tabIndex="0")
        cards[name] = parts.card(f"be-{name}", content, kind=f"list be-{name}-card")
    rows = [
        html.Div([cards["curve"], cards["tornado"]], className="row two"),
        html.Div([cards["days"], cards["demand"]], className="row two"),
        html.Div([cards["gates"], cards["efficiency"]], className="row two"),
        cards["table"],
        html.Div(cards["groups"], id="be-groups-row"),
        html.Div(
            [cards["sizes"], html.Div([cards["prices"], cards["notes"]], className="stack-v be-last")],
            className="row be-small",
        ),
        html.Div([cards["plan"], cards["compare"]], className="row two"),
    ]
    side = html.Div(cards["form"], className="be-side")
    body = [
        html.Section(id="be-tiles", className="kpis"),
        html.Div([side, html.Div(rows, className="stack-v")], className="be-grid"),
    ]
    return [
        html.Div(id="be-verdict", className="summary", role="status"),
        html.Div(id="be-changes", className="be-changes", role="status"),
        html.Div(id="be-saving", className="be-saving"),
        html.Div(id="be-unset"),
        html.Div(body, id="be-body", className="stack-v"),
    ]


def render(query: Query, view: View, _item: str) -> dict[str, Any]:
    """Every part of the page: from the saved costs, and from what was typed where that is allowed."""
    given = cost_inputs.typed(view)
    answered = cost_inputs.ask(query, view, given)
    economy = answered.shown
    group = _group(economy, given)
    shown: dict[str, Any] = {
        "verdict": breakeven_head.verdict(economy, group, view),
        "tone": f"summary tone-{breakeven_head.tone(economy, group)}",
        "changes": breakeven_head.changes(answered, given, group, view),
        "saving": cost_saving.saving(answered, given, view),
        "unset": _unset(economy, view) if group is None else [],
        "body": "hidden" if group is None else "stack-v",
    }
    if group is None:
        return shown
    return {
        **shown,
        "tiles": breakeven_head.tiles_of(economy, group, view),
        **_figures(economy, group, view),
        **_lists(answered, given, group, view),
        "plan": run_planner.planner(economy, group, view),
        "compare": run_compare.compare(query, group, view),
        **_heads(economy, group, view),
        "groups-row": "" if len(economy.groups) > 1 else "hidden",
    }


def _group(economy: Economy, given: Typed) -> GroupEconomy | None:
    """The group that is looked at: the one asked for, else the one that costs most; None without costs."""
    named = [group for group in economy.groups if group.name == given.group]
    if named:
        return named[0]
    return max(
        economy.groups,
        key=lambda group: (group.has_line, group.fixed_per_gpu_hour * (group.gpus or 1)),
        default=None,
    )


def _unset(economy: Economy, view: View) -> list[Component]:
    """What to do first: give costs, or, where the source has no ledger, ask the command."""
    if breakeven_head.without_ledger(economy):
        step = (view.t("econ.unavailable_next"), "flopwatch breakeven --costs costs.toml --utilisation 0.7")
        words = parts.next_step(view.t("econ.unavailable_text"), step)
        return [html.Section(words, className="card lone be-unset")]
    text = cost_file.example()
    link = html.A(
        [parts.icon("down"), html.Span(view.t("econ.download_toml"))],
        href=cost_file.address(text, "application/toml"),
        download="costs.toml",
        className="more",
    )
    words = [
        html.P(view.t("econ.unset_text"), className="empty-t"),
        html.P(view.t("econ.unset_first"), className="empty-s"),
        html.P(view.t("econ.unset_next"), className="empty-s"),
        html.Pre(html.Code(text)),
        link,
    ]
    return [html.Section(words, className="card lone be-unset")]


def _figures(economy: Economy, group: GroupEconomy, view: View) -> dict[str, Any]:
    currency, days = economy.currency, group.days or economy.days
    return {
        "days": sustained.sustained(group, days, view),
        "days-aria": sustained.description(group, days, view),
        "curve": cost_curves.cost_curves(group, currency, view),
        "curve-aria": cost_curves.description(group, currency, view),
        "tornado": tornado.tornado(group, view),
        "tornado-aria": tornado.description(group, view),
        "demand": demand.demand(group, view),
        "demand-aria": demand.description(group, view),
    }


def _lists(answered: Answered, given: Typed, group: GroupEconomy, view: View) -> dict[str, Any]:
    economy = answered.shown
    named = any(entry.name.startswith(f"{group.name}.") for entry in economy.inputs)
    return {
        "form": cost_form.form(answered, given, group.name if named else "", view),
        "gates": breakeven_tables.gates(group, view),
        "table": breakeven_tables.price_table(group, economy.currency, view),
        "sizes": breakeven_tables.sizes(group, economy.currency, view),
        "efficiency": breakeven_tables.efficiency(group, economy.currency, view),
        "groups": breakeven_tables.groups(economy, group.name, view),
        "prices": breakeven_tables.prices(group, view),
        "notes": breakeven_tables.notes(economy, group, view),
    }


def _heads(economy: Economy, group: GroupEconomy, view: View) -> dict[str, list[Component]]:
    info = group.efficiency
    basis = "" if group.demand is None else view.t(f"demand.{group.demand.basis}")
    fleet = view.line(economy.u_star) if economy.has_line else wording.UNKNOWN
    subs = {
        "form": view.t("econ.form_sub", currency=economy.currency),
        "curve": view.t("econ.curve_sub"),
        "tornado": view.t("econ.tornado_sub"),
        "days": view.t("econ.days_sub"),
        "demand": view.t("econ.demand_sub", basis=basis) if basis else "",
        "gates": view.t("econ.gates_sub"),
        "table": view.t("econ.table_sub"),
        "sizes": view.t("econ.sizes_sub"),
        "efficiency": view.t(
            "econ.efficiency_sub",
            ratio=wording.number(info.ratio, 3),
            basis=view.t(f"rho.{info.basis}"),
            coverage=wording.percent(info.coverage_ratio, 0),
        ),
        "groups": view.t("econ.groups_sub", line=fleet),
        "prices": view.t("econ.prices_sub"),
        "notes": "",
        "plan": view.t("econ.plan_sub"),
        "compare": view.t("econ.compare_sub"),
    }
    return {
        f"{name}-head": parts.head(f"be-{name}", view.t(f"econ.{name}"), sub) for name, sub in subs.items()
    }


PAGE = Page(
    name="breakeven",
    path="breakeven",
    icon="breakeven",
    skeleton=skeleton,
    render=render,
    parts={
        "verdict": ("be-verdict", "children"),
        "tone": ("be-verdict", "className"),
        "changes": ("be-changes", "children"),
        "saving": ("be-saving", "children"),
        "unset": ("be-unset", "children"),
        "body": ("be-body", "className"),
        "tiles": ("be-tiles", "children"),
        "groups-row": ("be-groups-row", "className"),
        **{name: (f"be-{name}-g", "figure") for name in GRAPHS},
        **{f"{name}-aria": (f"be-{name}-g-wrap", "aria-label") for name in GRAPHS},
        **{name: (f"be-{name}", "children") for name in LISTS},
        **{f"{name}-head": (f"be-{name}-head", "children") for name in CARDS},
    },
)
