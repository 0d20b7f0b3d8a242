"""Dips of a run's pace that come back: every so many steps or seconds it stands still longer than between other steps.

The time between two reports is taken, not the step time that a trainer prints: most print it without what lies between
two steps. Phases that the run told of are left out, they need no guess. A dip is a spike among these times; the dips
are regular where their distances agree, and without that nothing is said.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from flopwatch_collector.compute.detection.spikes import spikes
from flopwatch_collector.compute.layout import take
from flopwatch_collector.model import PHASE_KINDS, Columns

Floats = npt.NDArray[np.float64]
LEAST_DIPS: Final = 4
LEAST_REPORTS: Final = 30
LEAST_APART: Final = 3.0
"""Dips in more than every third report are the run's usual pace."""
REGULAR_RATIO: Final = 0.8
"""Of the distances between dips, so many agree with their median."""
DISTANCE_TOLERANCE: Final = 0.1
WIDE: Final = 8.0
"""From so many reports apart on, a distance may be one report off: a report does not say where in it the dip was."""
COMMUNICATION: Final = PHASE_KINDS.index("communication")


@dataclass(frozen=True, kw_only=True, slots=True)
class Dips:
    """Regular dips of a run."""

    lost_ratio: float
    """Share of the time that they took, over whole periods."""
    period_seconds: float
    period_steps: float | None
    """None where they come by the clock, not by the number of steps."""
    dip_seconds: float
    """Mean length."""
    begins: Floats
    ends: Floats


def periodic_dips(steps: Columns, phases: Columns) -> Dips | None:
    """The regular dips of the newest session; None where there are none, or fewer than four were seen.

    ``steps`` and ``phases`` are a timeline's: in order of time, each once.
    """
    reports = _reports(steps, phases)
    if reports is None:
        return None
    ends, number, apart, covered = reports
    each = apart / covered
    usual = float(np.median(each))
    excess = apart - covered * usual
    found = np.flatnonzero(spikes(each))
    # A pause may reach into the next report: neighbours are one dip.
    first = found[np.diff(found, prepend=-2) > 1]
    if first.size < LEAST_DIPS:
        return None
    lengths = np.add.reduceat(excess[found], np.searchsorted(found, first))
    last = np.append(found[np.searchsorted(found, first)[1:] - 1], found[-1])
    by_step = _regular(np.diff(number[first]), float(np.median(covered)))
    by_clock = _regular(np.diff(ends[first]), float(np.median(apart)))
    if not by_step and not by_clock:
        return None
    span = float(ends[first[-1]] - ends[first[0]])
    return Dips(
        lost_ratio=float(lengths[1:].sum()) / span,
        period_seconds=float(np.median(np.diff(ends[first]))),
        period_steps=float(np.median(np.diff(number[first]))) if by_step else None,
        dip_seconds=float(lengths.mean()),
        begins=ends[first] - apart[first],
        ends=ends[last],
    )


def _reports(steps: Columns, phases: Columns) -> tuple[Floats, Floats, Floats, Floats] | None:
    """(end, step number, seconds since the one before without told phases, steps since it) of the newest session."""
    if not steps["ts"].size:
        return None
    own = take(steps, (steps["session"] == steps["session"][-1]) & ~steps["lost"])
    if own["ts"].size < LEAST_REPORTS:
        return None
    apart, covered = np.diff(own["ts"]), np.diff(own["step"])
    apart = apart - told_seconds(phases, own["ts"][:-1], own["ts"][1:])
    known = (covered > 0) & (apart > 0)
    if known.sum() < LEAST_REPORTS:
        return None
    return own["ts"][1:][known], own["step"][1:][known], apart[known], covered[known].astype(np.float64)


def told_seconds(phases: Columns, begins: Floats, ends: Floats) -> Floats:
    """Of every interval: the seconds of phases other than communication, which is within steps, that the run told."""
    told = np.zeros(begins.size)
    chosen = phases["kind"] != COMMUNICATION
    for begin, end in zip(phases["ts"][chosen].tolist(), phases["end"][chosen].tolist(), strict=True):
        until = end if np.isfinite(end) else np.inf
        first, last = np.searchsorted(ends, begin, "right"), np.searchsorted(begins, until, "left")
        inside = slice(int(first), int(last))
        told[inside] += np.minimum(ends[inside], until) - np.maximum(begins[inside], begin)
    return np.minimum(told, ends - begins)


def _regular(distances: Floats, report: float) -> bool:
    """Whether the distances between dips agree, in steps or in seconds; ``report`` is the usual one of reports."""
    usual = float(np.median(distances))
    if usual < LEAST_APART * report:
        return False
    off = max(DISTANCE_TOLERANCE * usual, report if usual >= WIDE * report else 0.0)
    return float((np.abs(distances - usual) <= off).mean()) >= REGULAR_RATIO
