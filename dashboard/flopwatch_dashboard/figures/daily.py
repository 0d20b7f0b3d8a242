"""Daily utilisation against the breakeven line."""

from collections.abc import Sequence
from typing import Any

from flopwatch.query import Day, Fleet, Verdict
from flopwatch_dashboard import wording
from flopwatch_dashboard.figures import frame
from flopwatch_dashboard.view import View


def daily(fleet: Fleet, view: View) -> frame.Figure:
    """Bars of U_bill a day, the missing part up to the line shaded, the line, and the 30-day mean."""
    days, line = fleet.days, fleet.verdict.line_ratio
    if not any(day.billable_ratio is not None for day in days):
        return frame.empty(view, view.t("series.no_data"))
    names = [day.day for day in days]
    top = max([0.9, line + 0.1, *(day.billable_ratio or 0.0 for day in days)])
    traces = [
        _bars(days, names, line, view),
        _shortfall(days, names, line, view),
        _unknown(days, names, line, view),
    ]
    mean = fleet.verdict.mean_30d_ratio
    layout = frame.layout(
        view,
        margin={
            "l": view.font_px * 3.4,
            "r": view.font_px * (7.4 if view.lang == "en" else 6.4),
            "t": view.font_px * 0.8,
            "b": view.font_px * 2.1,
        },
        barmode="stack",
        bargap=0.22,
        xaxis=frame.day_axis(names, view),
        yaxis=frame.percent_axis(min(1.0, top)),
        shapes=_rules(line, mean, view),
        annotations=_labels(fleet.verdict, mean, view),
    )
    return {"data": traces, "layout": layout}


def description(fleet: Fleet, view: View) -> str:
    """The figure in words, for those who do not see it."""
    known = [day.billable_ratio for day in fleet.days if day.billable_ratio is not None]
    line = fleet.verdict.line_ratio
    return view.t(
        "fleet.daily_aria",
        days=len(fleet.days),
        mean=wording.percent(fleet.verdict.mean_30d_ratio),
        line=_line_name(fleet.verdict, view),
        below=sum(ratio < line for ratio in known),
        missing=len(fleet.days) - len(known),
    )


def _bars(days: Sequence[Day], names: list[str], line: float, view: View) -> dict[str, Any]:
    colors = [view.palette["good" if (day.billable_ratio or 0.0) >= line else "under"] for day in days]
    return {
        "type": "bar",
        "x": names,
        "y": frame.array([day.billable_ratio for day in days]),
        "marker": {"color": colors, "opacity": [1.0 if day.complete and day.valid else 0.55 for day in days]},
        "customdata": [_note(day, view) for day in days],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _note(day: Day, view: View) -> str:
    if day.billable_ratio is None:
        return view.t("fleet.day_unknown")
    told = [wording.percent(day.billable_ratio)]
    if not day.valid:
        told.append(view.t("fleet.day_partial"))
    strict = day.billable_without_barely_used_ratio
    if strict is not None and strict != day.billable_ratio:
        told.append(view.t("fleet.day_barely", value=wording.percent(strict)))
    return "<br>".join([*told, _standing(day, view)])


def _standing(day: Day, view: View) -> str:
    """Whether the figure of the day may still change, and whether it did after it was final."""
    if not day.frozen:
        return view.t("fleet.day_open")
    if day.revised_seconds is None:
        return view.t("fleet.day_frozen")
    time = wording.moment(day.revised_seconds, view.shown_zone, view.lang)
    return view.t("fleet.day_revised", revision=day.revision or 1, time=time)


def _shortfall(days: Sequence[Day], names: list[str], line: float, view: View) -> dict[str, Any]:
    gaps = [None if day.billable_ratio is None else max(0.0, line - day.billable_ratio) for day in days]
    return {
        "type": "bar",
        "x": names,
        "y": frame.array(gaps),
        "marker": {"color": view.palette["gap"]},
        "hoverinfo": "skip",
    }


def _unknown(days: Sequence[Day], names: list[str], line: float, view: View) -> dict[str, Any]:
    """Days without data are hatched, so that they do not read as zero."""
    return {
        "type": "bar",
        "x": names,
        "y": frame.array([line if day.billable_ratio is None else None for day in days]),
        "marker": {
            "color": "rgba(0,0,0,0)",
            "pattern": {"shape": "/", "size": 5, "solidity": 0.25, "fgcolor": view.palette["axis"]},
        },
        "hovertemplate": view.t("fleet.day_unknown") + "<extra></extra>",
    }


def _rules(line: float, mean: float | None, view: View) -> list[dict[str, Any]]:
    rules = [frame.rule(line, view.palette["below"], width=1.8)]
    if mean is not None:
        rules.append(frame.rule(mean, view.palette["text"], width=1.2, dash="5px,4px"))
    return rules


def _line_name(verdict: Verdict, view: View) -> str:
    return view.t("verdict.no_line") if verdict.never else wording.line_percent(verdict.line_ratio)


def _labels(verdict: Verdict, mean: float | None, view: View) -> list[dict[str, Any]]:
    line = verdict.line_ratio
    wanted = [line] if mean is None else [line, mean]
    places = frame.spread(wanted, *((0.3, 0.05, 0.78) if view.narrow else (0.17, 0.05, 0.95)))
    texts = [
        (view.t("fleet.line_label", line=_line_name(verdict, view)), view.palette["belowtext"]),
        (view.t("fleet.mean_label", mean=wording.percent(mean)), view.palette["text"]),
    ]
    return [
        frame.label(place, text, color, view) for place, (text, color) in zip(places, texts, strict=False)
    ]
