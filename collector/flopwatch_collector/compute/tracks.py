"""Capacity as tracks: each GPU's time in its slot, split where MIG instances or leases share it.

A track takes the part from ``low`` to ``high`` of ``WHOLE``; at any moment the parts of a GPU's tracks make one.
"""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from flopwatch_collector.model import Gpu

Integers = npt.NDArray[np.int64]
WHOLE: Final = 5040
"""Divisible by 1 to 10, so that sevenths and equal shares are exact."""
BY_LEASE: Final = -1
"""The track's job is that of the lease of the moment."""
_SLICES = re.compile(r"(\d+)g\.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Track:
    """A part of a GPU over a time, milliseconds."""

    gpu: int
    node: int
    start: int
    end: int
    low: int = 0
    high: int = WHOLE
    job: int = BY_LEASE
    """Fixed for shared GPUs; 0 is nobody's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hold:
    """A GPU held for a job over a time, milliseconds; ``run`` while the time belongs to its run."""

    gpu: int
    start: int
    end: int
    job: int
    run: bool
    share: float


def tracks_of(gpus: Iterable[Gpu], span: tuple[int, int]) -> list[Track]:
    """The tracks of all tenures within the span. Slots with MIG instances are split by compute slices."""
    whole: list[Track] = []
    sliced: dict[tuple[int, str], list[Gpu]] = {}
    for gpu in gpus:
        start, end = tenure(gpu, span)
        if end <= start:
            continue
        if slices(gpu):
            sliced.setdefault((gpu.node, gpu.slot), []).append(gpu)
        else:
            whole.append(Track(gpu=gpu.number, node=gpu.node, start=start, end=end))
    for group in sliced.values():
        whole += _mig_tracks(group, span)
    return whole


def tenure(gpu: Gpu, span: tuple[int, int]) -> tuple[int, int]:
    """The GPU's time in its slot within the span, milliseconds."""
    start = max(span[0], round(gpu.from_seconds * 1000.0))
    end = span[1] if gpu.to_seconds is None else min(span[1], round(gpu.to_seconds * 1000.0))
    return start, end


def slices(gpu: Gpu) -> int:
    """Compute slices of a MIG instance; 0 for a whole GPU."""
    found = _SLICES.search(gpu.mig_profile or "")
    return min(int(found[1]), 7) if found else 0


def _mig_tracks(group: Sequence[Gpu], span: tuple[int, int]) -> list[Track]:
    """Instances of one slot by sevenths, and nobody's track for the rest."""
    times = sorted({time for gpu in group for time in tenure(gpu, span)})
    result = []
    for start, end in itertools.pairwise(times):
        low = 0
        present = [gpu for gpu in group if tenure(gpu, span)[0] <= start and tenure(gpu, span)[1] >= end]
        for gpu in sorted(present, key=lambda gpu: gpu.number):
            high = min(WHOLE, low + slices(gpu) * WHOLE // 7)
            result.append(Track(gpu=gpu.number, node=gpu.node, start=start, end=end, low=low, high=high))
            low = high
        if present and low < WHOLE:
            result.append(Track(gpu=0, node=group[0].node, start=start, end=end, low=low, job=0))
    return [track for track in result if track.high > track.low]


def shared_gpus(holds: Sequence[Hold]) -> set[int]:
    """GPUs that two leases hold at once, or one holds in part."""
    result = set()
    until: dict[int, int] = {}
    for hold in sorted(holds, key=lambda hold: (hold.gpu, hold.start)):
        if hold.share < 1.0 or hold.start < until.get(hold.gpu, -1):
            result.add(hold.gpu)
        until[hold.gpu] = max(hold.end, until.get(hold.gpu, -1))
    return result


def split_shared(tracks: Sequence[Track], holds: Sequence[Hold], shared: set[int]) -> list[Track]:
    """The tracks, those of shared GPUs divided among their live leases.

    Granted shares are taken as given while they fit into one GPU, and the rest is nobody's; else the GPU
    is divided in proportion, equally when all are whole.
    """
    by_gpu: dict[int, list[Hold]] = {}
    for hold in holds:
        if hold.gpu in shared:
            by_gpu.setdefault(hold.gpu, []).append(hold)
    result = []
    for track in tracks:
        if track.gpu in shared and track.job == BY_LEASE:
            result += _divided(track, by_gpu[track.gpu])
        else:
            result.append(track)
    return result


def _divided(track: Track, holds: Sequence[Hold]) -> list[Track]:
    times = {track.start, track.end}
    times.update(t for hold in holds for t in (hold.start, hold.end) if track.start < t < track.end)
    ordered = sorted(times)
    result = []
    for start, end in itertools.pairwise(ordered):
        live: dict[int, float] = {}
        for hold in holds:
            if hold.start <= start and hold.end >= end:
                live[hold.job] = max(hold.share, live.get(hold.job, 0.0))
        if not live:
            result.append(replace(track, start=start, end=end))
            continue
        low = track.low
        total = max(1.0, sum(live.values()))
        for job, high in _ends(track, live, total):
            if high > low:
                result.append(
                    Track(gpu=track.gpu, node=track.node, start=start, end=end, low=low, high=high, job=job)
                )
            low = high
    return result


def _ends(track: Track, live: Mapping[int, float], total: float) -> list[tuple[int, int]]:
    """(job, upper end of its part), and 0 for the rest."""
    taken = 0.0
    ends = []
    for job, share in sorted(live.items()):
        taken += share / total
        ends.append((job, track.low + round((track.high - track.low) * min(taken, 1.0))))
    return [*ends, (0, track.high)]


def amounts(start: Integers, end: Integers, low: Integers, high: Integers) -> Integers:
    """Milliseconds that parts of a GPU take of intervals; over time and over parts they add up exactly."""
    whole = (low == 0) & (high == WHOLE)
    part = (high * end) // WHOLE - (low * end) // WHOLE - (high * start) // WHOLE + (low * start) // WHOLE
    return np.where(whole, end - start, part)
