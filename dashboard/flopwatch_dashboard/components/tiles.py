"""Tiles: one number with its unit, its reference mark and its recent course."""

from collections.abc import Sequence
from dataclasses import dataclass

from dash import html
from dash.development.base_component import Component

from flopwatch.query import WASTE_CLASSES, Ledger
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import spark
from flopwatch_dashboard.view import View


@dataclass(frozen=True, kw_only=True, slots=True)
class TileText:
    """A tile's words: everything already in the reader's language."""

    title: str
    value: str
    unit: str = ""
    hint: str = ""
    left: Component | str = ""
    right: Component | str = ""
    href: str | None = None


def tile(text: TileText, gauge: Component, view: View, course: Sequence[float | None] = ()) -> Component:
    """A tile; with an address it is a link to what it counts."""
    row = [html.Span(text.value, className="k-v"), html.Span(text.unit, className="k-u")]
    drawing = spark.sparkline(course, view.palette["good"], 84, 26)
    if drawing:
        row.append(html.Img(src=drawing, alt="", className="k-sp"))
    content = [
        html.Div(text.title, className="k-t"),
        html.Div(row, className="k-row"),
        gauge,
        html.Div([html.Span(text.left), html.Span(text.right)], className="k-s"),
    ]
    if text.href is None:
        return html.Div(content, className="card kpi", title=text.hint)
    return html.A(content, className="card kpi", title=text.hint, href=text.href)


def bullet(
    value: float | None, mark: float | None, top: float, view: View, *, low_is_good: bool = False
) -> Component:
    """A bar of the value with its reference as a tick; amber when it is on the wrong side of it."""
    parts: list[Component] = []
    if value is not None and top > 0:
        good = mark is None or (value <= mark if low_is_good else value >= mark)
        width = {"width": f"{_share(value, top):.1f}%"}
        parts.append(html.Div(className=f"bul-v {'good' if good else 'below'}", style=width))
    if mark is not None and top > 0:
        parts.append(html.Div(className="bul-m", style={"left": f"{_share(mark, top):.1f}%"}))
    label = view.t(
        "tile.reference",
        value=wording.UNKNOWN if value is None else f"{_share(value, top):.0f}%",
        reference=wording.UNKNOWN if mark is None else f"{_share(mark, top):.0f}%",
    )
    kind = "bul" if value is not None else "bul unknown"
    return html.Div(parts, className=kind, role="img", **{"aria-label": label})


def waste_bar(ledger: Ledger, view: View) -> Component:
    """The classes of waste as shares of capacity, in their colours."""
    capacity = ledger.capacity_gpu_milliseconds
    parts, words = [], []
    for amount in ledger.classes:
        if amount.name in WASTE_CLASSES and capacity > 0:
            width = {"width": f"{_share(amount.gpu_milliseconds, capacity):.2f}%"}
            parts.append(html.Div(className=f"sb-{amount.name.replace('_', '-')}", style=width))
            ratio = amount.gpu_milliseconds / capacity
            words.append(f"{view.t('class.' + amount.name)} {wording.percent(ratio, 0)}")
    return html.Div(parts, className="bul stack", role="img", **{"aria-label": ", ".join(words)})


def no_gauge() -> Component:
    """The room of a gauge, where a tile has none."""
    return html.Div(className="bul none")


def _share(value: float, top: float) -> float:
    return max(0.0, min(100.0, value / top * 100)) if top > 0 else 0.0
