"""The outages of a run: when it stopped, when that was noticed, when it came back, and what was done again."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from flopwatch.answers.goodput import Interruption
from flopwatch_collector.compute.inputs import Liable
from flopwatch_collector.compute.job_state import session_ends
from flopwatch_collector.compute.sessions import Session
from flopwatch_collector.compute.timeline import JobTimeline


def interruptions_of(timeline: JobTimeline, end: float, liable: Liable) -> tuple[Interruption, ...]:
    """Every outage up to ``end``, in order of time; ``liable`` says whose loss the end of a session is.

    A session that made progress and ended otherwise than normally begins one; launches that fail before their
    first step belong to the outage they are in.
    """
    ends = session_ends(timeline, end)
    result: list[Interruption] = []
    for index, (session, until) in enumerate(ends):
        followed = index + 1 < len(ends)
        last = _last_progress(timeline, session, until)
        if last is None or not _broken(session, followed=followed):
            continue
        after = [each for each, _ in ends[index + 1 :]]
        whose = liable.get(session.number, "unknown")
        result.append(replace(_interruption(timeline, (session, last), after), liability=whose))
    return tuple(result)


def _broken(session: Session, *, followed: bool) -> bool:
    return session.failed or (followed and session.exit_reason is None)


def _interruption(
    timeline: JobTimeline, stopped: tuple[Session, float], after: Sequence[Session]
) -> Interruption:
    session, last = stopped
    stepped = [(number, each) for number, each in enumerate(after, start=1) if _first_step(timeline, each)]
    attempts, back = stepped[0] if stepped else (len(after), None)
    resumed = None if back is None else _first_step(timeline, back)
    lost = timeline.steps["lost"] & (timeline.steps["session"] == session.number)
    rolled = timeline.phases["lost"] & (timeline.phases["session"] == session.number)
    rolled &= np.isfinite(timeline.phases["end"]) & ~(timeline.phases["blocking"] == 0)
    seconds = float((timeline.steps["ts"] - timeline.steps["begin"])[lost].sum())
    seconds += float((timeline.phases["end"] - timeline.phases["ts"])[rolled].sum())
    return Interruption(
        session=session.number,
        start_seconds=last,
        detected_seconds=session.end_seconds,
        restarted_seconds=None if back is None else back.begin_seconds,
        resumed_seconds=resumed,
        attempts=attempts,
        exit_reason=session.exit_reason,
        liability="unknown",
        lost_steps=timeline.lost_steps(session.number),
        lost_seconds=seconds,
    )


def _last_progress(timeline: JobTimeline, session: Session, until: float) -> float | None:
    """End of the session's last step, or of a phase that ended after it; None without steps."""
    own = timeline.steps["ts"][timeline.steps["session"] == session.number]
    if not own.size:
        return None
    phases = timeline.phases
    ended = phases["end"][(phases["session"] == session.number) & (phases["end"] <= until)]
    return float(max(own.max(), ended.max(initial=-np.inf)))


def _first_step(timeline: JobTimeline, session: Session) -> float | None:
    begins = timeline.steps["begin"][timeline.steps["session"] == session.number]
    return float(begins.min()) if begins.size else None
