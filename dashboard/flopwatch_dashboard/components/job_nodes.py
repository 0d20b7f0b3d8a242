"""A job's nodes beside each other: which stand apart from the others, and by how much."""

import statistics
from collections.abc import Sequence

from dash import html
from dash.development.base_component import Component

from flopwatch.query import Job, NodeInfo
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import job_found, parts
from flopwatch_dashboard.components.tables import table
from flopwatch_dashboard.view import View

APART_RATIO = 0.05
"""From here on a node stands apart from the median of its job's nodes."""
MOST_ROWS = 64
COMPARED = ("kernel_active_ratio", "tensor_active_ratio", "power_watts", "sm_clock_hertz")
SHOWN = {"power_watts": ("W", 1), "sm_clock_hertz": ("Hz", 2)}
Medians = dict[str, float | None]


def medians(nodes: Sequence[NodeInfo]) -> Medians:
    """Of every compared figure over the nodes that know it; None with fewer than three, which have no middle."""
    found: Medians = {}
    for name in COMPARED:
        known = [value for node in nodes if (value := _value(node, name)) is not None]
        found[name] = statistics.median(known) if len(known) >= 3 else None
    return found


def apart(node: NodeInfo, name: str, middle: Medians) -> float | None:
    """How far a figure is from the median, as a share of it; None where either is not known."""
    value, median = _value(node, name), middle[name]
    return None if value is None or not median else value / median - 1.0


def ordered(nodes: Sequence[NodeInfo], middle: Medians) -> list[NodeInfo]:
    """Nodes that are silent or cannot read their log first, then the slowest by any figure."""

    def place(node: NodeInfo) -> tuple[bool, float, str]:
        shares = [share for name in COMPARED if (share := apart(node, name, middle)) is not None]
        return (node.reporting and not node.log_problem, min(shares, default=0.0), node.node)

    return sorted(nodes, key=place)


def standing_apart(nodes: Sequence[NodeInfo], middle: Medians) -> int:
    """How many nodes lie beyond the usual in any figure."""
    return sum(any(_is_apart(apart(node, name, middle)) for name in COMPARED) for node in nodes)


def summary(job: Job, view: View) -> str:
    """Whether the nodes are alike."""
    count = standing_apart(job.nodes, medians(job.nodes))
    if not job.nodes:
        return ""
    if not count:
        share = wording.percent(APART_RATIO, 0)
        return view.t("job.nodes_alike", nodes=wording.number(len(job.nodes)), share=share)
    return view.t("job.nodes_apart", count=wording.number(count), nodes=wording.number(len(job.nodes)))


def nodes(job: Job, view: View) -> Component:
    """The nodes, those that need a look first; of very many, the rest is counted."""
    middle = medians(job.nodes)
    columns = [
        (view.t("col.node"), False),
        *((view.t(f"col.{key}"), True) for key in ("gpus", "kernel", "tensor", "power", "clock")),
        (view.t("col.reporting"), False),
        (view.t("col.log"), False),
    ]
    listed = ordered(job.nodes, middle)
    drawn = table(columns, [_row(node, middle, view) for node in listed[:MOST_ROWS]])
    left = len(listed) - MOST_ROWS
    words = (
        [html.P(view.t("job.nodes_median"), className="muted note")] if standing_apart(listed, middle) else []
    )
    if left > 0:
        count = view.t("job.nodes_more", count=wording.number(left), share=wording.percent(APART_RATIO, 0))
        words.append(html.P(count, className="muted note"))
    return html.Div([drawn, *words])


def _row(node: NodeInfo, middle: Medians, view: View) -> list[Component | str]:
    return [
        node.node,
        str(node.gpus),
        *(_cell(node, name, middle) for name in COMPARED),
        view.t("yes") if node.reporting else _warned(view.t("no")),
        _warned(node.log_problem) if node.log_problem else job_found.log_of(node),
    ]


def _cell(node: NodeInfo, name: str, middle: Medians) -> Component | str:
    """The figure; where it stands apart, a triangle and by how much."""
    value = _value(node, name)
    unit = SHOWN.get(name)
    shown = wording.percent(value) if unit is None else wording.si(value, *unit)
    share = apart(node, name, middle)
    if share is None or not _is_apart(share):
        return shown
    sign = "▼" if share < 0 else "▲"
    told = html.Span(f"{sign} {share * 100:+.0f}%", className="apart low" if share < 0 else "apart")
    return html.Span([told, html.Span(shown)], className="apart-c")


def _is_apart(share: float | None) -> bool:
    return share is not None and abs(share) >= APART_RATIO


def _value(node: NodeInfo, name: str) -> float | None:
    value: float | None = getattr(node, name)
    return wording.finite(value)


def _warned(words: str) -> Component:
    return html.Span([parts.icon("warning"), html.Span(words)], className="sev sev-warning", title=words)
