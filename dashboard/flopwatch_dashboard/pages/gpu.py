"""The page of one GPU: every signal over time, its health, the jobs it worked for."""

from typing import Any

from dash import html
from dash.development.base_component import Component

from flopwatch.answers.nodes import GpuPage
from flopwatch.query import Query
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import node_head, node_tables, tables
from flopwatch_dashboard.components.boxes import facts
from flopwatch_dashboard.components.item_cards import ItemCards
from flopwatch_dashboard.components.node_words import value_words
from flopwatch_dashboard.figures import lines
from flopwatch_dashboard.figures.lines import Line
from flopwatch_dashboard.page import Page
from flopwatch_dashboard.view import View

CARDS = ItemCards(
    page="gpu",
    graphs=("activity", "power", "heat", "memory", "clocks"),
    lists=("details", "alerts", "jobs", "events"),
)
ACTIVE = (
    ("kernel_active", "kernel"), ("sm_active", "second"), ("tensor_active", "tensor"), ("dram_active", "mfu"),
)  # fmt: skip
COUNTERS = ("ecc_corrected", "ecc_uncorrected", "remapped_rows", "recovery_action", "process_count")


def skeleton() -> list[Component]:
    """The page without data."""
    cards = CARDS.empty()
    rows = [
        cards["activity"],
        html.Div([cards["power"], cards["heat"]], className="row two"),
        html.Div([cards["memory"], cards["clocks"]], className="row two"),
        html.Div([cards["details"], cards["alerts"]], className="row two"),
        html.Div([cards["jobs"], cards["events"]], className="row two"),
    ]
    return CARDS.skeleton(rows)


def render(query: Query, view: View, item: str) -> dict[str, Any]:
    """Every part of the page from one answer, or where to go when there is no such GPU."""
    page = query.gpu(item, view.asked)
    if page is None:
        return {"gone": node_head.gone(view.t("nodes.no_such_gpu", gpu=item), view), "body": "hidden"}
    now = page.status.now_seconds
    return {
        "gone": [],
        "body": "stack-v",
        "heading": node_head.of_gpu(page, view),
        "tiles": node_head.gpu_tiles(page, view),
        "details": _facts(page, view),
        "alerts": tables.alert_list(page.alerts, now, view),
        **node_tables.past(page, {}, view),
        **_figures(page, view),
        **_heads(page, view),
    }


def _facts(page: GpuPage, view: View) -> list[Component]:
    row = page.row
    counts = [
        (view.t(f"nodes.count.{name}"), wording.UNKNOWN if (value := row.values.get(name)) is None
         else wording.number(value), "")
        for name in COUNTERS
    ]  # fmt: skip
    held = ", ".join(view.t(f"nodes.throttle.{name}") for name in row.throttles)
    clock = value_words("sm_clock_hertz", row.max_sm_clock_hertz)
    seen = wording.moment(row.sample_seconds, view.shown_zone, view.lang)
    told = [
        (view.t("nodes.held_down"), held or view.t("nodes.by_nothing"), ""),
        (view.t("nodes.most_clock"), clock, ""),
        (view.t("nodes.newest"), seen, ""),
        *counts,
    ]
    past = [
        (view.t("nodes.in_slot"), uuid, _tenure(begin, end, view))
        for uuid, begin, end in page.slot_history[1:]
    ]
    return [facts([*told, *past])]


def _tenure(begin: float, end: float | None, view: View) -> str:
    until = "" if end is None else wording.moment(end, view.shown_zone, view.lang)
    return f"{wording.moment(begin, view.shown_zone, view.lang)} … {until}"


def _figures(page: GpuPage, view: View) -> dict[str, Any]:
    series, zone = page.series, view.shown_zone
    ends = {name: lines.at_end(series, name) for name in series.columns}

    def line(column: str, color: str, shown: str, hover: str) -> Line:
        return Line(column=column, color=color, label_color=f"{color}text", shown=shown, hover=hover)

    active = [line(name, color, wording.percent(ends.get(name), 0), "%{y:.1%}") for name, color in ACTIVE]
    heat = [
        line(name, color, value_words("temperature_celsius", ends.get(name)), "%{y:.0f} °C")
        for name, color in (("temperature_celsius", "second"), ("memory_temperature_celsius", "tensor"))
    ]
    clocks = [
        line(name, color, wording.si(ends.get(name), "Hz", 2), "%{y:.4s}Hz")
        for name, color in (("sm_clock_hertz", "mfu"), ("memory_clock_hertz", "kernel"))
    ]
    power = [line("power_watts", "second", wording.si(ends.get("power_watts"), "W", 0), "%{y:.0f} W")]
    memory = [line("memory_used_ratio", "mfu", wording.percent(ends.get("memory_used_ratio"), 0), "%{y:.1%}")]
    figures = {
        "activity": lines.ratios(series, active, None, zone, view),
        "power": lines.amounts(series, power, zone, view),
        "heat": lines.amounts(series, heat, zone, view),
        "memory": lines.ratios(series, memory, None, zone, view),
        "clocks": lines.amounts(series, clocks, zone, view),
    }
    shown = {"activity": active, "power": power, "heat": heat, "memory": memory, "clocks": clocks}
    aria = {
        f"{name}-aria": view.t(
            "nodes.course_aria",
            title=view.t(f"nodes.card.{name}"),
            ends=", ".join(f"{view.t('series.' + each.column)} {each.shown}" for each in found),
        )
        for name, found in shown.items()
    }
    return {**figures, **aria}


def _heads(page: GpuPage, view: View) -> dict[str, list[Component]]:
    level = view.t("nodes.level", step=view.duration(page.series.step_seconds))
    ranged = view.t("nodes.in_range", range=view.shown_range)
    subs = {**dict.fromkeys(CARDS.graphs, level), "jobs": ranged, "events": ranged, "alerts": ranged}
    return CARDS.heads(subs, view)


PAGE = Page(
    name="gpu",
    path="gpus",
    under="nodes",
    item=True,
    skeleton=skeleton,
    render=render,
    parts=CARDS.parts(),
)
