"""What a run did at every moment of its lease: one bucket at a time, highest precedence first.

Rolled-back work, then silence, then phases, then steps, then recovery, then start-up, then gaps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from flopwatch_collector.compute import progress
from flopwatch_collector.compute.buckets import (
    CODE,
    REASON_CODE,
    REASONS,
    WINDOW_SECONDS,
    distinct,
    milliseconds,
)
from flopwatch_collector.compute.inputs import JobWork, Liable
from flopwatch_collector.compute.sessions import Session
from flopwatch_collector.compute.straggler import Straggling
from flopwatch_collector.compute.throttle import Throttling
from flopwatch_collector.compute.timeline import JobTimeline
from flopwatch_collector.model import PHASE_KINDS

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Outcome = Literal["hang", "steps_lost"]
KINDS = len(REASONS)
COMMUNICATION = PHASE_KINDS.index("communication")


@dataclass(frozen=True, kw_only=True, slots=True)
class Silence:
    """A stretch of a session without progress, longer than the run's threshold."""

    job: int
    start_seconds: float
    end_seconds: float
    threshold_seconds: float
    source_node: int | None
    """Node that sent the last step before it."""
    session: int = 0
    """Number of the session that was silent."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stretches:
    """A run's state over time: ``kind`` (bucket x reasons + reason) between consecutive ``edges``."""

    edges: Integers
    """Milliseconds, ascending, one more than ``kind``."""
    kind: Integers
    useful_rate: Floats
    """Share of the stretch's time that is useful work at full peak; 0 where it is unknown or none."""


def kind_of(bucket: str, reason: str = "") -> int:
    """Number of a (bucket, reason)."""
    return CODE[bucket] * KINDS + REASON_CODE[reason]


_Layer = tuple[Floats, Floats, int]


def silences(timeline: JobTimeline, end: float) -> tuple[Silence, ...]:
    """Where each session was silent for longer than its threshold, up to ``end`` of the run or of time."""
    result: list[Silence] = []
    for session, until in session_ends(timeline, end):
        begins, ends, nodes = _progress_of(timeline, session, until)
        if not begins.size:
            continue
        reached = np.maximum.accumulate(ends)
        following = np.concatenate((begins[1:], [until]))
        for index in np.flatnonzero(following - reached > progress.MINIMUM_HANG_SECONDS):
            threshold = _threshold(timeline, session, float(reached[index]))
            if following[index] - reached[index] > threshold:
                result.append(
                    Silence(
                        job=timeline.job,
                        start_seconds=float(reached[index]),
                        end_seconds=float(following[index]),
                        threshold_seconds=threshold,
                        source_node=_last_node(ends, nodes, reached[index]),
                        session=session.number,
                    )
                )
    return tuple(result)


def _threshold(timeline: JobTimeline, session: Session, since: float) -> float:
    """How long a session may be silent from then on, by the gaps between its reports until then."""
    own = timeline.steps["ts"][timeline.steps["session"] == session.number]
    near = own[(own > since - progress.GAP_LOOK_SECONDS) & (own <= since)]
    gap = progress.report_gap_seconds(near, np.ones(near.size, dtype=np.bool_))
    return progress.hang_threshold_seconds(gap)


def _last_node(ends: Floats, nodes: Floats, until: float) -> int | None:
    known = (ends <= until) & np.isfinite(nodes)
    return int(nodes[known][-1]) if known.any() else None


def session_ends(timeline: JobTimeline, end: float) -> list[tuple[Session, float]]:
    """Each session with the time it was killed, or ended, or is seen until."""
    result = []
    for index, session in enumerate(timeline.sessions):
        following = timeline.sessions[index + 1] if index + 1 < len(timeline.sessions) else None
        until = end
        if following is not None:
            until = _begin_of(timeline, following, end)
        if session.end_seconds is not None:
            until = min(until, session.end_seconds)
        result.append((session, until))
    return result


def _begin_of(timeline: JobTimeline, session: Session, end: float) -> float:
    """When a session began: as told, else at its first step."""
    if session.begin_seconds is not None:
        return session.begin_seconds
    return _first_step(timeline, session, end)


