"""The heat-map of all GPUs: its scale, its key, and what the browser needs to name what is under the pointer."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from dash import html
from dash.development.base_component import Component

from flopwatch.answers.nodes import HEALTHS, Nodes
from flopwatch.query import LEDGER_CLASSES, LedgerClass
from flopwatch_dashboard import wording
from flopwatch_dashboard.components.node_choice import Choice, group_of
from flopwatch_dashboard.components.node_words import RATIOS, value_words
from flopwatch_dashboard.figures import frame, heatmap
from flopwatch_dashboard.figures.heatmap import Scale
from flopwatch_dashboard.view import View

HEALTH_COLORS = {"ok": "good", "warning": "below", "critical": "critical"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawn:
    """What of the page is about the heat-map."""

    figure: frame.Figure
    place: dict[str, Any]
    """Which GPU is where, and names of nodes."""
    now: dict[str, Any]
    """Of each GPU its job and what its time counts as."""
    key: list[Component]
    description: str


def shown(nodes: Nodes, choice: Choice, places: Sequence[int], view: View) -> Drawn:
    """The heat-map of the nodes at these places."""
    if not places:
        return Drawn(
            figure=frame.empty(view, view.t("nodes.none_fit" if nodes.nodes else "nodes.none")),
            place={}, now={}, key=[], description=view.t("nodes.none_fit"),
        )  # fmt: skip
    placed = heatmap.place(_groups(nodes, choice, places, view), _gpus_of(nodes), view)
    codes, colors, scale = _coded(nodes, choice.metric, view)
    picture = heatmap.filled(placed, codes)
    inside = np.isin(np.array(nodes.gpus.node, dtype=np.int64), places)
    counted = Counter(codes[inside].tolist())
    return Drawn(
        figure=heatmap.figure(placed, picture, colors, view),
        place=_place(nodes, placed, view),
        now=_now(nodes, choice, view, scale),
        key=key(choice.metric, scale, counted, view),
        description=view.t(
            "nodes.map_aria",
            metric=view.t(f"nodes.metric.{choice.metric}"),
            gpus=wording.number(int(inside.sum())),
            nodes=wording.number(len(places)),
            silent=wording.number(counted.get(heatmap.SILENT, 0)),
        ),
    )


def _groups(nodes: Nodes, choice: Choice, places: Sequence[int], view: View) -> list[tuple[str, list[int]]]:
    found: dict[str, list[int]] = {}
    for at in places:
        found.setdefault(group_of(nodes.nodes[at], choice.grouping, view), []).append(at)
    return list(found.items())


def _gpus_of(nodes: Nodes) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in nodes.nodes]
    for gpu, node in enumerate(nodes.gpus.node):
        found[node].append(gpu)
    return found


def scale_of(nodes: Nodes, metric: str) -> Scale:
    """The scale of a value: ratios to 100 %, an MFU to 60 % unless one is above, all else to a round number."""
    if metric in RATIOS and metric != "mfu_ratio":
        return Scale(low=0.0, high=1.0)
    known = [value for value in nodes.gpus.values.get(metric, ()) if value is not None]
    most = max(known, default=0.0)
    if metric == "mfu_ratio":
        return Scale(low=0.0, high=0.64 if most <= 0.64 else 1.0)
    if metric == "temperature_celsius":
        return Scale(low=20.0, high=100.0, ramp="warm")
    return Scale(low=0.0, high=rounded_up(most), ramp="warm" if metric == "power_watts" else "cool")


def rounded_up(most: float) -> float:
    """The next of 1, 1.6, 2, 4, 8 times a power of ten: eight steps of it have round borders."""
    if most <= 0:
        return 8.0
    unit = 10.0 ** math.floor(math.log10(most))
    return next(unit * step for step in (1.0, 1.6, 2.0, 2.4, 3.2, 4.0, 8.0, 10.0) if most <= unit * step)


def _coded(
    nodes: Nodes, metric: str, view: View
) -> tuple[heatmap.Bytes, list[list[Any]], Scale | None]:  # fmt: skip
    if metric == "health":
        codes = np.array(nodes.gpus.health, dtype=np.uint8)
        codes[codes == HEALTHS.index("unknown")] = heatmap.SILENT
        colors = [view.palette[HEALTH_COLORS[name]] for name in HEALTHS[:3]]
        return codes, heatmap.kind_scale(colors, view), None
    if metric == "state":
        by_bucket = np.array([_class_code(name) for name in nodes.classes], dtype=np.uint8)
        codes = by_bucket[np.array(nodes.gpus.bucket, dtype=np.int64)]
        return codes, heatmap.kind_scale([view.palette[name] for name in LEDGER_CLASSES], view), None
    scale = scale_of(nodes, metric)
    codes = heatmap.coded(nodes.gpus.values[metric], nodes.gpus.reporting, scale)
    return codes, heatmap.ramp_scale(scale, view), scale


def _class_code(name: LedgerClass) -> int:
    return heatmap.SILENT if name == "unknown" else LEDGER_CLASSES.index(name)


def key(metric: str, scale: Scale | None, counted: Mapping[int, int], view: View) -> list[Component]:
    """What the colours mean, each with how many GPUs have it."""
    items: list[Component] = []
    if scale is not None:
        items.append(_ramp(metric, scale, view))
        if counted.get(heatmap.UNKNOWN):
            items.append(_item("key none-known", view.t("nodes.unknown"), counted[heatmap.UNKNOWN]))
    elif metric == "health":
        for code, name in enumerate(HEALTHS[:3]):
            items.append(_item(f"key hm-{name}", view.t(f"nodes.health.{name}"), counted.get(code, 0)))
    else:
        for code, each in enumerate(LEDGER_CLASSES):
            if each != "unknown" and counted.get(code):
                css = f"key sb-{each.replace('_', '-')}"
                items.append(_item(css, view.t(f"class.{each}"), counted[code]))
    if counted.get(heatmap.SILENT):
        items.append(_item("key silent", view.t("nodes.silent"), counted[heatmap.SILENT]))
    return items


def _item(css: str, words: str, count: int) -> Component:
    return html.Span([html.Span(className=css), f"{words} ", html.B(wording.number(count))])


def _ramp(metric: str, scale: Scale, view: View) -> Component:
    """The steps of a scale with its ends and its middle."""
    edges = scale.edges()
    swatches = [
        html.I(
            style={"background": color},
            title=f"{value_words(metric, edges[at])} … {value_words(metric, edges[at + 1])}",
        )
        for at, color in enumerate(heatmap.RAMPS[view.theme][scale.ramp])
    ]  # fmt: skip
    low, high = value_words(metric, edges[0]), value_words(metric, edges[-1])
    return html.Span([low, html.Span(swatches, className="ramp"), high], className="ramp-c")


def _place(nodes: Nodes, placed: heatmap.Placed, view: View) -> dict[str, Any]:
    rows, columns = placed.cells.shape
    return {
        "rows": rows,
        "columns": columns,
        "corners": heatmap.packed(placed.corners.astype(np.int16)),
        "gpus": heatmap.packed(np.bincount(np.array(nodes.gpus.node, dtype=np.int64)).astype(np.uint8)),
        "index": heatmap.packed(np.array(nodes.gpus.index, dtype=np.uint8)),
        "names": [row.node for row in nodes.nodes],
        "racks": [row.rack or "" for row in nodes.nodes],
        "paths": f"{view.prefix}nodes/",
    }


def _now(nodes: Nodes, choice: Choice, view: View, scale: Scale | None) -> dict[str, Any]:
    """Names and words for the pointer; jobs and states as small numbers."""
    metric = choice.metric
    return {
        "job": heatmap.packed(np.array(nodes.gpus.job, dtype=np.int16)),
        "jobs": [job.name for job in nodes.jobs],
        "bucket": heatmap.packed(np.array(nodes.gpus.bucket, dtype=np.uint8)),
        "buckets": [view.bucket(name) for name in nodes.buckets],
        "healths": [view.t(f"nodes.health.{name}") for name in HEALTHS[:3]] if metric == "health" else None,
        "metric": view.t(f"nodes.metric.{metric}"),
        "scale": None if scale is None else {"low": scale.low, "high": scale.high, **_unit(metric)},
        "words": {
            "gpu": view.t("nodes.gpu_n", n="{n}"), "unknown": view.t("nodes.unknown"), "silent": view.t("nodes.silent"),
            "no_job": view.t("nodes.no_job"),
        },
    }  # fmt: skip


def _unit(metric: str) -> dict[str, Any]:
    """How the browser writes a value of the scale."""
    if metric in RATIOS:
        return {"factor": 100, "unit": "%", "digits": 0}
    return {
        "power_watts": {"factor": 1, "unit": " W", "digits": 0},
        "temperature_celsius": {"factor": 1, "unit": " °C", "digits": 0},
        "sm_clock_hertz": {"factor": 1e-9, "unit": " GHz", "digits": 2},
        "nic_bytes_per_second": {"factor": 1e-9, "unit": " GB/s", "digits": 1},
    }[metric]
