"""Thousands of GPUs as one heat-map of small cells: nodes are columns, groups stand beside each other in bands.

A cell is one byte. Values take 0 to 249 of a scale; what is unknown, what does not report and what is no GPU have
codes of their own, so that none of them looks like zero.
"""

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from flopwatch_dashboard.figures import frame
from flopwatch_dashboard.view import View

STEPS = 8
TOP = 249
UNKNOWN, SILENT, NOTHING = 250, 252, 255
LABEL_PIXELS = 17.0
MOST_MARKS = 800
"""More crosses than this are not drawn: each is an element of the page."""
WIDEST_CELL = 1.9
"""Times as wide as high."""
CLEARLY = 0.05
"""More bands must bring cells so much nearer to squares, as a logarithm."""
RAMPS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "light": {
        "cool": ("#e3eefa", "#c3dcf3", "#9cc6ea", "#70abdd", "#448ecd", "#1f72b8", "#0a5697", "#083c6c"),
        "warm": ("#fdf0dc", "#fadcb0", "#f5c27e", "#eba34d", "#d98324", "#b8650f", "#914b08", "#653203"),
    },
    "dark": {
        "cool": ("#173247", "#1a4363", "#1d5682", "#226ca3", "#3285c3", "#55a3dd", "#86c2ef", "#bfe0fb"),
        "warm": ("#35260f", "#4e3512", "#6b4714", "#8c5b16", "#b17219", "#d58e2b", "#efb053", "#fbd595"),
    },
}
EMPTY = {"light": "#c9ced6", "dark": "#5b6675"}
GONE = {"light": "#8a929d", "dark": "#39424e"}
Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]
Piece = tuple[int, int, int, int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """From values to colours: a ramp of steps between two values."""

    low: float
    high: float
    ramp: str = "cool"

    def edges(self) -> tuple[float, ...]:
        """Borders of the steps, one more than there are steps."""
        return tuple(self.low + (self.high - self.low) * at / STEPS for at in range(STEPS + 1))


@dataclass(frozen=True, kw_only=True, slots=True)
class Placed:
    """Where every GPU is: ``cells`` holds its number, -1 where there is none; ``labels`` are (x, y, text) of groups."""

    cells: Ints
    corners: Ints
    """Row of the first GPU and column of every node; -1 where it is not shown."""
    labels: tuple[tuple[float, float, str], ...]
    cell_width: float
    cell_height: float


def room(view: View) -> tuple[float, float]:
    """Width and height of the plot in pixels."""
    return max(280.0, view.width - 76.0), max(180.0, view.height * (0.6 if view.kiosk else 0.4))


def place(
    groups: Sequence[tuple[str, Sequence[int]]], gpus_of: Sequence[Sequence[int]], view: View
) -> Placed:
    """Groups of nodes in bands of equal width; ``gpus_of`` gives the GPUs of each node, top down.

    The number of bands is the one that makes cells nearest to squares. A group stays whole where it fits a band.
    """
    width, height = room(view)
    depth = max((len(gpus_of[node]) for _, nodes in groups for node in nodes), default=1)
    sizes = [len(nodes) for _, nodes in groups]
    columns, pieces = _arranged(sizes, depth, (width, height))
    bands = pieces[-1][1] + 1
    cell_width, cell_height = width / columns, max(2.0, (height / bands - LABEL_PIXELS) / depth)
    space = max(1, math.ceil(LABEL_PIXELS / cell_height))
    cells = np.full((bands * (depth + space), columns), -1, dtype=np.int32)
    corners = np.full((len(gpus_of), 2), -1, dtype=np.int32)
    labels = []
    for group, band, x, first, count in pieces:
        name, nodes = groups[group]
        top = band * (depth + space) + space
        for offset, node in enumerate(nodes[first : first + count]):
            own = gpus_of[node]
            cells[top : top + len(own), x + offset] = own
            corners[node] = top, x + offset
        labels.append((x - 0.5, top - 0.5, _fitted(name, count * cell_width, view)))
    return Placed(
        cells=cells,
        corners=corners,
        labels=tuple(label for label in labels if label[2]),
        cell_width=cell_width,
        cell_height=height / cells.shape[0],
    )


def _arranged(sizes: Sequence[int], depth: int, room_pixels: tuple[float, float]) -> tuple[int, list[Piece]]:
    """Columns, and where each piece of a group is, such that cells are nearest to squares."""
    width, height = room_pixels
    best: tuple[float, int, list[Piece]] | None = None
    for wanted in range(1, 61):
        columns = max(math.ceil(sum(size + 1 for size in sizes) / wanted), 1)
        pieces = _pieces(sizes, columns)
        bands = pieces[-1][1] + 1
        high = (height / bands - LABEL_PIXELS) / depth
        if best is not None and high < 2.0:
            break
        widest = max(columns, math.ceil(width / (max(high, 2.0) * WIDEST_CELL)))
        off = abs(math.log(width / widest / max(high, 2.0)))
        if best is None or off < best[0] - CLEARLY:
            best = (off, widest, pieces)
    assert best is not None  # noqa: S101 - the first try always gives one
    return best[1], best[2]


def _pieces(sizes: Sequence[int], columns: int) -> list[Piece]:
    """(group, band, column, first node, nodes) of every piece; one free column stands between groups."""
    found: list[Piece] = []
    band = x = 0
    for group, size in enumerate(sizes):
        if x and x + size > columns and (size <= columns or columns - x < 3):
            band, x = band + 1, 0
        first = 0
        while first < size:
            count = min(size - first, columns - x)
            found.append((group, band, x, first, count))
            first, x = first + count, x + count
            if first < size:
                band, x = band + 1, 0
        x += 1
        if x >= columns:
            band, x = band + 1, 0
    return found


def _fitted(name: str, pixels: float, view: View) -> str:
    """The name, shortened to its room; nothing where not even a few letters fit."""
    wide = view.font_px * 0.62
    letters = int(pixels // wide) + 1
    if len(name) <= letters:
        return name
    return f"{name[: letters - 1]}…" if letters >= 5 else ""


def coded(values: Sequence[float | None], reporting: Sequence[bool], scale: Scale) -> Bytes:
    """Every GPU's byte of the scale; values beyond its ends are at its ends."""
    numbers = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    share = (np.clip(numbers, scale.low, scale.high) - scale.low) / (scale.high - scale.low)
    codes = np.where(np.isfinite(numbers), np.round(np.nan_to_num(share) * TOP), UNKNOWN).astype(np.uint8)
    codes[~np.array(reporting, dtype=np.bool_)] = SILENT
    return codes


def filled(placed: Placed, codes: Bytes) -> Bytes:
    """The picture: the byte of the GPU in each cell."""
    with_none = np.concatenate([codes, np.array([NOTHING], dtype=np.uint8)])
    picture: Bytes = with_none[placed.cells]
    return picture


def ramp_scale(scale: Scale, view: View) -> list[list[Any]]:
    """Plotly's colours of a value's bytes."""
    colors = RAMPS[view.theme][scale.ramp]
    stops: list[list[Any]] = []
    for at, color in enumerate(colors):
        stops += [[at / STEPS * TOP / 255, color], [((at + 1) / STEPS) * TOP / 255, color]]
    return [*stops, *_special(view, TOP)]


def kind_scale(colors: Sequence[str], view: View) -> list[list[Any]]:
    """Plotly's colours where bytes are kinds, 0 to the number of colours."""
    stops: list[list[Any]] = []
    for at, color in enumerate(colors):
        stops += [[max(0.0, (at - 0.5) / 255), color], [(at + 0.5) / 255, color]]
    return [*stops, *_special(view, len(colors) - 1)]


def _special(view: View, last: int) -> list[list[Any]]:
    empty, gone, nothing = EMPTY[view.theme], GONE[view.theme], "rgba(0,0,0,0)"
    return [
        [(last + 0.5) / 255, empty], [(UNKNOWN + 1) / 255, empty], [(UNKNOWN + 1) / 255, gone],
        [(SILENT + 1) / 255, gone], [(SILENT + 1) / 255, nothing], [1.0, nothing],
    ]  # fmt: skip


def figure(placed: Placed, picture: Bytes, colors: list[list[Any]], view: View) -> frame.Figure:
    """The heat-map, with crosses on what does not report and strokes on what is unknown, where they are few."""
    rows, columns = picture.shape
    gap = 1 if min(placed.cell_width, placed.cell_height) >= 5 else 0
    trace = {
        "type": "heatmap",
        "z": {
            "dtype": "u1",
            "bdata": base64.b64encode(np.ascontiguousarray(picture).tobytes()).decode(),
            "shape": f"{rows}, {columns}",
        },
        "zmin": 0, "zmax": 255, "colorscale": colors, "showscale": False, "xgap": gap, "ygap": gap,
        "hoverinfo": "text", "hoverongaps": False,
    }  # fmt: skip
    marks = [
        _marks(picture, SILENT, "x-thin", placed, view),
        _marks(picture, UNKNOWN, "line-ne", placed, view),
    ]
    hidden = {"visible": False, "showgrid": False, "fixedrange": True}
    notes = [
        {
            "x": x, "y": y, "text": text, "showarrow": False, "xanchor": "left", "yanchor": "bottom",
            "yshift": -1, "borderpad": 0, "font": {"size": view.font_px * 0.9, "color": view.palette["muted"]},
        }
        for x, y, text in placed.labels
    ]  # fmt: skip
    drawn = frame.layout(
        view,
        margin={"l": 0, "r": 0, "t": 0, "b": 2},
        xaxis={**hidden, "range": [-0.5, columns - 0.5]},
        yaxis={**hidden, "range": [rows - 0.5, -0.5]},
        annotations=notes,
    )
    return {"data": [trace, *(mark for mark in marks if mark)], "layout": {**drawn, "hovermode": "closest"}}


def _marks(picture: Bytes, code: int, symbol: str, placed: Placed, view: View) -> dict[str, Any] | None:
    rows, columns = np.nonzero(picture == code)
    if not rows.size or rows.size > MOST_MARKS:
        return None
    size = max(3.0, min(placed.cell_width, placed.cell_height) * 0.55)
    return {
        "type": "scatter", "mode": "markers", "x": columns.tolist(), "y": rows.tolist(), "hoverinfo": "skip",
        "marker": {"symbol": symbol, "size": size, "line": {"width": 1, "color": view.palette["muted"]}},
    }  # fmt: skip


def packed(values: npt.NDArray[Any]) -> str:
    """An array as base64, for the browser's own reading."""
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()