def _first_step(timeline: JobTimeline, session: Session, end: float) -> float:
    """Begin of the first step of a session or of a later one; ``end`` while there is none."""
    begins = timeline.steps["begin"][timeline.steps["session"] >= session.number]
    return float(begins.min()) if begins.size else end


def _progress_of(timeline: JobTimeline, session: Session, until: float) -> tuple[Floats, Floats, Floats]:
    """Begin, end and node of everything that shows progress in a session, in order of begin."""
    steps, phases = timeline.steps, timeline.phases
    own = steps["session"] == session.number
    if not own.any():
        return np.empty(0), np.empty(0), np.empty(0)
    other = (phases["session"] == session.number) & (phases["ts"] < until)
    ceiling = phases["ts"][other] + progress.STARTUP_CEILING_SECONDS
    phase_ends = np.where(np.isnan(phases["end"][other]), np.minimum(until, ceiling), phases["end"][other])
    begins = np.concatenate((steps["begin"][own], phases["ts"][other]))
    ends = np.concatenate((steps["ts"][own], phase_ends))
    nodes = np.concatenate((steps["node"][own], np.full(phase_ends.size, np.nan)))
    order = np.argsort(begins, kind="stable")
    return begins[order], ends[order], nodes[order]


def stretches(
    timeline: JobTimeline,
    span: tuple[float, float],
    outcomes: Sequence[tuple[Silence, Outcome]],
    *,
    until: float,
    work: JobWork | None = None,
) -> Stretches:
    """The run's state over ``span`` (seconds): the time its lease belongs to it.

    ``outcomes`` says what each silence was. The run is seen ``until`` its end, else until now.
    """
    work = work or JobWork()
    liable = work.liable
    layers = [
        *_base(timeline, until, liable),
        *_pending(timeline, until),
        *_step_layers(timeline, work),
        *_phase_layers(timeline, until),
        *[
            _one(s.start_seconds, s.end_seconds, _silent(outcome, _whose(liable, s.session)))
            for s, outcome in outcomes
        ],
        *_lost_layers(timeline, until, {silence.start_seconds for silence, _ in outcomes}, liable),
    ]
    edges, kind = _painted(layers, milliseconds(span), kind_of("GAP"))
    return Stretches(edges=edges, kind=kind, useful_rate=_rates(timeline, edges, kind, work.useful_seconds))


def _whose(liable: Liable, session: int) -> str:
    """The reason that says whose loss it is; empty while that is not known."""
    known = liable.get(session, "unknown")
    return "" if known == "unknown" else known


def _silent(outcome: Outcome, whose: str) -> int:
    return kind_of("HANG", whose) if outcome == "hang" else kind_of("BUSY_OPAQUE", "steps_lost")


def _one(start: float, end: float, kind: int) -> _Layer:
    return np.array([start]), np.array([end]), kind


def _painted(layers: Sequence[_Layer], span: Integers, base: int) -> tuple[Integers, Integers]:
    """Edges and kinds of the span: each layer covers the ones before it."""
    limited = [
        (np.clip(milliseconds(begin), *span), np.clip(milliseconds(end), *span), kind)
        for begin, end, kind in layers
    ]
    edges = distinct(np.concatenate([span, *[times for begin, end, _ in limited for times in (begin, end)]]))
    kinds = np.full(max(edges.size - 1, 0), base, dtype=np.int64)
    for begin, end, kind in limited:
        cover = np.zeros(edges.size, dtype=np.int64)
        real = end > begin
        np.add.at(cover, np.searchsorted(edges, begin[real]), 1)
        np.add.at(cover, np.searchsorted(edges, end[real]), -1)
        kinds[np.cumsum(cover)[:-1] > 0] = kind
    return edges, kinds


