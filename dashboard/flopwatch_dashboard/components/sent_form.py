"""A form that the browser sends to the API: its fields, the place for what went wrong, send and cancel."""

from collections.abc import Sequence

from dash import dcc, html
from dash.development.base_component import Component

from flopwatch_dashboard.view import View

LONGEST_COMMENT = 500


def sent_form(
    title: str, fields: Sequence[Component], ways: tuple[str, str], view: View, **sent: str
) -> Component:
    """The form. ``ways``: the words of its button, and the address that cancels; ``sent``: as ``sending`` gives it."""
    words, address = ways
    return html.Form(
        [
            html.H3(title, className="al-title", title=title),
            *fields,
            html.Div("", className="f-problem", role="alert"),
            html.Div(
                [
                    html.Button(words, type="submit", className="btn go"),
                    cancel(address, view),
                ],
                className="al-buttons",
            ),
        ],
        className="al-form",
        **sent,
    )


def cancel(address: str, view: View) -> Component:
    """The way back, with nothing done."""
    return html.A(view.t("alerts.do_cancel"), href=address, className="btn")


def reason(label: str) -> Component:
    """Why something is done, for the record."""
    field = dcc.Input(
        type="text",
        name="comment",
        required=True,
        maxLength=LONGEST_COMMENT,
        autoComplete="off",
        className="f-i",
        autoFocus=True,
    )
    return html.Label([html.Span(label, className="f-n"), field])


def sending(method: str, path: str, then: str, view: View) -> dict[str, str]:
    """What makes a form send to the API, and where it leads when that is done."""
    return {
        "data-api": method,
        "data-path": path,
        "data-then": then,
        "data-failed": view.t("desk.failed", message="{message}"),
        "data-lost": view.t("desk.lost"),
    }
