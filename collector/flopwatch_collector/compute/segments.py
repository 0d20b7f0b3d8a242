"""Tracks cut at everything that changes, with what is known of each segment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flopwatch_collector.compute.buckets import WINDOW_MILLISECONDS, distinct
from flopwatch_collector.compute.declared import Interval, State
from flopwatch_collector.compute.gpu_state import UNKNOWN, GpuRuns
from flopwatch_collector.compute.tracks import BY_LEASE, Hold, Track, amounts

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, slots=True)
class TrackTable:
    """Tracks as columns."""

    gpu: Integers
    node: Integers
    start: Integers
    end: Integers
    low: Integers
    high: Integers
    job: Integers

    @classmethod
    def of(cls, tracks: Sequence[Track]) -> "TrackTable":
        """The columns of these tracks."""
        rows = np.array(
            [(t.gpu, t.node, t.start, t.end, t.low, t.high, t.job) for t in tracks], dtype=np.int64
        ).reshape(-1, 7)
        names = ("gpu", "node", "start", "end", "low", "high", "job")
        return cls(**dict(zip(names, rows.T, strict=True)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Layer:
    """Disjoint intervals on tracks, sorted, as keys; ``row`` is the source's row."""

    start: Integers
    end: Integers
    row: Integers


@dataclass(frozen=True, kw_only=True, slots=True)
class Segments:
    """Stretches of tracks in which nothing changes, each within one window."""

    track: Integers
    start: Integers
    end: Integers
    amount: Integers
    """GPU milliseconds: less than the length where the track is a part of a GPU."""
    job: Integers
    """Job that holds it; 0 nobody."""
    run: Flags
    """Whether the time belongs to the job's run."""
    fixed: Flags
    """Whether it is of a shared GPU."""
    silent: Flags
    process: Integers
    work: Integers
    seen_job: Integers
    declared: dict[State, Flags]