def _base(timeline: JobTimeline, end: float, liable: Liable) -> list[_Layer]:
    """Start-up, recovery between sessions, and the time in which the next report is due."""
    sessions = timeline.sessions
    first = timeline.first_step_seconds
    if first is None:
        ceiling = (timeline.instrumented_since_seconds or 0.0) + progress.STARTUP_CEILING_SECONDS
        return [
            _one(0.0, end, kind_of("STARTUP")),
            _one(ceiling, end, kind_of("BUSY_OPAQUE", "no_steps")),
        ]
    layers = [_one(0.0, first, kind_of("STARTUP"))]
    for index, (session, until) in enumerate(session_ends(timeline, end)):
        recovery = kind_of("RECOVERY", _whose(liable, session.number))
        if index + 1 < len(sessions):
            since = until if session.end_seconds is not None else _last_sign(timeline, session, until)
            layers.append(_one(since, _first_step(timeline, sessions[index + 1], end), recovery))
        elif session.failed:
            layers.append(_one(until, end, recovery))
    return layers


def _last_sign(timeline: JobTimeline, session: Session, until: float) -> float:
    """Where nobody told when a session ended: its last progress; ``until`` when it made none."""
    _, ends, _ = _progress_of(timeline, session, until)
    return float(ends.max()) if ends.size else until


def _pending(timeline: JobTimeline, end: float) -> list[_Layer]:
    """The time since the newest report while the next one is not overdue."""
    last = timeline.last_progress_seconds
    session = timeline.sessions[-1] if timeline.sessions else None
    if last is None or session is None or session.end_seconds is not None:
        return []
    if end - last > progress.pending_seconds(timeline.report_gap_seconds):
        return []
    return [_one(last, end, kind_of("BUSY_OPAQUE", "report_pending"))]


def _step_layers(timeline: JobTimeline, work: JobWork) -> list[_Layer]:
    """Steps, and what of them was exposed communication, throttling, a straggler, or waiting for data."""
    steps = timeline.steps
    begin, end = steps["begin"], steps["ts"]
    waited = np.clip(np.nan_to_num(steps["data_wait_seconds"]), 0.0, end - begin)
    exposed = np.minimum(begin + waited + _exposed_seconds(timeline), end)
    layers: list[_Layer] = [
        (begin, end, kind_of("STEP")),
        (begin + waited, exposed, kind_of("EXPOSED_COMM")),
    ]
    if work.straggler_seconds is not None:
        usual = work.straggler_seconds * steps["steps_covered"]
        layers.append((np.minimum(begin + usual, end), end, kind_of("STRAGGLER")))
    else:
        if work.throttling is not None:
            layers.append(_throttled(begin, end, work.throttling))
        if work.straggling is not None:
            layers += _straggled(begin, end, work.straggling)
    layers.append((begin, begin + waited, kind_of("DATA_WAIT")))
    return layers


def _straggled(begin: Floats, end: Floats, found: Straggling) -> list[_Layer]:
    """The last part of steps that a straggler made longer; of these steps nothing is called throttling."""
    slower = found.seconds > 0.0
    since = np.maximum(begin, end - found.seconds)
    return [
        (begin[slower], end[slower], kind_of("STEP")),
        (since[slower], end[slower], kind_of("STRAGGLER")),
    ]


def _exposed_seconds(timeline: JobTimeline) -> Floats:
    """Of every step: the time in it in which the run only communicated, as it was told."""
    phases, steps = timeline.phases, timeline.steps
    chosen = (phases["kind"] == COMMUNICATION) & np.isfinite(phases["end"])
    if not chosen.any():
        return np.zeros(steps["ts"].size)
    begin = phases["ts"][chosen]
    end = np.maximum.accumulate(phases["end"][chosen])
    begin = np.minimum(np.maximum(begin, np.concatenate(([-np.inf], end[:-1]))), end)
    before = np.concatenate(([0.0], np.cumsum(end - begin)))

    def until(at: Floats) -> Floats:
        place = np.searchsorted(begin, at, side="right")
        last = np.maximum(place - 1, 0)
        inside = np.clip(at - begin[last], 0.0, end[last] - begin[last])
        return np.where(place > 0, before[last] + inside, 0.0)

    return until(steps["ts"]) - until(steps["begin"])


