"""A job's timeline: which steps counted, when, in which session, and what was lost."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from flopwatch_collector.compute import layout, progress
from flopwatch_collector.compute.layout import take
from flopwatch_collector.compute.sessions import Session, Span, join_launches
from flopwatch_collector.model import (
    PHASE_COLUMNS,
    PHASE_KINDS,
    STEP_COLUMNS,
    Columns,
    JobRecord,
    Launch,
    empty,
)

CHECKPOINT = float(PHASE_KINDS.index("checkpoint"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Before:
    """What is known of a job from outside a window of rows."""

    first_step_seconds: float | None = None
    resumes: Mapping[int, int] = field(default_factory=dict)
    """By launch number: the step it went on from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobTimeline:
    """One job's sessions, each of its steps once, and its phases, within a window of rows."""

    job: int
    sessions: tuple[Session, ...]
    steps: Columns
    """``STEP_COLUMNS`` and ``begin`` (seconds), ``session`` (number), ``launch_session`` (as the source counts
    its launches, from 0), ``lost`` and ``is_steady`` (bool), in order of time without overlap."""
    phases: Columns
    """``PHASE_COLUMNS`` and ``session``, ``lost``, in order of begin; blocking or not."""
    report_gap_seconds: float | None
    hang_threshold_seconds: float
    last_progress_seconds: float | None
    """End of the newest step or finished phase."""
    first_step_seconds: float | None
    """Begin of the job's first step ever; None before it."""
    instrumented_since_seconds: float | None
    """First time the job said anything of its run; None when it never did."""

    @property
    def instrumented(self) -> bool:
        """Whether the job ever sent a run, step or phase record."""
        return self.instrumented_since_seconds is not None

    def kept(self) -> Columns:
        """The steps that were not rolled back."""
        return take(self.steps, ~self.steps["lost"])

    def steady(self) -> Columns:
        """The kept steps whose time is representative."""
        return take(self.steps, ~self.steps["lost"] & self.steps["is_steady"])

    def lost_steps(self, session: int) -> int:
        """Steps of a session that a later one did again."""
        chosen = (self.steps["session"] == session) & self.steps["lost"]
        return int(self.steps["steps_covered"][chosen].sum())


def job_timeline(
    job: JobRecord, launches: Iterable[Launch], steps: Columns, phases: Columns, now: float
) -> JobTimeline:
    """The job's timeline from step and phase rows of any time window, and all its launches.

    Rows may come from several sources and nodes, in any order and repeatedly.
    """
    return timeline_after(job, launches, (steps, phases), now, Before())


def timeline_after(
    job: JobRecord, launches: Iterable[Launch], rows: tuple[Columns, Columns], now: float, before: Before
) -> JobTimeline:
    """The same from (steps, phases), with what was seen before and after these rows."""
    steps, phases = rows
    own = [each for each in launches if each.job == job.number and (each.begin_seconds or 0.0) <= now]
    step_rows = take(steps, (steps["job"] == job.number) & (steps["ts"] <= now))
    phase_rows = take(phases, (phases["job"] == job.number) & (phases["ts"] <= now))
    sessions = join_launches([*own, *_unknown_launches(job, own, step_rows)], _spans(step_rows))
    sources = {launch.number: launch.source for launch in own}
    chosen = layout.each_step_once(step_rows, _session_of(sessions, step_rows["launch"]))
    laid = layout.lay_out(chosen)
    known = _with_resumes(sessions, laid, phase_rows, before.resumes)
    laid = layout.mark_lost(laid, known)
    laid["launch_session"] = _launch_sessions(own, laid["launch"])
    marked = layout.phases_once(phase_rows, _session_of(sessions, phase_rows["launch"]), sources)
    marked = layout.mark_lost_phases(marked, laid, known)
    gap = progress.report_gap_seconds(laid["ts"], layout.same_session(laid))
    return JobTimeline(
        job=job.number,
        sessions=known,
        steps=laid,
        phases=marked,
        report_gap_seconds=gap,
        hang_threshold_seconds=progress.hang_threshold_seconds(gap),
        last_progress_seconds=_last_progress(laid, marked, now),
        first_step_seconds=_least([before.first_step_seconds, *laid["begin"][:1].tolist()]),
        instrumented_since_seconds=_instrumented_since(known, laid, marked),
    )


