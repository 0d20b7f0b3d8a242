"""The page for an address that is none."""

from typing import Any

from dash import html
from dash.development.base_component import Component

from flopwatch.query import Query
from flopwatch_dashboard.components import parts
from flopwatch_dashboard.page import Page
from flopwatch_dashboard.view import View


def skeleton() -> list[Component]:
    """Room for one sentence."""
    return [html.Section(id="missing-text", className="card lone")]


def render(_query: Query, view: View, path: str) -> dict[str, Any]:
    """Which address was asked, and the way back."""
    words = html.P(view.t("empty.no_page", path=path), className="empty-t")
    return {"text": [words, parts.link(view.t("empty.home"), view.link(""))]}


PAGE = Page(
    name="missing",
    path="missing",
    item=True,
    skeleton=skeleton,
    render=render,
    parts={"text": ("missing-text", "children")},
)
