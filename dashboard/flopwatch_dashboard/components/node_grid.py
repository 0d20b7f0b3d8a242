"""The table of all nodes: health, what is wrong, and the means of its GPUs."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
from dash.development.base_component import Component

from flopwatch.answers.nodes import NodeRow, Nodes
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import grid_table
from flopwatch_dashboard.view import View

GRID_ID = "nodes-grid"
WORST = {"critical": 0, "warning": 1, "unknown": 2, "ok": 3}
MEANS = (
    "kernel_active_ratio",
    "tensor_active_ratio",
    "memory_used_ratio",
    "sm_clock_hertz",
    "nic_bytes_per_second",
)
SHORT = {name: name.split("_")[0] for name in (*MEANS, "power_watts", "temperature_celsius")}
MOST_JOBS = 3
Floats = npt.NDArray[np.float64]


def grid() -> Component:
    """The empty table."""
    return grid_table.grid(GRID_ID, row_height=32)


def columns(nodes: Nodes, view: View) -> list[dict[str, Any]]:
    """The columns; the worst nodes first."""
    found = [
        _text("name", view.t("nodes.node"), 130, cellRenderer="FlopwatchJob", pinned="left"),
        {
            **_text("health", view.t("nodes.health"), 250, cellRenderer="FlopwatchHealth"),
            "comparator": {"function": "(a, b, x, y) => x.data.worst - y.data.worst"},
        },
        _number("gpus", view.t("col.gpus"), 76, "params.data.gpus_text || String(params.value)"),
    ]
    for name, short in SHORT.items():
        if name in nodes.gpus.values:
            found.append(
                _number(short, view.t(f"nodes.col.{name}"), 106, f"nodeValue(params.value, '{name}')")
            )
    found += [
        _text("jobs", view.t("nodes.jobs"), 190),
        _text("model", view.t("nodes.model"), 150),
        *([_text("rack", view.t("nodes.rack"), 90)] if any(row.rack for row in nodes.nodes) else []),
        _text("cluster", view.t("col.cluster"), 110),
        _number("seen", view.t("nodes.last_seen"), 150, f"params.data.seen_text || '{view.t('nodes.now')}'"),
    ]
    return found


def _text(field: str, title: str, width: int, **more: Any) -> dict[str, Any]:
    return {"field": field, "headerName": title, "width": width, "filter": "agTextColumnFilter", "tooltipField": field,
            **more}  # fmt: skip


def _number(field: str, title: str, width: int, shown: str) -> dict[str, Any]:
    """A column that sorts by its number; ``shown`` is the browser's expression for its text."""
    return {
        "field": field, "headerName": title, "width": width, "filter": "agNumberColumnFilter", "type": "rightAligned",
        "valueFormatter": {"function": shown},
    }  # fmt: skip


def rows(nodes: Nodes, places: Sequence[int], view: View) -> list[dict[str, Any]]:
    """A row a node, the worst first; numbers rounded to what is shown."""
    values = {name: means(nodes, name) for name in MEANS if name in nodes.gpus.values}
    if "power_watts" in nodes.gpus.values:
        values["power_watts"] = means(nodes, "power_watts")
    if "temperature_celsius" in nodes.gpus.values:
        values["temperature_celsius"] = hottest(nodes)
    jobs = _jobs(nodes)
    zone = view.shown_zone
    found = [
        {
            **_row(nodes.nodes[at], zone, view),
            **_values({name: column[at] for name, column in values.items()}),
            "jobs": _named([nodes.jobs[job].name for job in jobs.get(at, ())]),
        }
        for at in places
    ]
    return sorted(found, key=lambda row: row["worst"])


def _row(row: NodeRow, zone: str, view: View) -> dict[str, Any]:
    silent = row.gpus - row.gpus_reporting
    return {
        "id": f"{row.cluster}/{row.node}",
        "name": row.node,
        "href": f"{view.prefix}nodes/{quote(row.node, safe='')}",
        "health": health_words(row, view),
        "health_code": row.health,
        "worst": WORST[row.health] + (0 if row.problems or row.declared else 1) * (row.health == "ok"),
        "gpus": row.gpus,
        "model": (row.gpu_model or wording.UNKNOWN).removeprefix("NVIDIA "),
        "rack": row.rack or "",
        "cluster": row.cluster,
        **(_silent(row, zone, view) if silent else {}),
    }


def _silent(row: NodeRow, zone: str, view: View) -> dict[str, Any]:
    """How many GPUs still report, and when the node did last."""
    return {
        "gpus_text": f"{row.gpus_reporting} / {row.gpus}",
        "seen": row.last_seen_seconds,
        "seen_text": wording.moment(row.last_seen_seconds, zone, view.lang),
    }


def health_words(row: NodeRow, view: View) -> str:
    """The health of a node: what is wrong and what was declared, or that nothing is."""
    words = [view.code("nodes.problem", code) for code in row.problems]
    words += [view.code("nodes.declared", code) for code in row.declared]
    return " · ".join(words) or view.t(f"nodes.health.{row.health}")


def _values(values: Mapping[str, float]) -> dict[str, Any]:
    """Values with no more digits than are shown; what is unknown is left out."""
    return {SHORT[name]: rounded(name, float(value)) for name, value in values.items() if np.isfinite(value)}


def rounded(name: str, value: float) -> float:
    """A value as the table shows it, so that a row changes only when it looks different."""
    if name.endswith("_ratio"):
        return round(value, 2)
    if name in ("power_watts", "temperature_celsius"):
        return float(round(value))
    return float(f"{value:.3g}")


def means(nodes: Nodes, name: str) -> Floats:
    """Mean over the GPUs of each node that report and know the value; not a number where none does."""
    place, value, counted = _known(nodes, name)
    totals = np.bincount(place, weights=value, minlength=counted)
    counts = np.bincount(place, minlength=counted)
    result = np.full(counted, np.nan)
    np.divide(totals, counts, out=result, where=counts > 0)
    return result


def hottest(nodes: Nodes) -> Floats:
    """The highest temperature on each node."""
    place, value, counted = _known(nodes, "temperature_celsius")
    result = np.full(counted, -np.inf)
    np.maximum.at(result, place, value)
    return np.where(np.isfinite(result), result, np.nan)


def _known(nodes: Nodes, name: str) -> tuple[npt.NDArray[np.int64], Floats, int]:
    value = np.array([np.nan if each is None else each for each in nodes.gpus.values[name]], dtype=np.float64)
    known = np.isfinite(value) & np.array(nodes.gpus.reporting, dtype=np.bool_)
    return np.array(nodes.gpus.node, dtype=np.int64)[known], value[known], len(nodes.nodes)


def _jobs(nodes: Nodes) -> dict[int, tuple[int, ...]]:
    found: dict[int, dict[int, None]] = {}
    for node, job in zip(nodes.gpus.node, nodes.gpus.job, strict=True):
        if job >= 0:
            found.setdefault(node, {})[job] = None
    return {node: tuple(jobs) for node, jobs in found.items()}


def _named(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(name or wording.UNKNOWN for name in names[:MOST_JOBS])
    return f"{shown} +{len(names) - MOST_JOBS}" if len(names) > MOST_JOBS else shown
