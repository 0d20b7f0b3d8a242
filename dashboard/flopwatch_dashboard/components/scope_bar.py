"""What the reader narrowed the pages to, said under the header, and the words of the dialog that changes it."""

from typing import Any

from dash import html
from dash.development.base_component import Component

from flopwatch.query import Status
from flopwatch_dashboard.view import View


def bar(view: View) -> list[Component]:
    """What differs from the usual, each with a button that takes it back; nothing where nothing does."""
    told = []
    if view.between is not None:
        told.append(
            _chip("from,to", view.t("scope.range", range=view.shown_range, zone=view.shown_zone), view)
        )
    if view.team is not None:
        told.append(_chip("team", view.t("scope.team", team=view.team), view))
    if view.zone is not None and view.zone != view.site_zone:
        told.append(_chip("zone", view.t("scope.zone", zone=view.zone, site=view.site_zone), view))
    return told


def _chip(names: str, words: str, view: View) -> Component:
    drop = html.Button(
        "×",  # noqa: RUF001 - the usual sign of a button that takes away
        className="drop",
        **{"data-drop": names, "aria-label": view.t("scope.drop", what=words)},
    )
    return html.Span([html.Span(words), drop], className="chip")


def dialog(status: Status, view: View) -> dict[str, Any]:
    """The dialog's words and choices; the browser builds it and knows its own zone."""
    keys = (
        "title",
        "from",
        "to",
        "zone",
        "site",
        "browser",
        "team",
        "all",
        "apply",
        "close",
        "wall",
        "bad",
        "hint",
    )
    return {
        "words": {key: _kept(f"scope.d_{key}", view) for key in keys},
        "zone": view.shown_zone,
        "site": view.site_zone,
        "teams": list(status.teams),
        "between": list(view.between) if view.between else None,
        "seconds": view.range_seconds,
    }


def _kept(key: str, view: View) -> str:
    """A text whose placeholders the browser fills."""
    return view.t(key, **{name: f"{{{name}}}" for name in view.placeholders(key)})