def _throttled(begin: Floats, end: Floats, found: Throttling) -> _Layer:
    """The last part of every step, or of what lies of it in a window, as long as throttling took of it."""
    starts = found.window * float(WINDOW_SECONDS)
    first = np.searchsorted(starts + WINDOW_SECONDS, begin, side="right")
    count = np.maximum(np.searchsorted(starts, end, side="left") - first, 0)
    row = np.repeat(np.arange(begin.size), count)
    at = np.repeat(first, count) + np.arange(row.size) - np.repeat(np.cumsum(count) - count, count)
    since, until = np.maximum(begin[row], starts[at]), np.minimum(end[row], starts[at] + WINDOW_SECONDS)
    return until - found.share[at] * (until - since), until, kind_of("THROTTLE")


_PHASES = (
    ("data", kind_of("DATA_WAIT")), ("generation", kind_of("BUSY_OPAQUE", "generation")), ("eval", kind_of("EVAL")),
    ("checkpoint", kind_of("CKPT")),
)  # fmt: skip


def _phase_layers(timeline: JobTimeline, end: float) -> list[_Layer]:
    """Blocking phases; one that has not ended lasts until its ceiling at most."""
    phases = timeline.phases
    ceiling = np.minimum(end, phases["ts"] + progress.STARTUP_CEILING_SECONDS)
    ends = np.where(np.isnan(phases["end"]), ceiling, phases["end"])
    layers = []
    for name, kind in _PHASES:
        chosen = (phases["kind"] == PHASE_KINDS.index(name)) & ~(phases["blocking"] == 0)
        layers.append((phases["ts"][chosen], ends[chosen], kind))
    return layers


def _lost_layers(timeline: JobTimeline, end: float, silent: set[float], liable: Liable) -> list[_Layer]:
    """Rolled-back steps and phases, and the step that was open when a session was killed."""
    layers = _rolled_back(timeline, liable)
    pairs = session_ends(timeline, end)
    for index, (session, until) in enumerate(pairs):
        if index + 1 == len(pairs) and not session.failed:
            continue
        _, ends, _ = _progress_of(timeline, session, until)
        killed = session.end_seconds is not None and (session.failed or session.exit_reason is None)
        if ends.size and killed and float(ends.max()) not in silent:
            layers.append(_one(float(ends.max()), until, kind_of("LOST", _whose(liable, session.number))))
    return layers


def _rolled_back(timeline: JobTimeline, liable: Liable) -> list[_Layer]:
    """Steps and phases that were done again, by whose loss they are."""
    steps, phases = timeline.steps, timeline.phases
    rolled = phases["lost"] & np.isfinite(phases["end"]) & ~(phases["blocking"] == 0)
    layers: list[_Layer] = []
    if not steps["lost"].any() and not rolled.any():
        return layers
    for whose in ("", "platform", "user"):
        own = [session.number for session in timeline.sessions if _whose(liable, session.number) == whose]
        if whose == "":
            own.append(0)
        redone = steps["lost"] & np.isin(steps["session"], own)
        repeated = rolled & np.isin(phases["session"], own)
        layers.append((steps["begin"][redone], steps["ts"][redone], kind_of("LOST", whose)))
        layers.append((phases["ts"][repeated], phases["end"][repeated], kind_of("LOST", whose)))
    return layers


def _rates(timeline: JobTimeline, edges: Integers, kind: Integers, useful: Floats | None) -> Floats:
    """Useful share of every kept-step stretch: the record's useful time over its stretch of step time."""
    rates = np.zeros(kind.size)
    begin = milliseconds(timeline.steps["begin"])
    if useful is None or not begin.size or not kind.size:
        return rates
    end = milliseconds(timeline.steps["ts"])
    record = np.maximum(np.searchsorted(begin, edges[:-1], side="right") - 1, 0)
    inside = (kind == kind_of("STEP")) & (edges[:-1] >= begin[record]) & (edges[1:] <= end[record])
    kept = np.zeros(begin.size)
    np.add.at(kept, record[inside], np.diff(edges)[inside])
    share = np.nan_to_num(useful)[record] * 1000.0 / np.maximum(kept[record], 1.0)
    return np.where(inside, np.clip(share, 0.0, 1.0), 0.0)
