"""What every figure has in common: plain dicts, typed arrays, direct labels, no Plotly template."""

import base64
import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np

from flopwatch_dashboard import wording
from flopwatch_dashboard.view import View

FONTS = "Inter, system-ui, 'Segoe UI', 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', sans-serif"
Figure = dict[str, Any]


def array(values: Sequence[float | None], dtype: str = "float32") -> dict[str, str]:
    """The values as Plotly's base64 typed array; ``None`` becomes a gap."""
    numbers = np.array([np.nan if value is None else value for value in values], dtype=dtype)
    return {"dtype": dtype[0] + str(numbers.itemsize), "bdata": base64.b64encode(numbers.tobytes()).decode()}


def times(seconds: Sequence[float], zone_name: str) -> dict[str, str]:
    """Event times as the milliseconds Plotly draws, shifted so that the axis reads in that zone."""
    zone = wording.zone(zone_name)
    shifted = [1_000.0 * (s + _offset(s, zone)) for s in seconds]
    return array(shifted, "float64")


def _offset(seconds: float, zone: datetime.tzinfo) -> float:
    moment = datetime.datetime.fromtimestamp(seconds, zone)
    offset = moment.utcoffset()
    return offset.total_seconds() if offset else 0.0


def thin(values: Sequence[float | None], limit: int) -> list[int]:
    """Indices to keep: the smallest and the largest of each bucket, in order, so that dips stay.

    Buckets with only gaps keep their first index. Short series are kept whole.
    """
    count = len(values)
    if count <= limit:
        return list(range(count))
    numbers = np.array([np.nan if value is None else value for value in values], dtype=float)
    kept: set[int] = {0, count - 1}
    for part in np.array_split(np.arange(count), max(1, limit // 2)):
        known = part[~np.isnan(numbers[part])]
        if known.size == 0:
            kept.add(int(part[0]))
            continue
        kept.update((int(known[numbers[known].argmin()]), int(known[numbers[known].argmax()])))
    return sorted(kept)


def layout(view: View, **changes: Any) -> dict[str, Any]:
    """The layout of a figure; ``xaxis`` and ``yaxis`` are merged, other keys replace."""
    palette, size = view.palette, view.font_px
    axis = {
        "gridcolor": palette["grid"], "linecolor": palette["axis"], "zeroline": False, "fixedrange": True, "ticks": "",
        "ticklabelstandoff": 3,
        "tickfont": {"color": palette["muted"], "size": size},
    }  # fmt: skip
    x_axis = {**axis, "showgrid": False, **changes.pop("xaxis", {})}
    y_axis = {**axis, **changes.pop("yaxis", {})}
    return {
        "font": {"family": FONTS, "size": size, "color": palette["text"]},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": size * 3.4, "r": 10, "t": size * 0.8, "b": size * 2.1},
        "showlegend": False,
        "hovermode": "x unified",
        "hoverlabel": {
            "bgcolor": palette["tip"],
            "font": {"color": palette["tiptext"], "size": size},
            "bordercolor": "rgba(0,0,0,0)",
        },
        "uirevision": view.shown_range,
        "autosize": True,
        "xaxis": x_axis,
        "yaxis": y_axis,
        **changes,
    }


def time_axis(view: View) -> dict[str, Any]:
    """A date axis whose ticks suit the range."""
    long = view.asked.seconds > 2 * 86_400
    day = day_format(view)
    return {
        "type": "date",
        "tickformat": day if long else "%H:%M",
        "nticks": 7,
        "hoverformat": f"{day} %H:%M",
    }


def day_format(view: View) -> str:
    """How an axis writes a day: ``8 Nov``, or ``11月8日``."""
    return "%-m月%-d日" if view.lang == "zh" else "%-d %b"


DAY_MILLISECONDS = 86_400_000


def day_axis(days: Sequence[str], view: View) -> dict[str, Any]:
    """An axis of ISO days whose ticks are whole days, from the first on."""
    most = 5 if view.narrow else 7
    every = next((step for step in (1, 2, 7, 14, 28) if len(days) / step <= most), 56)
    return {
        "type": "date",
        "tickformat": day_format(view),
        "tick0": days[0],
        "dtick": every * DAY_MILLISECONDS,
    }


def percent_axis(top: float = 1.0) -> dict[str, Any]:
    """An axis of ratios from zero, drawn in percent."""
    step = next(step for step in (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, top) if top / step <= 5 + 1e-9)
    ticks = [round(step * i, 3) for i in range(int(top / step + 1e-9) + 1)]
    return {"range": [0, top], "tickvals": ticks, "ticktext": [f"{tick * 100:.0f}%" for tick in ticks]}


def rule(y: float, color: str, **line: Any) -> dict[str, Any]:
    """A horizontal reference line across the plot."""
    style = {"color": color, "width": 1.4, **line}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y, "line": style}


def label(y: float, text: str, color: str, view: View) -> dict[str, Any]:
    """A label at the right edge of the plot."""
    return {
        "x": 1, "xref": "paper", "y": y, "text": text, "showarrow": False, "align": "left", "xanchor": "left",
        "yanchor": "middle", "xshift": view.font_px * 0.55, "font": {"size": view.font_px, "color": color},
    }  # fmt: skip


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """The wanted positions moved apart until neighbours are ``gap`` from each other, inside the bounds."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed = [min(max(wanted[i], low), high) for i in order]
    for i in range(1, len(placed)):
        placed[i] = max(placed[i], placed[i - 1] + gap)
    for i in range(len(placed) - 1, -1, -1):
        ceiling = high if i == len(placed) - 1 else placed[i + 1] - gap
        placed[i] = min(placed[i], ceiling)
    result = [0.0] * len(wanted)
    for place, i in zip(placed, order, strict=True):
        result[i] = place
    return result


def last(values: Sequence[float | None], over: int = 12) -> float | None:
    """The mean of the newest known values, None where there is none."""
    known = [value for value in values[-over:] if value is not None]
    return sum(known) / len(known) if known else None


def empty(view: View, note: str = "") -> Figure:
    """A figure without data that says so."""
    hidden = {"visible": False}
    figure: Figure = {"data": [], "layout": layout(view, xaxis=hidden, yaxis=hidden)}
    if note:
        figure["layout"]["annotations"] = [
            {
                "x": 0.5, "y": 0.5, "xref": "paper", "yref": "paper", "text": note, "showarrow": False,
                "font": {"size": view.font_px, "color": view.palette["muted"]},
            }
        ]  # fmt: skip
    return figure
