"""Steps in time: each once, one after another, and what a later session did again."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from flopwatch_collector.compute.sessions import Session
from flopwatch_collector.model import Columns

BURST_RATIO = 0.5
"""Reports closer together than this part of a step's own time arrived in one burst."""
RUN_SPACING_MILLISECONDS = 10**12


def each_step_once(steps: Columns, session: npt.NDArray[np.int64]) -> Columns:
    """One row a (session, step), from the session's best source, with column ``session``.

    SDK beats file beats log. Of equals the lowest known rank, then the earliest, then the lowest node wins.
    """
    rows = {**steps, "session": session}
    if session.size:
        best = np.full(int(session.max()) + 1, np.inf)
        np.minimum.at(best, session, steps["source"])
        rows = take(rows, steps["source"] == best[session])
    keys = (rows["launch"], rows["node"], rows["ts"], rows["rank"], rows["rank"] < 0, rows["step"])
    rows = take(rows, np.lexsort((*keys, rows["session"])))
    first = np.ones(rows["ts"].size, dtype=np.bool_)
    first[1:] = (np.diff(rows["step"]) != 0) | (np.diff(rows["session"]) != 0)
    return take(rows, first)


def take(rows: Columns, chosen: npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> Columns:
    """The chosen rows of a table."""
    return {name: values[chosen] for name, values in rows.items()}


def same_session(rows: Columns) -> npt.NDArray[np.bool_]:
    """Of each row, whether the one before is of its session."""
    same = np.zeros(rows["ts"].size, dtype=np.bool_)
    same[1:] = np.diff(rows["session"]) == 0
    return same


def lay_out(rows: Columns) -> Columns:
    """The steps with ``begin``, in order of time and without overlap; ``ts`` is moved for bursts only.

    A step of unknown length lasts from the step before, when that is its predecessor. Lines that a
    buffer delivered together and stamped on arrival are laid out backwards from the last of them.
    """
    same = same_session(rows)
    seconds = _lengths(rows, same)
    ends = _spread_bursts(rows["ts"], seconds, same)
    order = np.lexsort((rows["step"], rows["session"], ends))
    result = take({**rows, "ts": ends}, order)
    begins = ends[order] - seconds[order]
    if begins.size:
        before = np.concatenate(([-np.inf], np.maximum.accumulate(result["ts"])[:-1]))
        begins = np.minimum(np.maximum(begins, before), result["ts"])
    steady = ~(result["steady"] == 0)
    return {**result, "begin": begins, "is_steady": steady, "lost": np.zeros(begins.size, dtype=np.bool_)}


def _lengths(rows: Columns, same: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Seconds of every row; unknown ones from the time since the step before, if nothing is missing between."""
    seconds = rows["seconds"].astype(np.float64, copy=True)
    unknown = np.isnan(seconds)
    if not unknown.any():
        return seconds
    apart = np.diff(rows["ts"], prepend=np.nan)
    follows = same & (np.diff(rows["step"], prepend=np.nan) == rows["steps_covered"]) & (apart > 0)
    usual = float(np.median(apart[follows])) if follows.any() else 0.0
    filled = np.where(follows & (apart <= 5.0 * usual), apart, 0.0)
    return np.where(unknown, filled, seconds)


def _spread_bursts(
    times: npt.NDArray[np.float64], seconds: npt.NDArray[np.float64], same: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    """Ends of the steps, each at the latest where its successor in the same burst begins."""
    apart = np.diff(times, prepend=np.nan)
    burst = same & (apart < BURST_RATIO * seconds)
    if not burst.any():
        return times
    base = times.min()
    total = np.rint(np.cumsum(seconds) * 1000.0).astype(np.int64)
    offset = np.rint((times - base) * 1000.0).astype(np.int64) - total
    run = np.cumsum(~burst) * RUN_SPACING_MILLISECONDS
    latest = np.minimum.accumulate((offset + run)[::-1])[::-1] - run
    spread = base + (latest + total) / 1000.0
    in_burst = burst | np.concatenate((burst[1:], [False]))
    return np.where(in_burst, np.minimum(spread, times), times)


def phases_once(phases: Columns, session: npt.NDArray[np.int64], sources: Mapping[int, int]) -> Columns:
    """Each phase once, in order of begin, from the best source of its session, with column ``session``."""
    rows = {**phases, "session": session}
    if session.size:
        source = np.array([sources.get(int(number), 9) for number in rows["launch"]])
        best = np.full(int(session.max()) + 1, 99)
        np.minimum.at(best, session, source)
        rows = take(rows, source == best[session])
    rows = take(rows, np.lexsort((-np.nan_to_num(rows["end"]), rows["kind"], rows["ts"])))
    first = np.ones(rows["ts"].size, dtype=np.bool_)
    first[1:] = (np.diff(rows["ts"]) != 0) | (np.diff(rows["kind"]) != 0)
    return take(rows, first)


def mark_lost(steps: Columns, sessions: Sequence[Session]) -> Columns:
    """The steps with ``lost`` set where a later session went on from an earlier step."""
    if not steps["ts"].size:
        return steps
    limit = limits(sessions)
    return {**steps, "lost": steps["step"] > limit[steps["session"]]}


def mark_lost_phases(phases: Columns, steps: Columns, sessions: Sequence[Session]) -> Columns:
    """The phases with ``lost``: their step, or where unknown their begin, lies in what was done again."""
    count = phases["ts"].size
    if not count:
        return {**phases, "lost": np.zeros(0, dtype=np.bool_)}
    limit = limits(sessions)
    begin = np.full(limit.size, np.inf)
    lost = steps["lost"]
    np.minimum.at(begin, steps["session"][lost], steps["begin"][lost])
    by_step = phases["step"] > limit[phases["session"]]
    by_time = phases["ts"] >= begin[phases["session"]]
    return {**phases, "lost": np.where(phases["step"] >= 0, by_step, by_time)}


def limits(sessions: Sequence[Session]) -> npt.NDArray[np.float64]:
    """By session number: the highest step that no later session did again."""
    result = np.full(len(sessions) + 1, np.inf)
    lowest = np.inf
    for session in reversed(sessions):
        result[session.number] = lowest
        if session.resumed_from_step is not None:
            lowest = min(lowest, float(session.resumed_from_step))
    return result
