"""Lines over time with their names at the right edge: activity and MFU, traffic, power."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flopwatch.query import Series
from flopwatch_dashboard import wording
from flopwatch_dashboard.figures import frame
from flopwatch_dashboard.view import View


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One column of a series: its colour tokens, its label, how its values read."""

    column: str
    color: str
    label_color: str
    shown: str
    """Newest value as text."""
    hover: str
    """Plotly's format of a value under the pointer."""
    width: float = 1.3
    filled: bool = False
    second_axis: bool = False


USUAL_SHARE = 0.98
LABELS_APART = 0.115
"""Labels are at least this share of the axis from each other: a line of text at the height of a card."""
ACTIVITY = (
    ("kernel_active", "kernel", 1.3, False),
    ("tensor_active", "tensor", 1.3, False),
    ("mfu", "mfu", 2.2, True),
    ("hardware", "second", 1.6, False),
)


def activity(series: Series, target: float | None, zone_name: str, view: View) -> frame.Figure:
    """Kernel activity, tensor activity and MFU on one axis of percent, with the target."""
    lines = [
        Line(
            column=column,
            color=token,
            label_color=f"{token}text",
            shown=wording.percent(frame.last(series.columns.get(column, ())), 0),
            hover="%{y:.1%}",
            width=width,
            filled=filled,
        )
        for column, token, width, filled in ACTIVITY
    ]
    return ratios(series, lines, target, zone_name, view)


def ratios(
    series: Series, lines: Sequence[Line], target: float | None, zone_name: str, view: View
) -> frame.Figure:
    """Lines that are ratios, drawn in percent from zero; the target dashed and named."""
    known = [line for line in lines if _has_data(series, line)]
    if not known:
        return frame.empty(view, view.t("series.no_data"))
    top = _top(series, known, target)
    return {
        "data": [_trace(series, line, zone_name, view) for line in known],
        "layout": frame.layout(
            view,
            margin={
                "l": view.font_px * 3.4,
                "r": _right(view),
                "t": view.font_px * 0.8,
                "b": view.font_px * 2.1,
            },
            xaxis={**frame.time_axis(view), **_window(series, view, zone_name)},
            yaxis=frame.percent_axis(top),
            shapes=[]
            if target is None
            else [frame.rule(target, view.palette["text"], width=1.2, dash="5px,4px")],
            annotations=[*_labels(series, known, target, top, view), *_beyond(series, known, top, view)],
        ),
    }


def amounts(
    series: Series, lines: Sequence[Line], zone_name: str, view: View, rules: Sequence[float] = ()
) -> frame.Figure:
    """Lines of amounts from zero with dashed rules; those marked so have an axis of percent of their own."""
    known = [line for line in lines if _has_data(series, line)]
    if not known:
        return frame.empty(view, view.t("series.no_data"))
    axis = {"rangemode": "tozero", "tickformat": "~s", "nticks": 5}
    size, right = view.font_px, any(line.second_axis for line in known)
    second = {
        **frame.percent_axis(), "overlaying": "y", "side": "right", "showgrid": False, "zeroline": False,
        "fixedrange": True, "tickfont": {"color": view.palette["muted"], "size": size},
    }  # fmt: skip
    return {
        "data": [_trace(series, line, zone_name, view) for line in known],
        "layout": frame.layout(
            view,
            margin={"l": size * 4, "r": size * 3.4 if right else 10, "t": size * 2.2, "b": size * 2.1},
            xaxis={**frame.time_axis(view), **_window(series, view, zone_name)},
            yaxis=axis,
            yaxis2=second,
            shapes=[frame.rule(y, view.palette["muted"], width=1, dash="4px,4px") for y in rules],
            annotations=_legend(known, view),
        ),
    }


def mfu(series: Series, target: float | None, zone_name: str, view: View) -> frame.Figure:
    """The MFU alone, with its target."""
    shown = wording.percent(frame.last(series.columns.get("mfu", ())), 0)
    line = Line(
        column="mfu",
        color="mfu",
        label_color="mfutext",
        shown=shown,
        hover="%{y:.1%}",
        width=2.0,
        filled=True,
    )
    return ratios(series, [line], target, zone_name, view)


