"""Events of a job on the time axis of its curves: a symbol for each, a line where the run was cut."""

from collections.abc import Sequence
from typing import Any

from flopwatch.query import Mark
from flopwatch_dashboard import wording
from flopwatch_dashboard.event_words import mark_words
from flopwatch_dashboard.figures import frame
from flopwatch_dashboard.view import View

SYMBOLS = {"restart": "triangle-down", "checkpoint": "diamond", "evaluation": "square", "alert": "x"}
COLORS = {"restart": "critical", "alert": "warning", "checkpoint": "good", "evaluation": "tensor"}
CUTS = ("restart",)
MOST_DRAWN = 240
WEIGHT = {"restart": 0, "alert": 1, "event": 2, "evaluation": 3, "checkpoint": 4}


def drawn(marks: Sequence[Mark]) -> list[Mark]:
    """The marks that are drawn, oldest first: of very many, what cut the run before what is routine."""
    if len(marks) <= MOST_DRAWN:
        return list(marks)
    weighty = sorted(marks, key=lambda mark: (WEIGHT.get(mark.kind, 2), -mark.time_seconds))
    return sorted(weighty[:MOST_DRAWN], key=lambda mark: mark.time_seconds)


def on_curve(figure: frame.Figure, marks: Sequence[Mark], zone: str, view: View) -> frame.Figure:
    """A curve with the events along its upper edge; a figure without an axis stays as it is."""
    upper = figure["layout"]["yaxis"].get("range")
    shown = drawn(marks)
    if not upper or not shown:
        return figure
    layout = {**figure["layout"], "shapes": [*figure["layout"].get("shapes", ()), *_cuts(shown, zone, view)]}
    return {"data": [*figure["data"], symbols(shown, upper[1] * 0.965, zone, view)], "layout": layout}


def symbols(marks: Sequence[Mark], height: float, zone: str, view: View) -> dict[str, Any]:
    """A row of symbols, each with its words under the pointer."""
    return {
        "type": "scatter",
        "mode": "markers",
        "x": frame.times([mark.time_seconds for mark in marks], zone),
        "y": [height] * len(marks),
        "marker": {
            "symbol": [SYMBOLS.get(mark.kind, "circle") for mark in marks],
            "size": view.font_px * 0.75,
            "color": [view.palette[COLORS.get(mark.kind, "text")] for mark in marks],
            "line": {"width": 1, "color": view.palette["card"]},
        },
        "customdata": [words(mark, view) for mark in marks],
        "hovertemplate": "%{customdata}<extra></extra>",
        "cliponaxis": False,
    }


def words(mark: Mark, view: View) -> str:
    """``checkpoint: step 10,000 · 3 min``."""
    told = mark_words(mark, view)
    kind = view.code("mark", mark.kind)
    return f"{kind}: {told}" if told else kind


def counts(marks: Sequence[Mark], view: View) -> str:
    """How many events of each kind there were, for those who do not see the figure."""
    kinds = sorted({mark.kind for mark in marks}, key=lambda kind: WEIGHT.get(kind, 2))
    amounts = {kind: sum(mark.kind == kind for mark in marks) for kind in kinds}
    return ", ".join(f"{view.code('mark', kind)} {amount}" for kind, amount in amounts.items())


def _cuts(marks: Sequence[Mark], zone: str, view: View) -> list[dict[str, Any]]:
    line = {"color": view.palette["critical"], "width": 1, "dash": "2px,3px"}
    times = [
        wording.local(mark.time_seconds, zone).strftime("%Y-%m-%d %H:%M:%S")
        for mark in marks
        if mark.kind in CUTS
    ]
    return [
        {"type": "line", "x0": time, "x1": time, "y0": 0, "y1": 1, "yref": "paper", "line": line}
        for time in times
    ]
