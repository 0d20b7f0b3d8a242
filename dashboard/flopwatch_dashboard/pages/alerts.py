"""The Alerts page: what is active and what was, what is silenced, the rules; and what people do about alerts."""

from collections.abc import Mapping
from typing import Any

from dash import Dash, Input, Output, dcc, html
from dash.development.base_component import Component
from dash.exceptions import PreventUpdate

from flopwatch.query import Alerts, Query
from flopwatch_dashboard.components import alert_desk, alert_rules, alert_tables, parts
from flopwatch_dashboard.components.alert_choice import (
    GROUPINGS,
    SEVERITIES,
    Choice,
    address,
    chosen,
    fitting,
)
from flopwatch_dashboard.components.boxes import Box, box
from flopwatch_dashboard.page import Page
from flopwatch_dashboard.threaded import threaded
from flopwatch_dashboard.view import View, from_browser

CARDS = ("active", "silences", "history", "rules")
REHEARSED_SECONDS = 604_800


def skeleton() -> list[Component]:
    """The page without data."""
    cards = {
        name: parts.card(
            f"alerts-{name}",
            *([html.Div(id="alerts-dry", className="al-dry-box")] if name == "rules" else []),
            html.Div(id=f"alerts-{name}", className="scroll", tabIndex="0"),
            kind=f"list al-{name}",
        )
        for name in CARDS
    }
    side = html.Div([html.Div(id="alerts-desk", className="al-desk"), cards["silences"]], className="al-side")
    return [
        dcc.Store(id="alerts-rehearsed"),
        html.Div(id="alerts-bar", className="al-bar"),
        html.Div(id="alerts-why", className="al-why", role="note"),
        html.Div([cards["active"], side], className="al-grid"),
        cards["history"],
        cards["rules"],
    ]


def render(query: Query, view: View, _item: str) -> dict[str, Any]:
    """Every part of the page."""
    alerts, choice = query.alerts(view.asked), chosen(view)
    return {
        "bar": _bar(alerts, choice, view),
        "why": alert_desk.read_only(view),
        "desk": alert_desk.desk(alerts, choice, view),
        "active": alert_tables.active(alerts, choice, view),
        "silences": alert_desk.silences(alerts, view),
        "history": alert_tables.history(alerts, choice, view),
        "rules": alert_rules.rules(alerts, view),
        **_heads(alerts, choice, view),
    }


def _bar(alerts: Alerts, choice: Choice, view: View) -> list[Component]:
    """Filter by severity and words, grouping, and all of it as a table."""
    counts = {level: sum(row.severity == level for row in alerts.active) for level in SEVERITIES}
    every = html.Span(f"{view.t('alerts.all')} {len(alerts.active)}")
    levels = [
        _pill(every, "alerts.severity", None, on=choice.severity is None, view=view),
        *(
            _pill(
                parts.severity(level, view, counts[level]), "alerts.severity", level, on=choice.severity == level,
                view=view,
            )
            for level in SEVERITIES
        ),
    ]  # fmt: skip
    groupings = [
        _pill(
            html.Span(view.t(f"alerts.group.{name}")), "alerts.group", None if name == "none" else name,
            on=choice.grouping == name, view=view,
        )
        for name in GROUPINGS
    ]  # fmt: skip
    find = box(
        Box(
            name="alerts.find",
            title=view.t("alerts.find"),
            value=choice.find,
            base="",
            placeholder=view.t("alerts.find_hint"),
            mode="text",
            kind="al-find",
        )
    )
    return [
        html.Nav(levels, className="pills", **{"aria-label": view.t("col.severity")}),
        html.Nav(groupings, className="pills", **{"aria-label": view.t("alerts.group")}),
        find,
        alert_tables.download(alerts, view),
    ]


def _pill(words: Component, name: str, value: str | None, *, on: bool, view: View) -> Component:
    extra = {"aria-current": "true"} if on else {}
    return html.A(words, href=address(view, {name: value}), className="pill on" if on else "pill", **extra)


def _heads(alerts: Alerts, choice: Choice, view: View) -> dict[str, list[Component]]:
    shown = len(fitting(alerts.active, choice, view))
    some = view.t("alerts.shown", shown=shown, all=len(alerts.active))
    fresh = address(view, {"do.silence": "new"})
    may = view.viewer.read_only is None
    return {
        "active-head": parts.head(
            "alerts-active", view.t("alerts.active"), some if choice.filters else view.t("alerts.active_sub")
        ),
        "silences-head": parts.head(
            "alerts-silences",
            view.t("alerts.silences"),
            view.t("alerts.silences_sub"),
            *([parts.link(view.t("alerts.new_silence"), fresh)] if may else []),
        ),
        "history-head": parts.head(
            "alerts-history",
            view.t("alerts.history"),
            view.t("alerts.history_sub", range=view.shown_range),
            *([parts.link(view.t("alerts.audit"), view.link("audit"))] if may else []),
        ),
        "rules-head": parts.head(
            "alerts-rules", view.t("alerts.rules"), view.t("alerts.rules_sub"), *_ask(alerts, view)
        ),
    }


def _ask(alerts: Alerts, view: View) -> list[Component]:
    """The button that asks the collector for the dry run; a dashboard on its own cannot."""
    if not view.viewer.has_desk or view.viewer.teams:
        return []
    about = {
        "data-rehearse": f"/api/v1/alerts/rehearsal?seconds={REHEARSED_SECONDS}",
        "data-zone": alerts.status.time_zone,
        "data-waiting": view.t("alerts.rehearsing"),
        "data-failed": view.t("desk.failed", message="{message}"),
        "data-lost": view.t("desk.lost"),
    }
    return [html.Button(view.t("alerts.rehearse"), className="more al-rehearse", **about)]


def extend(app: Dash) -> None:
    """The dry run: the browser asks the API for it, and here it becomes words."""

    @app.callback(
        Output("alerts-dry", "children"),
        Input("alerts-rehearsed", "data"),
        Input("ui", "data"),
        prevent_initial_call=True,
    )
    @threaded
    def rehearsed(told: Any, ui: Any) -> list[Component]:
        if not isinstance(told, Mapping) or not isinstance(ui, dict):
            raise PreventUpdate
        return alert_rules.rehearsal(told, from_browser(ui, "/"))


PAGE = Page(
    name="alerts",
    path="alerts",
    icon="alerts",
    skeleton=skeleton,
    render=render,
    parts={
        "bar": ("alerts-bar", "children"),
        "why": ("alerts-why", "children"),
        "desk": ("alerts-desk", "children"),
        **{name: (f"alerts-{name}", "children") for name in CARDS},
        **{f"{name}-head": (f"alerts-{name}-head", "children") for name in CARDS},
    },
    extend=extend,
)
