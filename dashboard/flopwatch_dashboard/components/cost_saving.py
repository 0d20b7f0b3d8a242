"""Saving the costs that were typed for everyone, and who saved those that count."""

import json

from dash import html
from dash.development.base_component import Component

from flopwatch.answers.economy import CostInput, SavedCosts
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import parts
from flopwatch_dashboard.components.cost_form import plain
from flopwatch_dashboard.components.cost_inputs import GROUP, Answered, Typed
from flopwatch_dashboard.components.sent_form import reason, sending, sent_form
from flopwatch_dashboard.view import View

PATH = "/api/v1/costs"
OPEN = "do.save"
DONE = "do.done"


def saving(answered: Answered, given: Typed, view: View) -> list[Component]:
    """The form where it is open, what was done just now, and who saved the costs that count."""
    asked = dict(view.inputs)
    shown: list[Component] = []
    if asked.get(DONE) in ("saved", "withdrawn") and not given.raw:
        words = view.t("costs.done" if asked[DONE] == "saved" else "costs.withdrawn")
        shown.append(html.Div([parts.icon("check"), html.Span(words)], className="al-done", role="status"))
    if can_save(answered, view) and asked.get(OPEN):
        shown.append(_form(answered, given, view))
    if answered.saved.saved is not None:
        shown.append(_saved(answered.saved.saved, answered.saved.status.time_zone, view))
    return shown


def can_save(answered: Answered, view: View) -> bool:
    """Whether there is something to save and the reader may."""
    return answered.changed and view.viewer.read_only is None


def offer(answered: Answered, view: View) -> list[Component]:
    """The link that opens the form."""
    if not can_save(answered, view) or OPEN in dict(view.inputs):
        return []
    return [html.A(view.t("costs.save"), href=_address(view, **{OPEN: "1"}), className="more")]


def _form(answered: Answered, given: Typed, view: View) -> Component:
    """What is changed from what to what, why, and the button: nothing is saved before it is pressed."""
    before = {entry.name: entry for entry in answered.saved.inputs}
    rows = [_change(name, value, before) for name, value in sorted(given.values.items())]
    version = answered.saved.saved.version if answered.saved.saved else None
    body: dict[str, object] = {"changes": dict(given.values)}
    if version is not None:
        body["version"] = version
    then = view.link("breakeven", **{DONE: "saved"})
    fields = [
        html.P(view.t("costs.save_text", changes=len(given.values)), className="f-hint"),
        html.Ul(rows, className="cost-changes"),
        reason(view.t("costs.save_why")),
    ]
    ways = (view.t("costs.save"), _address(view, **{OPEN: ""}))
    sent = {**sending("PUT", PATH, then, view), "data-body": json.dumps(body)}
    return sent_form(view.t("costs.save"), fields, ways, view, **sent)


def _change(name: str, value: float, before: dict[str, CostInput]) -> Component:
    known = before.get(name)
    old = (plain(known) if known is not None else "") or wording.UNKNOWN
    return html.Li([html.Code(name), html.Span(f"{old} → "), html.B(f"{value:.10g}")])


def _saved(saved: SavedCosts, zone: str, view: View) -> Component:
    """Who saved what counts, and for operators the way back."""
    when = wording.moment(saved.seconds, zone, view.lang)
    told = [
        parts.icon("info"),
        html.Span(view.t("costs.saved_by", by=saved.by, when=when, comment=saved.comment)),
        html.Span(view.t("costs.saved_note"), className="muted"),
    ]
    if saved.settings_differ:
        told.append(html.Span(view.t("costs.file_differs"), className="sev sev-warning"))
    if view.viewer.read_only is None:
        button = html.Button(view.t("costs.withdraw"), type="submit", className="more")
        problem = html.Span("", className="f-problem", role="alert")
        then = view.link("breakeven", **{DONE: "withdrawn"})
        told.append(
            html.Form([button, problem], className="al-inline", **sending("DELETE", PATH, then, view))
        )
    return html.Div(told, className="be-saved")


def _address(view: View, **changes: str) -> str:
    """The page as it is typed into, with some of its address changed; an empty text takes it out."""
    kept = {name: text for name, text in view.inputs if not name.startswith("do.") or name == GROUP}
    return view.link("breakeven", **{name: text for name, text in {**kept, **changes}.items() if text})
