"""The days that the sustained state is made from, against U*."""

from collections.abc import Sequence
from typing import Any

from flopwatch.answers.economy import GroupEconomy
from flopwatch.query import Day
from flopwatch_dashboard import wording
from flopwatch_dashboard.figures import frame
from flopwatch_dashboard.view import View


def sustained(group: GroupEconomy, days: Sequence[Day], view: View) -> frame.Figure:
    """A bar a day, darker at or over U*; days that do not count are pale, days without data hatched."""
    shown = _known(days)
    if not shown:
        return frame.empty(view, view.t("econ.days_none"))
    size = view.font_px
    return {
        "data": [_bars(group, shown, view), _unknown(group, shown, view)],
        "layout": frame.layout(
            view,
            margin={"l": size * 3.8, "r": size * 6.4, "t": size * 0.8, "b": size * 2.2},
            barmode="overlay",
            bargap=0.18,
            hovermode="closest",
            xaxis=frame.day_axis([day.day for day in shown], view),
            yaxis=frame.percent_axis(),
            shapes=[frame.rule(y, view.palette[token], **line) for y, _, token, line in _rules(group, view)],
            annotations=_labels(group, view),
        ),
    }


def description(group: GroupEconomy, days: Sequence[Day], view: View) -> str:
    """The figure in words."""
    counted = [
        day.billable_ratio
        for day in _known(days)
        if day.valid and day.complete and day.billable_ratio is not None
    ]
    if not counted:
        return view.t("econ.days_none")
    above = 0 if group.u_star is None else sum(ratio >= group.u_star for ratio in counted)
    return view.t(
        "econ.days_aria",
        valid=len(counted),
        above=above if group.has_line else wording.UNKNOWN,
        line=_line(group, view),
    )


def _known(days: Sequence[Day]) -> Sequence[Day]:
    """From the first day that has data on; nothing where none has."""
    first = next((i for i, day in enumerate(days) if day.billable_ratio is not None), len(days))
    return days[first:]


def _line(group: GroupEconomy, view: View) -> str:
    return view.line(group.u_star) if group.has_line else wording.UNKNOWN


def _bars(group: GroupEconomy, days: Sequence[Day], view: View) -> dict[str, Any]:
    star = 1.01 if group.u_star is None else group.u_star
    return {
        "type": "bar",
        "x": [day.day for day in days],
        "y": frame.array([day.billable_ratio for day in days]),
        "marker": {
            "color": [
                view.palette["good" if (day.billable_ratio or 0.0) >= star else "under"] for day in days
            ],
            "opacity": [1.0 if day.valid and day.complete else 0.5 for day in days],
        },
        "customdata": [_note(day, view) for day in days],
        "hovertemplate": f"%{{x|{frame.day_format(view)}}}: %{{customdata}}<extra></extra>",
    }


def _note(day: Day, view: View) -> str:
    shown = wording.percent(day.billable_ratio)
    return shown if day.valid else f"{shown} · {view.t('econ.day_uncounted')}"


def _unknown(group: GroupEconomy, days: Sequence[Day], view: View) -> dict[str, Any]:
    """Days without data do not read as zero."""
    height = group.u_star or 1.0
    return {
        "type": "bar",
        "x": [day.day for day in days],
        "y": frame.array([height if day.billable_ratio is None else None for day in days]),
        "marker": {
            "color": "rgba(0,0,0,0)",
            "pattern": {"shape": "/", "size": 5, "solidity": 0.25, "fgcolor": view.palette["axis"]},
        },
        "hovertemplate": view.t("econ.days_none") + "<extra></extra>",
    }


def _rules(group: GroupEconomy, view: View) -> list[tuple[float, str, str, dict[str, Any]]]:
    """(height, words, token of the line's colour, its style) of U* and of the mean, where they are known."""
    rules: list[tuple[float, str, str, dict[str, Any]]] = []
    if group.has_line and group.u_star is not None:
        rules.append((group.u_star, f"U*<br><b>{view.line(group.u_star)}</b>", "below", {"width": 1.8}))
    if group.utilisation_ratio is not None:
        mean = f"{view.t('econ.days_mean')}<br><b>{wording.percent(group.utilisation_ratio)}</b>"
        rules.append((group.utilisation_ratio, mean, "text", {"width": 1.2, "dash": "5px,4px"}))
    return rules


def _labels(group: GroupEconomy, view: View) -> list[dict[str, Any]]:
    rules = _rules(group, view)
    places = frame.spread([y for y, _, _, _ in rules], 0.26, 0.12, 0.9)
    return [
        frame.label(place, text, view.palette["belowtext" if token == "below" else token], view)  # noqa: S105  a colour
        for place, (_, text, token, _) in zip(places, rules, strict=True)
    ]
