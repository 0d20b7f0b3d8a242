"""Which inputs move U*, the strongest on top."""

from collections.abc import Sequence
from typing import Any

from flopwatch.answers.economy import GroupEconomy, Sensitivity, Variation
from flopwatch_dashboard import wording
from flopwatch_dashboard.figures import frame
from flopwatch_dashboard.view import View

MOST_ROWS = 9


def tornado(group: GroupEconomy, view: View) -> frame.Figure:
    """A bar from U* to where each change puts it; what puts it beyond all hours ends at 100 % and says *never*."""
    rows = rows_of(group)
    if not rows:
        return frame.empty(view, view.t("econ.curve_none"))
    base = 1.0 if group.u_star is None else group.u_star
    size, width = view.font_px, 9.8 if view.lang == "en" else 9.0
    low, high = _bounds(rows, base)
    return {
        "data": [_bars(rows, base, view)],
        "layout": frame.layout(
            view,
            margin={"l": size * width, "r": size * 1.2, "t": size * 1.6, "b": size * 0.4},
            hovermode="closest",
            bargap=0.28,
            barmode="overlay",
            xaxis={"showticklabels": False, "range": [low, high]},
            yaxis={
                "autorange": "reversed",
                "showgrid": False,
                "tickvals": list(range(len(rows))),
                "ticktext": [view.code("input", row.parameter) for row in rows],
                "tickfont": {"color": view.palette["text"], "size": size},
            },
            shapes=[
                {
                    "type": "line", "yref": "paper", "x0": base, "x1": base, "y0": 0, "y1": 1,
                    "line": {"color": view.palette["text"], "width": 1.2},
                }
            ],
            annotations=[_base_label(base, group, view), *_labels(rows, base, view)],
        ),
    }  # fmt: skip


def rows_of(group: GroupEconomy) -> tuple[Sensitivity, ...]:
    """The inputs that are drawn: those that move the line, the strongest first."""
    moving = (row for row in group.sensitivity if row.variations and row.swing != 0.0)
    return tuple(moving)[:MOST_ROWS]


def description(group: GroupEconomy, view: View) -> str:
    """The figure in words: each input with the lowest and the highest line."""
    told = [
        view.t(
            "econ.tornado_part",
            name=view.code("input", row.parameter),
            low=view.line(ends[0].u_star),
            high=view.line(ends[-1].u_star),
        )
        for row in rows_of(group)
        if (ends := sorted(row.variations, key=_place))
    ]
    return view.t("econ.tornado_aria", parts="; ".join(told))


def _place(change: Variation) -> float:
    return 1.0 if change.u_star is None else change.u_star


def _ends(row: Sensitivity, base: float) -> list[Variation]:
    """At most one change a side: the one that goes farthest."""
    below = [change for change in row.variations if _place(change) < base]
    above = [change for change in row.variations if _place(change) > base or change.u_star is None]
    return [*([min(below, key=_place)] if below else []), *([max(above, key=_place)] if above else [])]


def _bounds(rows: Sequence[Sensitivity], base: float) -> tuple[float, float]:
    """Room for the bars and their labels."""
    places = [base, *(_place(change) for row in rows for change in _ends(row, base))]
    low, high = min(places), max(places)
    room = max(high - low, 0.02) * 0.42
    return low - room, high + room


def _bars(rows: Sequence[Sensitivity], base: float, view: View) -> dict[str, Any]:
    found = [(i, change) for i, row in enumerate(rows) for change in _ends(row, base)]
    colors = [view.palette["good" if _place(change) < base else "below"] for _, change in found]
    return {
        "type": "bar",
        "orientation": "h",
        "y": [i for i, _ in found],
        "x": [_place(change) - base for _, change in found],
        "base": [base] * len(found),
        "marker": {
            "color": colors,
            "pattern": {
                "shape": ["/" if change.u_star is None else "" for _, change in found],
                "size": 5,
                "solidity": 0.35,
                "fgcolor": view.palette["card"],
            },
        },
        "customdata": [_note(rows[i], change, view) for i, change in found],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _note(row: Sensitivity, change: Variation, view: View) -> str:
    name = view.code("input", row.parameter)
    return f"<b>{name}</b> {row.base:g} → {change.value:g}<br>U* {view.line(change.u_star)}"


def _labels(rows: Sequence[Sensitivity], base: float, view: View) -> list[dict[str, Any]]:
    """The change and the line it makes, at the outer end of each bar."""
    labels = []
    for i, row in enumerate(rows):
        for change in _ends(row, base):
            left = _place(change) < base
            line = view.t("econ.never") if change.u_star is None else wording.percent(change.u_star, 0)
            labels.append(
                {
                    "x": _place(change), "y": i, "showarrow": False,
                    "text": line if view.narrow else f"{_change(change)} · {line}",
                    "xanchor": "right" if left else "left", "yanchor": "middle", "xshift": -4 if left else 4,
                    "font": {"size": view.font_px * 0.94, "color": view.palette["muted"]},
                }
            )  # fmt: skip
    return labels


def _change(change: Variation) -> str:
    word = change.change.removeprefix("=")
    return word.replace("x", "×") if word.startswith("x") else word  # noqa: RUF001


def _base_label(base: float, group: GroupEconomy, view: View) -> dict[str, Any]:
    text = view.t("econ.base", line=f"<b>{view.line(group.u_star)}</b>")
    return {
        "x": base, "y": 1, "yref": "paper", "text": text, "showarrow": False, "xanchor": "center",
        "yanchor": "bottom", "font": {"size": view.font_px, "color": view.palette["text"]},
    }  # fmt: skip
