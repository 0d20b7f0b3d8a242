"""What happened to a job: launches, checkpoints, evaluations, alerts, and events on its nodes."""

from collections.abc import Iterable

import numpy as np

from flopwatch.query import AlertRow, Mark
from flopwatch_collector.compute.demand import QUEUE_EVENT
from flopwatch_collector.compute.timeline import JobTimeline
from flopwatch_collector.model import PHASE_KINDS, JobRecord
from flopwatch_collector.views.sources import Moment, Sources

MOST_MARKS = 500
PHASE_MARKS = {"eval": "evaluation", "checkpoint": "checkpoint"}


def marks_of(
    sources: Sources,
    moment: Moment,
    record: JobRecord,
    timeline: JobTimeline | None,
    alerts: Iterable[AlertRow],
) -> tuple[Mark, ...]:
    """The marks within the range, oldest first; the newest where there are very many."""
    found = [*_of_run(timeline), *_of_alerts(alerts), *_of_events(sources, moment, record)]
    inside = [
        mark
        for mark in found
        if mark.time_seconds < moment.now and (mark.end_seconds or mark.time_seconds) >= moment.start
    ]
    return tuple(sorted(inside, key=lambda mark: mark.time_seconds)[-MOST_MARKS:])


def _of_run(timeline: JobTimeline | None) -> list[Mark]:
    if timeline is None:
        return []
    marks = [
        Mark(
            time_seconds=session.begin_seconds,
            end_seconds=None,
            kind="restart",
            text=f"from step {session.resumed_from_step}" if session.resumed_from_step is not None else "",
        )
        for session in timeline.sessions
        if session.number > 1 and session.begin_seconds is not None
    ]
    phases = timeline.phases
    for index in range(phases["ts"].size):
        kind = PHASE_MARKS.get(PHASE_KINDS[int(phases["kind"][index])])
        if kind is not None:
            step = int(phases["step"][index])
            marks.append(
                Mark(
                    time_seconds=float(phases["ts"][index]),
                    end_seconds=_known(float(phases["end"][index])),
                    kind=kind,
                    text=f"step {step}" if step >= 0 else "",
                )
            )
    return marks


def _of_alerts(alerts: Iterable[AlertRow]) -> list[Mark]:
    return [
        Mark(
            time_seconds=alert.fired_seconds,
            end_seconds=alert.resolved_seconds,
            kind="alert",
            text=alert.rule,
        )
        for alert in alerts
        if alert.fired_seconds is not None
    ]


def _of_events(sources: Sources, moment: Moment, record: JobRecord) -> list[Mark]:
    """Events on the job's nodes while it ran."""
    nodes = [part.node for part in record.parts]
    begin = max(moment.start, record.start_seconds or moment.start)
    end = min(moment.now, record.end_seconds or moment.now)
    if not nodes or end <= begin:
        return []
    events = sources.store.events(begin, end)
    own = np.isin(events["node"].astype(np.float64), np.array(nodes, dtype=np.float64))
    chosen = np.flatnonzero(
        own & np.array([str(kind) != QUEUE_EVENT for kind in events["kind"]], dtype=np.bool_)
    )
    return [
        Mark(
            time_seconds=float(events["ts"][row]),
            end_seconds=None,
            kind="event",
            text=_event_text(str(events["kind"][row]), events["code"][row], str(events["text"][row])),
        )
        for row in chosen.tolist()
    ]


def _event_text(kind: str, code: float, text: str) -> str:
    number = f" {int(code)}" if np.isfinite(code) else ""
    return f"{kind}{number}: {text}" if text else f"{kind}{number}"


def _known(value: float) -> float | None:
    return value if np.isfinite(value) else None
