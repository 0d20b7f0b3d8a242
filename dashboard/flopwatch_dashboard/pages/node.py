"""The page of one node: its GPUs and ports now, its health, who used it, and its course over time."""

from collections.abc import Mapping
from typing import Any

from dash import html
from dash.development.base_component import Component

from flopwatch.answers.nodes import NodePage
from flopwatch.query import Query
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import node_head, node_tables, tables
from flopwatch_dashboard.components.item_cards import ItemCards
from flopwatch_dashboard.figures import lines
from flopwatch_dashboard.figures.lines import Line
from flopwatch_dashboard.page import Page
from flopwatch_dashboard.view import View

CARDS = ItemCards(
    page="node",
    graphs=("activity", "power", "heat", "network"),
    lists=("gpus", "ports", "condition", "alerts", "events", "jobs", "ledger"),
)


def skeleton() -> list[Component]:
    """The page without data."""
    cards = CARDS.empty()
    rows = [
        cards["gpus"],
        html.Div([cards["activity"], cards["power"]], className="row two"),
        html.Div([cards["heat"], cards["network"]], className="row two"),
        html.Div([cards["condition"], cards["ports"]], className="row two"),
        html.Div([cards["alerts"], cards["events"]], className="row two"),
        html.Div([cards["jobs"], cards["ledger"]], className="row r1"),
    ]
    return CARDS.skeleton(rows)


def render(query: Query, view: View, item: str) -> dict[str, Any]:
    """Every part of the page from one answer, or where to go when there is no such node."""
    page = query.node(item, view.asked)
    if page is None:
        return {"gone": node_head.gone(view.t("nodes.no_such_node", node=item), view), "body": "hidden"}
    names = {gpu.uuid: str(gpu.index if gpu.index is not None else gpu.slot) for gpu in page.gpus}
    now = page.status.now_seconds
    return {
        "gone": [],
        "body": "stack-v",
        "heading": node_head.of_node(page, view),
        "tiles": node_head.node_tiles(page, view),
        "gpus": node_tables.gpus(page, view),
        "ports": node_tables.ports(page.ports, view),
        "condition": node_tables.condition(page, view),
        "alerts": tables.alert_list(page.alerts, now, view),
        **node_tables.past(page, names, view),
        "ledger": node_tables.where_time_went(page.ledger, view),
        **_figures(page, view),
        **_heads(page, view),
    }


def _figures(page: NodePage, view: View) -> dict[str, Any]:
    series, zone = page.series, view.shown_zone
    ends = {name: lines.at_end(series, name) for name in series.columns}
    figures = {
        "activity": lines.activity(series, None, zone, view),
        "power": lines.amounts(series, _power(ends), zone, view),
        "heat": lines.amounts(series, _heat(ends), zone, view),
        "network": lines.amounts(series, _network(ends), zone, view),
    }
    aria = {
        "activity": view.t("nodes.activity_aria", kernel=wording.percent(ends.get("kernel_active")),
                           tensor=wording.percent(ends.get("tensor_active"))),
        "power": view.t("nodes.power_aria", power=wording.si(ends.get("node_power_watts"), "W")),
        "heat": view.t("nodes.heat_aria", heat=_degrees(ends.get("hottest_celsius"))),
        "network": view.t("nodes.network_aria", sent=wording.si(ends.get("nic_transmit"), "B/s"),
                          received=wording.si(ends.get("nic_receive"), "B/s")),
    }  # fmt: skip
    return {**figures, **{f"{name}-aria": words for name, words in aria.items()}}


def _power(ends: Mapping[str, float | None]) -> list[Line]:
    shown = wording.si(ends.get("node_power_watts"), "W")
    return [
        Line(
            column="node_power_watts",
            color="second",
            label_color="secondtext",
            shown=shown,
            hover="%{y:.4s}W",
        )
    ]


def _heat(ends: Mapping[str, float | None]) -> list[Line]:
    shown = _degrees(ends.get("hottest_celsius"))
    return [
        Line(
            column="hottest_celsius",
            color="tensor",
            label_color="tensortext",
            shown=shown,
            hover="%{y:.0f} °C",
        )
    ]


def _degrees(value: float | None) -> str:
    return wording.UNKNOWN if value is None else f"{value:.0f} °C"


def _network(ends: Mapping[str, float | None]) -> list[Line]:
    pairs = (("nic_transmit", "second"), ("nic_receive", "tensor"))
    return [
        Line(column=column, color=token, label_color=f"{token}text", shown=wording.si(ends.get(column), "B/s"),
             hover="%{y:.3s}B/s")
        for column, token in pairs
    ]  # fmt: skip


def _heads(page: NodePage, view: View) -> dict[str, list[Component]]:
    level = view.t("nodes.level", step=view.duration(page.series.step_seconds))
    subs = {
        "gpus": view.t("nodes.gpus_sub"), "activity": level, "power": level, "heat": level, "network": level,
        "ports": view.t("nodes.ports_sub"), "jobs": view.t("nodes.in_range", range=view.shown_range),
        "ledger": view.t("nodes.in_range", range=view.shown_range),
        "events": view.t("nodes.in_range", range=view.shown_range),
    }  # fmt: skip
    return CARDS.heads(subs, view)


PAGE = Page(
    name="node",
    path="nodes",
    item=True,
    skeleton=skeleton,
    render=render,
    parts=CARDS.parts(),
)
