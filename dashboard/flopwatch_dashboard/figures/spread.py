"""How the step times of a run are distributed: what is usual, and how long the tail is."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flopwatch.query import Job
from flopwatch_dashboard import wording
from flopwatch_dashboard.figures import frame
from flopwatch_dashboard.view import View

BINS = 40
TAIL_OF_P99 = 1.25
"""The axis ends so far beyond the 99th percentile; what lies further is counted in words."""
CLOSE_RATIO = 0.4
"""Lines closer than this share of the axis are named together."""
NARROWEST = 0.02
"""The axis spans at least this share of the median, so that even times do not look spread."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """Shares of records by step time."""

    edges: tuple[float, ...]
    """Seconds; one more than the shares."""
    shares: tuple[float, ...]
    beyond_ratio: float
    """Share of records above the last edge."""
    records: int


def spread_of(values: Sequence[float | None], p99: float | None) -> Spread | None:
    """The distribution; None without at least two known times."""
    known = np.array([value for value in values if value is not None and math.isfinite(value)])
    if known.size < 2:
        return None
    middle = float(np.median(known))
    low, high = float(known.min()), float(known.max())
    if p99 is not None:
        high = min(high, p99 * TAIL_OF_P99)
    least = max(middle * NARROWEST, 1e-9)
    if high - low < least:
        low, high = max(0.0, middle - least / 2), middle + least / 2
    counts, edges = np.histogram(known, bins=BINS, range=(low, high))
    return Spread(
        edges=tuple(edges.tolist()),
        shares=tuple((counts / known.size).tolist()),
        beyond_ratio=float((known > high).mean()),
        records=int(known.size),
    )


def found_in(job: Job) -> Spread | None:
    """The distribution of a job's step times."""
    return spread_of(job.steps.columns.get("step_seconds", ()), job.step_percentiles.get("p99"))


def spread(job: Job, view: View) -> frame.Figure:
    """Bars of shares over the step time, with the median and the 99th percentile."""
    found = found_in(job)
    if found is None:
        return frame.empty(view, view.t("series.no_data"))
    width = found.edges[1] - found.edges[0]
    bars = {
        "type": "bar",
        "x": frame.array([edge + width / 2 for edge in found.edges[:-1]], "float64"),
        "y": frame.array(found.shares),
        "width": width,
        "marker": {"color": view.palette["mfu"], "line": {"width": 0}},
        "hovertemplate": "%{x:.3g} s: %{y:.1%}<extra></extra>",
    }
    size, top = view.font_px, max(found.shares) * 1.08
    layout = frame.layout(
        view,
        margin={"l": size * 3.4, "r": 10, "t": size * 2.2, "b": size * 2.1},
        hovermode="closest",
        bargap=0.08,
        xaxis={"range": [found.edges[0], found.edges[-1]], "nticks": 6, "ticksuffix": " s"},
        yaxis={"range": [0, top], "tickformat": ".0%", "nticks": 4},
        shapes=_rules(job, found, view),
        annotations=[*_names(job, found, view), *_beyond(found, view)],
    )
    return {"data": [bars], "layout": layout}


def description(job: Job, view: View) -> str:
    """The figure in words."""
    found = found_in(job)
    if found is None:
        return view.t("series.no_data")
    highest = found.shares.index(max(found.shares))
    percentiles = {name: wording.step_time(job.step_percentiles.get(name)) for name in ("p50", "p90", "p99")}
    return view.t(
        "job.spread_aria",
        count=wording.number(found.records),
        low=wording.step_time(found.edges[highest]),
        high=wording.step_time(found.edges[highest + 1]),
        **percentiles,
    )


def _within(job: Job, found: Spread) -> list[tuple[str, float]]:
    pairs = ((name, job.step_percentiles.get(name)) for name in ("p50", "p99"))
    return [
        (name, value)
        for name, value in pairs
        if value is not None and found.edges[0] <= value <= found.edges[-1]
    ]


def _rules(job: Job, found: Spread, view: View) -> list[dict[str, Any]]:
    line = {"color": view.palette["text"], "width": 1.2, "dash": "4px,4px"}
    return [
        {"type": "line", "x0": value, "x1": value, "y0": 0, "y1": 1, "yref": "paper", "line": line}
        for _, value in _within(job, found)
    ]


def _names(job: Job, found: Spread, view: View) -> list[dict[str, Any]]:
    """Names of the lines above the plot, on the side that has room; of lines close together in one."""
    within = [(value, f"{name} <b>{wording.step_time(value)}</b>") for name, value in _within(job, found)]
    low, high = found.edges[0], found.edges[-1]
    if len(within) == 2 and within[1][0] - within[0][0] < CLOSE_RATIO * (high - low):
        within = [(within[1][0], " · ".join(words for _, words in within))]
    return [
        {
            "x": value, "y": 1, "yref": "paper", "text": words, "showarrow": False, "yanchor": "bottom", "yshift": 3,
            "xanchor": "left" if value < (low + high) / 2 else "right",
            "font": {"size": view.font_px, "color": view.palette["text"]},
        }
        for value, words in within
    ]  # fmt: skip


def _beyond(found: Spread, view: View) -> list[dict[str, Any]]:
    if not found.beyond_ratio:
        return []
    most = wording.step_time(found.edges[-1])
    text = view.t("job.spread_beyond", share=wording.percent(found.beyond_ratio), most=most)
    note = {
        "x": 1, "y": 0.97, "xref": "paper", "yref": "paper", "text": text, "showarrow": False, "xanchor": "right",
        "yanchor": "top", "font": {"size": view.font_px, "color": view.palette["belowtext"]},
    }  # fmt: skip
    return [note]
