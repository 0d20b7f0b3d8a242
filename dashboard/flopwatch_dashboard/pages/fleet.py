"""The Fleet page: verdict, tiles, trend, where the time went, who, alerts."""

from dataclasses import replace
from typing import Any

from dash import html
from dash.development.base_component import Component

from flopwatch.query import Fleet, Query
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import fleet_tiles, parts, tables, team_tiles, verdict
from flopwatch_dashboard.figures import daily, lines, waterfall
from flopwatch_dashboard.page import Page
from flopwatch_dashboard.view import View

GRAPHS = ("daily", "fall", "activity")
CARDS = (*GRAPHS, "top", "alerts")


def skeleton() -> list[Component]:
    """The page without data."""
    first = [parts.card(f"fleet-{name}", parts.graph(f"fleet-{name}-g")) for name in ("daily", "fall")]
    second = [
        parts.card("fleet-activity", parts.graph("fleet-activity-g")),
        parts.card("fleet-top", html.Div(id="fleet-top", className="scroll", tabIndex="0")),
        parts.card("fleet-alerts", html.Div(id="fleet-alerts", className="scroll", tabIndex="0")),
    ]
    return [
        html.Div(id="fleet-verdict", className="summary", role="status"),
        html.Section(id="fleet-tiles", className="kpis"),
        html.Div(first, className="row r1"),
        html.Div(second, className="row r2"),
    ]


def render(query: Query, view: View, _item: str) -> dict[str, Any]:
    """Every part of the page from one answer."""
    fleet = query.fleet(view.asked)
    zone = fleet.status.time_zone
    target = fleet.mfu_target_ratio
    parted = _of_team(fleet)
    shown: dict[str, Any] = {
        "verdict": [*_verdict(fleet, view), *_team_notes(fleet, view)],
        "tone": f"summary tone-{verdict.tone(fleet.verdict.code)}",
        "tiles": fleet_tiles.tiles_of(fleet, view)
        if fleet.team is None
        else team_tiles.tiles_of(fleet, view),
        "daily": daily.daily(parted, view),
        "daily-aria": daily.description(parted, view),
        "fall": waterfall.waterfall(parted.ledger_today, fleet.status.currency, view),
        "fall-aria": waterfall.description(parted.ledger_today, view),
        "activity": lines.activity(fleet.series, target, zone, view),
        "activity-aria": _activity_words(fleet, view),
        "top": _top(parted, view),
        "alerts": tables.alert_list(fleet.alerts, fleet.status.now_seconds, view),
    }
    return {**shown, **_heads(fleet, view)}


def _of_team(fleet: Fleet) -> Fleet:
    """The page with the chosen team's ledger and days in place of the fleet's; its line stays the fleet's."""
    team = fleet.team
    if team is None:
        return fleet
    verdict_then = replace(fleet.verdict, mean_30d_ratio=team.mean_30d_ratio)
    return replace(fleet, ledger_today=team.ledger, days=team.days, verdict=verdict_then)


def _team_notes(fleet: Fleet, view: View) -> list[Component]:
    """What of the page is the chosen team's and what stays the fleet's."""
    if view.team is None:
        return []
    if fleet.team is None:
        return [html.Span(view.t("team.no_ledger", team=view.team), className="sum-d")]
    free = wording.hours(fleet.team.nobody_gpu_milliseconds)
    return [html.Span(view.t("team.verdict", team=view.team, hours=free), className="sum-d", id="fleet-team")]


def _verdict(fleet: Fleet, view: View) -> list[Component]:
    """The verdict, or what to do first when no node has reported."""
    if any(cluster.gpus for cluster in fleet.status.clusters):
        return verdict.sentence(fleet, view)
    return [
        parts.icon("info"),
        html.B(view.t("empty.no_nodes")),
        html.Span([view.t("empty.no_nodes_next"), " ", html.Code(view.t("empty.no_nodes_command"))]),
        html.Span([view.t("empty.demo_next"), " ", html.Code(view.t("empty.demo_command"))]),
    ]


def _top(fleet: Fleet, view: View) -> Component:
    """The jobs that wasted most; without any capacity nothing can be said about waste."""
    if not fleet.ledger_today.capacity_gpu_milliseconds:
        return parts.next_step(view.t("series.no_data"))
    return tables.top_jobs(fleet.top_jobs, view, 6 if view.kiosk or view.height < 900 else 9)


def _top_title(view: View) -> str:
    if view.team is None:
        return view.t("fleet.top")
    return view.t("fleet.top_team", team=view.team, range=view.range_label)


def _activity_words(fleet: Fleet, view: View) -> str:
    ends = {name: lines.at_end(fleet.series, f"{name}_active") for name in ("kernel", "tensor")}
    target = fleet.mfu_target_ratio
    return view.t(
        "fleet.activity_aria",
        range=view.shown_range,
        kernel=wording.percent(ends["kernel"]),
        tensor=wording.percent(ends["tensor"]),
        mfu=wording.percent(lines.at_end(fleet.series, "mfu")),
        target=view.t("target.none") if target is None else wording.line_percent(target),
    )


def _fall_sub(fleet: Fleet, view: View) -> str:
    if fleet.team is not None:
        return view.t("team.fall_sub", range=view.range_label)
    return view.t("fleet.fall_sub" if fleet.status.price_per_gpu_hour is None else "fleet.fall_sub_money")


def _heads(fleet: Fleet, view: View) -> dict[str, list[Component]]:
    csv, all_ = view.t("frame.csv"), view.t("frame.view_all")
    team = fleet.team
    days = parts.download(csv, view.export("days"), view.t("frame.csv_days"))
    return {
        "daily-head": parts.head(
            "fleet-daily",
            view.t("fleet.daily") if team is None else view.t("team.daily", team=team.team),
            view.t("fleet.daily_sub", days=len(fleet.days), zone=view.site_zone),
            days,
        ),
        "fall-head": parts.head(
            "fleet-fall",
            view.t("fleet.fall") if team is None else view.t("team.fall", team=team.team),
            _fall_sub(fleet, view),
            parts.download(csv, view.export("ledger"), view.t("fleet.fall")),
        ),
        "activity-head": parts.head(
            "fleet-activity",
            view.t("fleet.activity"),
            view.t("fleet.activity_sub" if view.team is None else "team.activity_sub"),
            parts.save_csv("fleet-activity-g", view),
        ),
        "top-head": parts.head("fleet-top", _top_title(view), "", parts.link(all_, view.link("jobs"))),
        "alerts-head": parts.head(
            "fleet-alerts", view.t("fleet.alerts"), "", parts.link(all_, view.link("alerts"))
        ),
    }


PAGE = Page(
    name="fleet",
    path="",
    icon="fleet",
    skeleton=skeleton,
    render=render,
    parts={
        "verdict": ("fleet-verdict", "children"),
        "tone": ("fleet-verdict", "className"),
        "tiles": ("fleet-tiles", "children"),
        "top": ("fleet-top", "children"),
        "alerts": ("fleet-alerts", "children"),
        **{name: (f"fleet-{name}-g", "figure") for name in GRAPHS},
        **{f"{name}-aria": (f"fleet-{name}-g-wrap", "aria-label") for name in GRAPHS},
        **{f"{name}-head": (f"fleet-{name}-head", "children") for name in CARDS},
    },
)
