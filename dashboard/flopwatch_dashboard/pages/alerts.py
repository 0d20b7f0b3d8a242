"""The Alerts page: what is active, and what was."""

from collections.abc import Sequence
from typing import Any

from dash import html
from dash.development.base_component import Component

from flopwatch.query import AlertRow, Alerts, Query
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import parts, phrases
from flopwatch_dashboard.components.tables import table
from flopwatch_dashboard.page import Page
from flopwatch_dashboard.view import View

CARDS = ("active", "history")


def skeleton() -> list[Component]:
    """The page without data."""
    return [
        parts.card(
            f"alerts-{name}", html.Div(id=f"alerts-{name}", className="scroll", tabIndex="0"), kind="list"
        )
        for name in CARDS
    ]


def render(query: Query, view: View, _item: str) -> dict[str, Any]:
    """Both tables."""
    alerts = query.alerts(view.asked)
    return {
        "active-head": parts.head("alerts-active", view.t("alerts.active"), view.t("alerts.active_sub")),
        "history-head": parts.head(
            "alerts-history", view.t("alerts.history"), view.t("alerts.history_sub", range=view.range_name)
        ),
        "active": _active(alerts, view),
        "history": _history(alerts, view),
    }


def _active(alerts: Alerts, view: View) -> Component:
    if not alerts.active:
        return parts.next_step(view.t("empty.no_alerts"))
    columns = [_title(view, key) for key in ("severity", "state", "alert", "rule", "since")]
    rows = [
        [
            *_first(row, view),
            wording.moment(row.active_since_seconds, alerts.status.time_zone),
            _lasted(row.active_since_seconds, alerts.status.now_seconds, view),
        ]
        for row in alerts.active
    ]
    return table([*columns, (view.t("col.for"), True)], rows)


def _history(alerts: Alerts, view: View) -> Component:
    if not alerts.history:
        return parts.next_step(view.t("empty.no_history"))
    columns = [
        _title(view, key) for key in ("severity", "state", "alert", "rule", "since", "ended", "reason")
    ]
    zone = alerts.status.time_zone
    rows = [
        [
            *_first(row, view),
            wording.moment(row.active_since_seconds, zone),
            wording.moment(row.resolved_seconds, zone),
            row.resolved_reason or "",
            _lasted(row.active_since_seconds, row.resolved_seconds, view),
        ]
        for row in alerts.history
    ]
    return table([*columns, (view.t("col.for"), True)], rows)


def _title(view: View, key: str) -> tuple[str, bool]:
    return view.t(f"col.{key}"), False


def _first(row: AlertRow, view: View) -> Sequence[Component | str]:
    """Severity, state, what it says with a link to its job, and the rule."""
    words = phrases.alert(row, view)
    job = row.labels.get("job_id")
    said = html.A(words, href=view.link(f"jobs/{job}")) if job else html.Span(words)
    state = view.t(f"alert_state.{row.state}")
    if row.stale:
        state = f"{state} · {view.t('alerts.stale')}"
    rule = html.Span(row.rule, className="badge", title=phrases.labels(row.labels))
    return parts.severity(row.severity, view), state, said, rule


def _lasted(start: float | None, end: float | None, view: View) -> str:
    return view.duration(None if start is None or end is None else end - start)


PAGE = Page(
    name="alerts",
    path="alerts",
    icon="alerts",
    skeleton=skeleton,
    render=render,
    parts={
        **{name: (f"alerts-{name}", "children") for name in CARDS},
        **{f"{name}-head": (f"alerts-{name}-head", "children") for name in CARDS},
    },
)