def at_end(series: Series, column: str) -> float | None:
    """The newest known value of a column, smoothed over the last few points."""
    return frame.last(series.columns.get(column, ()))


def _has_data(series: Series, line: Line) -> bool:
    return any(value is not None for value in series.columns.get(line.column, ()))


def _top(series: Series, lines: Sequence[Line], target: float | None) -> float:
    """The axis ends at 100 % or below; a few points beyond 100 % do not flatten all others, many lift the axis."""
    values = sorted(v for line in lines for v in series.columns[line.column] if v is not None)
    highest = max(values[-1], target or 0.0)
    usual = max(values[int(len(values) * USUAL_SHARE)], target or 0.0)
    if usual > 1.0:
        return highest * 1.05
    return next(top for top in (0.25, 0.5, 0.75, 1.0) if highest * 1.1 <= top or top == 1.0)


def _beyond(series: Series, lines: Sequence[Line], top: float, view: View) -> list[dict[str, Any]]:
    """Values that the axis does not reach are said, not dropped."""
    values = [v for line in lines for v in series.columns[line.column] if v is not None and v > top]
    if not values:
        return []
    text = view.t("series.beyond", count=len(values), most=wording.percent(max(values), 0))
    note = {
        "x": 0, "y": 1, "xref": "paper", "yref": "paper", "text": text, "showarrow": False, "xanchor": "left",
        "yanchor": "top", "font": {"size": view.font_px, "color": view.palette["belowtext"]},
    }  # fmt: skip
    return [note]


def _trace(series: Series, line: Line, zone_name: str, view: View) -> dict[str, Any]:
    values = series.columns[line.column]
    kept = frame.thin(values, view.asked.points)
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines",
        "x": frame.times([series.time_seconds[i] for i in kept], zone_name),
        "y": frame.array([values[i] for i in kept]),
        "name": view.t(f"series.{line.column}"),
        "line": {"color": view.palette[line.color], "width": line.width},
        "hovertemplate": line.hover,
        "connectgaps": False,
    }
    if line.filled:
        trace |= {"fill": "tozeroy", "fillcolor": view.palette["fill"]}
    if line.second_axis:
        trace["yaxis"] = "y2"
    return trace


def _window(series: Series, view: View, zone_name: str) -> dict[str, Any]:
    """The whole asked range, also where the data begin later: a gap must look like one."""
    if not series.time_seconds:
        return {}
    end = series.time_seconds[-1]
    bounds = (end - view.asked.seconds, end)
    begin_shown, end_shown = (wording.local(b, zone_name).strftime("%Y-%m-%d %H:%M:%S") for b in bounds)
    return {"range": [begin_shown, end_shown]}


def _right(view: View) -> float:
    return view.font_px * (9.7 if view.lang == "en" else 12.4)


def _labels(
    series: Series, lines: Sequence[Line], target: float | None, top: float, view: View
) -> list[dict[str, Any]]:
    wanted, texts = [], []
    for line in lines:
        wanted.append(frame.last(series.columns[line.column]) or 0.0)
        name = view.t(f"series.{line.column}")
        texts.append((f"{name} <b>{line.shown}</b>", view.palette[line.label_color]))
    if target is not None:
        wanted.append(target)
        texts.append((view.t("series.target", target=wording.line_percent(target)), view.palette["text"]))
    places = frame.spread(wanted, top * LABELS_APART, top * 0.03, top * 0.97)
    return [frame.label(place, text, color, view) for place, (text, color) in zip(places, texts, strict=True)]


def _legend(lines: Sequence[Line], view: View) -> list[dict[str, Any]]:
    """Names and newest values in one row above the plot, from its left to its right, in the colour of their line."""
    notes = []
    last = max(1, len(lines) - 1)
    for i, line in enumerate(lines):
        text = f"{view.t(f'series.{line.column}')} <b>{line.shown}</b>"
        notes.append(
            {
                "x": i / last, "y": 1, "xref": "paper", "yref": "paper", "text": text, "showarrow": False,
                "xanchor": "left" if i == 0 else "right" if i == last else "center", "yanchor": "bottom", "yshift": 3,
                "font": {"size": view.font_px, "color": view.palette[line.label_color]},
            }
        )  # fmt: skip
    return notes
