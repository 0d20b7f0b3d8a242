"""The Nodes page: every GPU in one heat-map by any signal or by its state, and all nodes as a table."""

from collections.abc import Sequence
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, dcc, html
from dash.development.base_component import Component

from flopwatch.answers.nodes import Nodes
from flopwatch.query import Query
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import node_choice, node_grid, parts
from flopwatch_dashboard.components.boxes import Box, box
from flopwatch_dashboard.components.node_choice import Choice
from flopwatch_dashboard.page import Page
from flopwatch_dashboard.pages import node_map
from flopwatch_dashboard.view import View

MAP = "nodes-map-g"


def skeleton() -> list[Component]:
    """The page without data."""
    stores = [dcc.Store(id=f"nodes-{name}") for name in ("base", "place", "now")]
    drawing = html.Div(parts.graph(MAP), id="nodes-map-keys", tabIndex="0", role="group")
    said = html.Div(id="nodes-said", className="vh", **{"aria-live": "polite"})
    card = parts.card("nodes-map", html.Div(id="nodes-key", className="nd-key"), drawing, said, kind="nd-map")
    return [
        *stores,
        html.Div([html.Div(id="nodes-title", className="p-h"), html.Span(id="nodes-links", className="c-l")],
                 className="bar"),
        html.Div(id="nodes-bar", className="nd-bar"),
        html.Div(id="nodes-empty"),
        card,
        html.Section(node_grid.grid(), id="nodes-table", className="card grid-card", **{"aria-label": "Nodes"}),
    ]  # fmt: skip


def render(query: Query, view: View, _item: str) -> dict[str, Any]:
    """The heat-map, the table, and what can be chosen."""
    nodes = query.nodes(view.asked)
    choice = node_choice.chosen(nodes, view)
    places = node_choice.fitting(nodes, choice)
    drawn = node_map.shown(nodes, choice, places, view)
    return {
        "title": [html.H1(view.t("nodes.title")), html.Span(_counts(nodes, view), className="sub")],
        "links": [parts.download(view.t("frame.csv"), view.export("gpus"), view.t("nodes.csv_hint"))],
        "bar": _bar(nodes, choice, view),
        "empty": [] if nodes.nodes else [_nothing(view)],
        "base": drawn.figure,
        "place": drawn.place,
        "now": drawn.now,
        "key": drawn.key,
        "map-aria": drawn.description,
        "map-head": parts.head(
            "nodes-map", view.t(f"nodes.metric.{choice.metric}"), _sub(nodes, choice, places, view)
        ),
        "keys-aria": view.t("nodes.keys"),
        "label": view.t("nodes.table_aria", count=len(places)),
        "columns": node_grid.columns(nodes, view),
        "rows": node_grid.rows(nodes, places, view),
    }


def _counts(nodes: Nodes, view: View) -> str:
    gpus, alive = len(nodes.gpus.node), sum(nodes.gpus.reporting)
    words = [view.t("nodes.counts", nodes=wording.number(len(nodes.nodes)), gpus=wording.number(gpus))]
    if alive < gpus:
        words.append(view.t("nodes.counts_silent", gpus=wording.number(gpus - alive)))
    wrong = sum(1 for row in nodes.nodes if row.health in ("warning", "critical"))
    if wrong:
        words.append(view.t("nodes.counts_problems", nodes=wording.number(wrong)))
    return " · ".join(words)


def _sub(nodes: Nodes, choice: Choice, places: Sequence[int], view: View) -> str:
    key = "nodes.map_sub_some" if choice.filters else "nodes.map_sub"
    words = view.t(
        key, shown=wording.number(len(places)), all=wording.number(len(nodes.nodes)),
        group=view.t(f"nodes.group.{choice.grouping}"),
    )  # fmt: skip
    more = f"nodes.metric_hint.{choice.metric}"
    return f"{view.t(more)} · {words}" if view.knows(more) else words


def _bar(nodes: Nodes, choice: Choice, view: View) -> list[Component]:
    metrics = [
        _pill(
            view.t(f"nodes.metric_short.{name}"),
            "nodes.metric",
            node_choice.SHORT[name],
            name == choice.metric,
            view,
        )
        for name in node_choice.offered(nodes)
    ]
    groups = [
        _pill(view.t(f"nodes.group.{name}"), "nodes.group", name, name == choice.grouping, view)
        for name in node_choice.groupings(nodes)
    ]
    shows = [
        _pill(
            view.t(f"nodes.show.{name}"),
            "nodes.show",
            None if name == "all" else name,
            name == choice.show,
            view,
        )
        for name in node_choice.SHOWS
        if nodes.buckets or name in ("all", "silent")
    ]
    find = Box(
        name="nodes.find", title=view.t("nodes.find"), value=choice.find, base="", mode="text", kind="nd-find",
        placeholder=view.t("nodes.find_hint"),
    )  # fmt: skip
    return [
        _pills(metrics, view.t("nodes.metric")),
        _pills(groups, view.t("nodes.group"), view.t("nodes.group")),
        _pills(shows, view.t("nodes.show")),
        box(find),
    ]


def _pills(pills: Sequence[Component], title: str, shown: str = "") -> Component:
    lead = [html.Span(shown, className="pills-n")] if shown else []
    return html.Nav([*lead, *pills], className="pills", **{"aria-label": title})


def _pill(words: str, name: str, value: str | None, on: bool, view: View) -> Component:  # noqa: FBT001 - a fact
    extra = {"aria-current": "true"} if on else {}
    return html.A(
        words, href=node_choice.address(view, {name: value}), className="pill on" if on else "pill", **extra
    )


def _nothing(view: View) -> Component:
    steps = (view.t("empty.no_nodes_next"), view.t("empty.no_nodes_command"))
    return html.Section(parts.next_step(view.t("empty.no_nodes"), steps), className="card")


def extend(app: Dash) -> None:
    """The browser names what is under the pointer, and opens a node that is clicked."""
    app.clientside_callback(
        ClientsideFunction("flopwatch", "nodeMap"),
        Output(MAP, "figure"),
        Input("nodes-base", "data"),
        Input("nodes-place", "data"),
        Input("nodes-now", "data"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction("flopwatch", "nodePick"),
        Output("nodes-said", "title"),
        Input(MAP, "clickData"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction("flopwatch", "nodeTable"),
        Output("nodes-said", "lang"),
        Input(node_grid.GRID_ID, "id"),
    )


PAGE = Page(
    name="nodes",
    path="nodes",
    icon="nodes",
    skeleton=skeleton,
    render=render,
    rows="rows",
    extend=extend,
    parts={
        "title": ("nodes-title", "children"),
        "links": ("nodes-links", "children"),
        "bar": ("nodes-bar", "children"),
        "empty": ("nodes-empty", "children"),
        "base": ("nodes-base", "data"),
        "place": ("nodes-place", "data"),
        "now": ("nodes-now", "data"),
        "key": ("nodes-key", "children"),
        "map-aria": (f"{MAP}-wrap", "aria-label"),
        "map-head": ("nodes-map-head", "children"),
        "keys-aria": ("nodes-map-keys", "aria-label"),
        "label": ("nodes-table", "aria-label"),
        "columns": (node_grid.GRID_ID, "columnDefs"),
        "rows": (node_grid.GRID_ID, "rowData"),
    },
)
