"""Small parts of every page: icons, cards, graphs, severities, what to do when there is nothing."""

from typing import Any

from dash import dcc, html
from dash.development.base_component import Component

from flopwatch.query import Severity
from flopwatch_dashboard.view import View

NO_FIGURE: dict[str, Any] = {
    "data": [],
    "layout": {
        "xaxis": {"visible": False}, "yaxis": {"visible": False},
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
    },
}  # fmt: skip


def icon(name: str) -> Component:
    """An icon that follows the colour of the text."""
    return html.Span(className=f"ic ic-{name}", **{"aria-hidden": "true"})


def graph(graph_id: str) -> Component:
    """A graph that a screen reader reads as one described picture, and a button that saves it as PNG.

    The stock buttons are off: one of them uploads the figure. The whitelist keeps them out wherever they are shown.
    """
    config = {
        "displaylogo": False,
        "displayModeBar": False,
        "displayNotifier": False,
        "modeBarButtons": [["toImage"]],
    }
    drawing = dcc.Graph(
        id=graph_id, responsive=True, style={"height": "100%"}, figure=NO_FIGURE, config=config
    )
    picture = html.Div(drawing, className="pic", role="img", id=f"{graph_id}-wrap", **{"aria-label": ""})
    save = html.Button("PNG", className="png", **{"data-save": "png", "data-graph": graph_id})
    return html.Div([picture, save], className="g")


def card(card_id: str, *content: Component, kind: str = "") -> Component:
    """A card whose head is filled by the page's answer."""
    head = html.Div(id=f"{card_id}-head", className="c-h")
    return html.Section(
        [head, *content], className=f"card {kind}".strip(), **{"aria-labelledby": f"{card_id}-title"}
    )


def head(card_id: str, title: str, sub: str = "", *links: Component) -> list[Component]:
    """A card's heading, what it shows, and its links."""
    tail = [html.Span(list(links), className="c-l")] if links else []
    return [
        html.H2(title, id=f"{card_id}-title"),
        html.Span(sub, className="sub", title=sub),
        *tail,
    ]


def link(text: str, href: str) -> Component:
    """A link within the dashboard."""
    return html.A(text, href=href, className="more")


def download(text: str, href: str, hint: str) -> Component:
    """A link to a CSV of the API."""
    return html.A([icon("down"), html.Span(text)], href=href, className="more csv", download="", title=hint)


def save_csv(graph_id: str, view: View) -> Component:
    """A button that saves the figures of a graph; the browser makes the file."""
    data = {"data-save": "csv", "data-graph": graph_id, "data-zone": view.shown_zone}
    return html.Button(view.t("frame.csv"), className="more save", title=view.t("frame.csv_hint"), **data)


def severity(level: Severity, view: View, count: int | None = None) -> Component:
    """A severity: always shape, word and colour."""
    word = view.t(f"severity.{level}")
    text = word if count is None else f"{count} {word}"
    return html.Span([icon(level), html.Span(text)], className=f"sev sev-{level}")


def next_step(text: str, *steps: tuple[str, str]) -> Component:
    """An empty state: what is missing, then what to do about it, with the command."""
    parts: list[Component] = [html.P(text, className="empty-t")]
    for words, command in steps:
        parts.append(html.P(words, className="empty-s"))
        parts.append(html.Code(command, className="cmd"))
    return html.Div(parts, className="empty")


def not_told(view: View) -> Component:
    """In place of an empty list, where the source of data has nothing of the kind: empty would be a claim."""
    return next_step(view.t("unavailable.here"))


def hidden_heading(text: str) -> Component:
    """The page's heading for a screen reader, where the design shows none."""
    return html.H1(text, className="vh")
