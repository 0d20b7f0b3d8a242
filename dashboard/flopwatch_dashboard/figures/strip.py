"""What a job's GPU time was, as one strip over time, with the events above it."""

from typing import Any

from flopwatch.query import Job
from flopwatch_dashboard import wording
from flopwatch_dashboard.figures import events, frame
from flopwatch_dashboard.view import View


def strip(job: Job, view: View) -> frame.Figure:
    """Stretches in the colours of their classes, and a symbol for each event."""
    if not job.strip:
        return frame.empty(view, view.t("series.no_data"))
    zone = job.status.time_zone
    begins = [stretch.start_seconds for stretch in job.strip]
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": [0] * len(begins),
        "base": frame.times(begins, zone),
        "x": frame.array([1_000.0 * (s.end_seconds - s.start_seconds) for s in job.strip], "float64"),
        "marker": _marker(job, view),
        "customdata": [_note(job, i, view) for i in range(len(begins))],
        "hovertemplate": "%{customdata}<extra></extra>",
        "width": 0.9,
    }
    traces = [bars, events.symbols(events.drawn(job.marks), 0.75, zone, view)] if job.marks else [bars]
    low, high = job.strip[0].start_seconds, job.strip[-1].end_seconds
    window = [wording.local(edge, zone).strftime("%Y-%m-%d %H:%M:%S") for edge in (low, high)]
    layout = frame.layout(
        view,
        margin={"l": 8, "r": 8, "t": 2, "b": view.font_px * 2.1},
        hovermode="closest",
        barmode="overlay",
        xaxis={**frame.time_axis(view), "range": window},
        yaxis={"visible": False, "range": [-0.5, 1.05 if job.marks else 0.5]},
    )
    return {"data": traces, "layout": layout}


def description(job: Job, view: View) -> str:
    """The strip in words: how much of the time was of each class, and how many events there were."""
    total = sum(stretch.end_seconds - stretch.start_seconds for stretch in job.strip)
    by_class: dict[str, float] = {}
    for stretch in job.strip:
        seconds = stretch.end_seconds - stretch.start_seconds
        by_class[stretch.ledger_class] = by_class.get(stretch.ledger_class, 0.0) + seconds
    parts = [
        f"{view.t('class.' + name)} {wording.percent(seconds / total, 0)}"
        for name, seconds in by_class.items()
        if total > 0
    ]
    return view.t("job.strip_aria", parts=", ".join(parts) or wording.UNKNOWN)


def _marker(job: Job, view: View) -> dict[str, Any]:
    names = [stretch.ledger_class for stretch in job.strip]
    return {
        "color": [view.palette[name] for name in names],
        "line": {"width": 0},
        "pattern": {
            "shape": ["/" if name == "unknown" else "" for name in names],
            "size": 5,
            "solidity": 0.35,
            "fgcolor": view.palette["card"],
        },
    }


def _note(job: Job, index: int, view: View) -> str:
    stretch = job.strip[index]
    begin, end = (
        wording.moment(t, job.status.time_zone, view.lang)
        for t in (stretch.start_seconds, stretch.end_seconds)
    )
    length = view.duration(stretch.end_seconds - stretch.start_seconds)
    words = f"<b>{view.t('class.' + stretch.ledger_class)}</b> · {view.bucket(stretch.bucket)}"
    return f"{words}<br>{begin} – {end} · {length}"  # noqa: RUF001 - a range takes an en dash
