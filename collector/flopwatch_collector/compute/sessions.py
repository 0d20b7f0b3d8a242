"""Sessions of a job, joined from what every source numbers as a launch."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from flopwatch_collector.model import Launch

Span = tuple[float, float]
FAR = 1e15
"""Later than any time that occurs."""
NORMAL_EXITS = frozenset({"ok", "done", "completed", "finished", "success", "exit 0", "0", "exited normally"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """One launch of a job, as all its sources tell it together."""

    number: int
    """1 for the job's first session."""
    launches: tuple[int, ...]
    begin_seconds: float | None
    end_seconds: float | None
    exit_reason: str | None
    resumed_from_step: int | None
    """As a source said, or as the first step shows; None when neither is known."""

    @property
    def failed(self) -> bool:
        """Whether it is known to have ended otherwise than normally."""
        return self.exit_reason is not None and self.exit_reason.lower() not in NORMAL_EXITS


def join_launches(launches: Iterable[Launch], spans: Mapping[int, Span]) -> tuple[Session, ...]:
    """Sessions in order of time; ``spans`` has the time from first to last step seen of a launch.

    The source that counts most launches sets the sessions; launches of other sources join by restart number,
    else by the longest common time, else stand alone.
    """
    ordered = sorted(launches, key=lambda launch: (launch.source_id, launch.session, launch.number))
    if not ordered:
        return ()
    times = _times(ordered, spans)
    reference = _reference(ordered)
    groups = [[launch] for launch in ordered if launch.source_id == reference]
    for launch in ordered:
        if launch.source_id != reference:
            _place(launch, groups, times)
    groups.sort(key=lambda group: (_start(group, spans), group[0].session, group[0].number))
    return tuple(_session(number, group) for number, group in enumerate(groups, start=1))


def _times(launches: Sequence[Launch], spans: Mapping[int, Span]) -> dict[int, Span]:
    """Begin and end of every launch, as far as known: an open end lasts until the source's next launch."""
    result: dict[int, Span] = {}
    following: dict[str, float] = {}
    for launch in reversed(launches):
        seen = spans.get(launch.number)
        begin = launch.begin_seconds if launch.begin_seconds is not None else (seen[0] if seen else 0.0)
        until = following.get(launch.source_id, FAR)
        result[launch.number] = (begin, launch.end_seconds if launch.end_seconds is not None else until)
        following[launch.source_id] = begin
    return result


def _start(group: Sequence[Launch], spans: Mapping[int, Span]) -> float:
    """When a session is first known to have run; 0 when its time is not known."""
    told = [launch.begin_seconds for launch in group if launch.begin_seconds is not None]
    seen = [spans[launch.number][0] for launch in group if launch.number in spans]
    return min([*told, *seen], default=0.0)


def _reference(launches: Sequence[Launch]) -> str:
    """The source that sets the sessions: most launches, then the most trusted kind, then the first by name."""
    counts: dict[str, int] = {}
    kinds: dict[str, int] = {}
    for launch in launches:
        counts[launch.source_id] = counts.get(launch.source_id, 0) + 1
        kinds[launch.source_id] = launch.source
    return min(counts, key=lambda name: (-counts[name], kinds[name], name))


def _place(launch: Launch, groups: list[list[Launch]], times: Mapping[int, Span]) -> None:
    """Put a launch into the session it belongs to, or into a new one."""
    for group in groups:
        restarts = {other.restart_number for other in group}
        if launch.restart_number is not None and launch.restart_number in restarts:
            group.append(launch)
            return
    best = max(groups, key=lambda group: _overlap(times[launch.number], times[group[0].number]))
    if _overlap(times[launch.number], times[best[0].number]) > 0.0:
        best.append(launch)
    else:
        groups.append([launch])


def _overlap(one: Span, other: Span) -> float:
    return min(one[1], other[1]) - max(one[0], other[0])


def _session(number: int, group: Sequence[Launch]) -> Session:
    trusted = sorted(group, key=lambda launch: (launch.source, launch.number))
    begins = [launch.begin_seconds for launch in group if launch.begin_seconds is not None]
    ends = [launch.end_seconds for launch in group if launch.end_seconds is not None]
    reasons = [launch.exit_reason for launch in trusted if launch.exit_reason is not None]
    resumed = [launch.resumed_from_step for launch in trusted if launch.resumed_from_step is not None]
    return Session(
        number=number,
        launches=tuple(sorted(launch.number for launch in group)),
        begin_seconds=min(begins, default=None),
        end_seconds=max(ends, default=None),
        exit_reason=reasons[0] if reasons else None,
        resumed_from_step=resumed[0] if resumed else None,
    )