def _launch_sessions(launches: list[Launch], numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """By launch number: which launch it is to its source; NaN where the launch is not known."""
    counted = {launch.number: float(launch.session) for launch in launches}
    return np.array([counted.get(int(number), np.nan) for number in numbers], dtype=np.float64)


def _least(values: Iterable[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)


def no_timeline(job: JobRecord, now: float) -> JobTimeline:
    """The timeline of a job of which nothing was reported."""
    return job_timeline(job, (), empty(STEP_COLUMNS), empty(PHASE_COLUMNS), now)


def _unknown_launches(job: JobRecord, known: list[Launch], steps: Columns) -> list[Launch]:
    """Launches that steps name and nobody announced."""
    numbers = {launch.number for launch in known}
    rows = {int(number): int(source) for number, source in zip(steps["launch"], steps["source"], strict=True)}
    return [
        Launch(number=number, job=job.number, source=source, source_id=f"launch {number}", session=0)
        for number, source in sorted(rows.items())
        if number not in numbers
    ]


def _spans(steps: Columns) -> dict[int, Span]:
    """First begin and last end of the steps of every launch."""
    numbers, inverse = np.unique(steps["launch"], return_inverse=True)
    first = np.full(numbers.size, np.inf)
    last = np.full(numbers.size, -np.inf)
    np.minimum.at(first, inverse, steps["ts"] - np.nan_to_num(steps["seconds"]))
    np.maximum.at(last, inverse, steps["ts"])
    return {int(number): (float(first[i]), float(last[i])) for i, number in enumerate(numbers)}


def _session_of(sessions: tuple[Session, ...], launches: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """The session number of each row by its launch; 0 when it has none."""
    lookup = {launch: session.number for session in sessions for launch in session.launches}
    numbers, inverse = np.unique(launches, return_inverse=True)
    table = np.array([lookup.get(int(number), 0) for number in numbers], dtype=np.int64)
    return table[inverse] if numbers.size else np.empty(0, dtype=np.int64)


def _with_resumes(
    sessions: tuple[Session, ...], steps: Columns, phases: Columns, resumes: Mapping[int, int]
) -> tuple[Session, ...]:
    """The sessions with the step each went on from.

    As told, as seen before, as its first step shows, else the last checkpoint before it.
    """
    result = []
    for session in sessions:
        resumed = session.resumed_from_step
        if resumed is None:
            resumed = next((resumes[number] for number in session.launches if number in resumes), None)
        if resumed is None and session.number > 1:
            resumed = _first_step_shows(session, steps)
            if resumed is None and session.begin_seconds is not None:
                resumed = _last_checkpoint(phases, session.begin_seconds)
        result.append(replace(session, resumed_from_step=resumed))
    return tuple(result)


def _first_step_shows(session: Session, steps: Columns) -> int | None:
    rows = np.flatnonzero(steps["session"] == session.number)
    if not rows.size:
        return None
    return int(steps["step"][rows[0]] - steps["steps_covered"][rows[0]])


def _last_checkpoint(phases: Columns, before: float) -> int | None:
    """Step of the newest checkpoint finished before a time: a blocking one, or one known to be committed."""
    whole = (phases["blocking"] > 0) | (phases["committed"] > 0)
    chosen = (phases["kind"] == CHECKPOINT) & (phases["end"] <= before) & whole & (phases["step"] >= 0)
    chosen &= ~(phases["committed"] == 0)
    return int(phases["step"][chosen].max()) if chosen.any() else None


def _last_progress(steps: Columns, phases: Columns, now: float) -> float | None:
    ends = phases["end"][np.isfinite(phases["end"])]
    times = [float(column.max()) for column in (steps["ts"], ends[ends <= now]) if column.size]
    return max(times, default=None)


def _instrumented_since(sessions: tuple[Session, ...], steps: Columns, phases: Columns) -> float | None:
    times = [session.begin_seconds for session in sessions if session.begin_seconds is not None]
    times += [float(column.min()) for column in (steps["begin"], phases["ts"]) if column.size]
    return min(times, default=None)