class Grid:
    """Makes layers and segments over tracks within a span of milliseconds."""

    def __init__(self, tracks: TrackTable, span: tuple[int, int]) -> None:
        self._tracks = tracks
        self._base = span[0]
        self._size = span[1] - span[0] + 1
        order = np.argsort(tracks.gpu, kind="stable")
        self._order, self._gpus = order, tracks.gpu[order]

    def layer(self, gpu: Integers, start: Integers, end: Integers) -> Layer:
        """Intervals of GPUs, disjoint by GPU, on all tracks of those GPUs."""
        low = np.searchsorted(self._gpus, gpu, side="left")
        count = np.searchsorted(self._gpus, gpu, side="right") - low
        row = np.repeat(np.arange(gpu.size), count)
        offset = np.arange(row.size) - np.repeat(np.cumsum(count) - count, count)
        track = self._order[low[row] + offset]
        first = np.maximum(start[row], self._tracks.start[track])
        last = np.minimum(end[row], self._tracks.end[track])
        chosen = (last > first) & (gpu[row] != 0)
        keys = self._key(track, first)[chosen]
        order = np.argsort(keys, kind="stable")
        ends = self._key(track, last)[chosen]
        return Layer(start=keys[order], end=ends[order], row=row[chosen][order])

    def _key(self, track: Integers, time: Integers) -> Integers:
        return track * self._size + (time - self._base)

    def edges(self, layers: Sequence[Layer]) -> tuple[Integers, Integers, Integers]:
        """(track, start, end) of all segments: cut at the layers, at windows, and at the tracks' own ends."""
        tracks = self._tracks
        number = np.arange(tracks.gpu.size)
        windows = np.arange(
            -(-self._base // WINDOW_MILLISECONDS) * WINDOW_MILLISECONDS,
            self._base + self._size,
            WINDOW_MILLISECONDS,
        )
        grid = np.broadcast_to(windows, (number.size, windows.size))
        inside = (grid > tracks.start[:, None]) & (grid < tracks.end[:, None])
        cuts = self._key(np.repeat(number, inside.sum(axis=1)), grid[inside])
        own = (self._key(number, tracks.start), self._key(number, tracks.end))
        keys = distinct(
            np.concatenate([*own, cuts, *[k for layer in layers for k in (layer.start, layer.end)]])
        )
        track, offset = np.divmod(keys, self._size)
        same = track[1:] == track[:-1]
        return track[:-1][same], offset[:-1][same] + self._base, offset[1:][same] + self._base

    def find(self, layer: Layer, track: Integers, start: Integers) -> tuple[Flags, Integers]:
        """Of each segment: whether the layer covers it, and the row that does."""
        if not layer.start.size:
            return np.zeros(track.size, dtype=np.bool_), np.zeros(track.size, dtype=np.int64)
        key = self._key(track, start)
        index = np.searchsorted(layer.start, key, side="right") - 1
        safe = np.maximum(index, 0)
        covered = (index >= 0) & (layer.end[safe] > key)
        return covered, layer.row[safe]


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """What is known of GPUs over time.

    ``holds`` are disjoint on each GPU; ``shared_holds`` may overlap and hold for tracks whose job is fixed.
    """

    holds: Sequence[Hold]
    shared_holds: Sequence[Hold]
    runs: GpuRuns
    declared: Mapping[State, Sequence[Interval]]


def segments(tracks: TrackTable, span: tuple[int, int], known: Known) -> Segments:
    """All segments of the tracks with what is known of them."""
    grid = Grid(tracks, span)
    held = (
        np.array([(h.gpu, h.start, h.end, h.job, h.run) for h in known.holds], dtype=np.int64)
        .reshape(-1, 5)
        .T
    )
    hold_layer = grid.layer(held[0], held[1], held[2])
    run_layer = grid.layer(known.runs.gpu, known.runs.start, known.runs.end)
    marks = {
        state: grid.layer(*np.array(intervals, dtype=np.int64).reshape(-1, 3).T)
        for state, intervals in known.declared.items()
    }
    track, start, end = grid.edges([hold_layer, run_layer, *marks.values()])
    is_held, hold = grid.find(hold_layer, track, start)
    sampled, run = grid.find(run_layer, track, start)
    fixed = tracks.job[track] != BY_LEASE
    job = np.where(fixed, tracks.job[track], _picked(held[3], hold, is_held, 0))
    belongs = is_held & (_picked(held[4], hold, is_held, 0) > 0)
    if fixed.any():
        belongs &= ~fixed
        belongs |= fixed & _run_of_shared(tracks, (track, start), known.shared_holds)
    return Segments(
        track=track,
        start=start,
        end=end,
        amount=amounts(start, end, tracks.low[track], tracks.high[track]),
        job=job,
        run=belongs,
        fixed=fixed,
        silent=~sampled,
        process=_picked(known.runs.process, run, sampled, UNKNOWN),
        work=_picked(known.runs.work, run, sampled, UNKNOWN),
        seen_job=_picked(known.runs.job, run, sampled, 0),
        declared={state: grid.find(layer, track, start)[0] for state, layer in marks.items()},
    )


def _picked(values: Integers, row: Integers, chosen: Flags, otherwise: int) -> Integers:
    if not values.size:
        return np.full(row.size, otherwise, dtype=np.int64)
    return np.where(chosen, values[row], otherwise)


def _run_of_shared(tracks: TrackTable, place: tuple[Integers, Integers], holds: Sequence[Hold]) -> Flags:
    """Of segments on tracks with a fixed job: whether a hold of that job's run covers them."""
    track, start = place
    result = np.zeros(track.size, dtype=np.bool_)
    shared = set(tracks.gpu[tracks.job != BY_LEASE].tolist())
    held = [hold for hold in holds if hold.run and hold.gpu in shared]
    if not held:
        return result
    gpu, job = tracks.gpu[track], tracks.job[track]
    order = np.argsort(gpu, kind="stable")
    numbers = np.array([hold.gpu for hold in held], dtype=np.int64)
    firsts = np.searchsorted(gpu[order], numbers, side="left")
    lasts = np.searchsorted(gpu[order], numbers, side="right")
    for hold, first, last in zip(held, firsts, lasts, strict=True):
        own = order[first:last]
        result[own] |= (job[own] == hold.job) & (start[own] >= hold.start) & (start[own] < hold.end)
    return result
