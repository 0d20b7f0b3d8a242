"""Who changed what: the collector's book of changes and sign-ins, for those who may change things."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from dash import ClientsideFunction, Dash, Input, Output, dcc, html
from dash.development.base_component import Component
from dash.exceptions import PreventUpdate

from flopwatch.query import Query, Status
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import alert_desk, parts
from flopwatch_dashboard.components.boxes import Box, box
from flopwatch_dashboard.components.tables import table
from flopwatch_dashboard.page import Page
from flopwatch_dashboard.threaded import threaded
from flopwatch_dashboard.view import View, from_browser

MOST_LINES = 500
BOXES = ("by", "what")
NAMED = ("signed in", "signed out", "sign-in refused")
"""Actions that have words of each language."""
ANEW_SECONDS = 60.0
"""The book is asked anew this often."""


def skeleton() -> list[Component]:
    """The page without data."""
    lines = html.Div(id="audit-lines", className="scroll", tabIndex="0", role="status")
    return [
        dcc.Store(id="audit-asked"),
        dcc.Store(id="audit-told"),
        html.Div(id="audit-bar", className="al-bar"),
        html.Div(id="audit-why", className="al-why", role="note"),
        parts.card("audit", lines, kind="list"),
    ]


def render(query: Query, view: View, _item: str) -> dict[str, Any]:
    """What the browser is to ask the collector; who may not ask is told why."""
    status = query.status()
    may = view.viewer.read_only is None
    inputs = dict(view.inputs)
    return {
        "bar": [html.H1(view.t("audit.title")), *(_box(name, inputs, view) for name in BOXES if may)],
        "why": alert_desk.read_only(view),
        "head": parts.head("audit", view.t("audit.lines"), view.t("audit.sub", range=view.shown_range)),
        "asked": {"path": _path(inputs, status, view), "zone": view.shown_zone} if may else None,
    }


def _box(name: str, inputs: Mapping[str, str], view: View) -> Component:
    return box(
        Box(
            name=f"audit.{name}",
            title=view.t(f"audit.{name}"),
            value=inputs.get(f"audit.{name}", ""),
            base="",
            placeholder=view.t(f"audit.{name}_hint"),
            mode="text",
            kind="al-find",
        )
    )


def _path(inputs: Mapping[str, str], status: Status, view: View) -> str:
    """The question: the range that is shown, to the minute, and what is typed."""
    end = status.now_seconds // ANEW_SECONDS * ANEW_SECONDS if view.end is None else view.end
    asked = {"limit": MOST_LINES, "from": f"{end - view.range_seconds:.0f}"}
    if view.end is not None:
        asked["to"] = f"{view.end:.0f}"
    typed = {name: inputs[f"audit.{name}"] for name in BOXES if inputs.get(f"audit.{name}")}
    if "what" in typed:
        typed["what"] = _known(typed["what"], view)
    return f"/api/v1/audit?{urlencode({**asked, **typed})}"


def _known(words: str, view: View) -> str:
    """The collector's own word for an action that is typed in the reader's language, else what is typed."""
    return next((one for one in NAMED if words.strip() == view.t(f"audit.action.{one}")), words)


def lines(told: Mapping[str, Any], view: View) -> Component:
    """The collector's answer as a table, or why there is none."""
    body = told.get("body")
    if not told.get("ok") or not isinstance(body, Mapping):
        message = body.get("message") if isinstance(body, Mapping) else None
        words = view.t("audit.failed", message=message) if message else view.t("audit.lost")
        return html.P(words, className="empty-t")
    entries = body["entries"]
    if not entries:
        return html.P(view.t("audit.none"), className="empty-t")
    columns = [(view.t(f"audit.col.{name}"), False) for name in ("when", "by", "from", "what", "content")]
    shown = table(columns, [_line(one, str(told["zone"]), view) for one in entries])
    more = body["matching"] - len(entries)
    return html.Div([shown, html.P(view.t("audit.more", n=more), className="al-t")]) if more else shown


def _line(one: Mapping[str, Any], zone: str, view: View) -> list[Component | str]:
    action = one["action"]
    key = f"audit.action.{action}"
    words = view.t(key) if view.knows(key) else action
    return [
        wording.moment(one["seconds"], zone, view.lang),
        one["by"],
        one["address"],
        html.Span(words, className="al-what"),
        html.Code(one["subject"], className="al-word"),
    ]


def extend(app: Dash) -> None:
    """The browser asks the collector with the reader's own right; here the answer becomes words."""
    app.clientside_callback(
        ClientsideFunction("flopwatch", "audit"),
        Output("audit-told", "data"),
        Input("audit-asked", "data"),
        prevent_initial_call=True,
    )

    @app.callback(
        Output("audit-lines", "children"),
        Input("audit-told", "data"),
        Input("ui", "data"),
        prevent_initial_call=True,
    )
    @threaded
    def answered(told: Any, ui: Any) -> Component:
        if not isinstance(told, Mapping) or not isinstance(ui, dict):
            raise PreventUpdate
        return lines(told, from_browser(ui, "/"))


PAGE = Page(
    name="audit",
    path="audit",
    under="alerts",
    skeleton=skeleton,
    render=render,
    parts={
        "bar": ("audit-bar", "children"),
        "why": ("audit-why", "children"),
        "head": ("audit-head", "children"),
        "asked": ("audit-asked", "data"),
    },
    extend=extend,
)
