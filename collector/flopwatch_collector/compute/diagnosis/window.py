"""Figures of a run over one window of samples, for its diagnosis: pure arithmetic on columns, NaN is not known.

A figure of a whole run is None unless enough is known of it: never a mean over the GPUs that happen to answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from flopwatch_collector.compute.layout import take
from flopwatch_collector.compute.throttle import THROTTLE_BITS
from flopwatch_collector.model import Columns

SPREAD_SECONDS: Final = 120.0
LEAST_SAMPLES: Final = 3
PAUSED_RATIO: Final = 1.10
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class RankTime:
    """How long a rank computed in a mean step of the window, its waits left out."""

    node: int
    rank: int
    seconds: float
    waiting_ratio: float
    """Share of its steps in which it waited for the network."""


def mean_of(values: Floats) -> float | None:
    """The mean; None unless all are known."""
    return float(values.mean()) if values.size and np.isfinite(values).all() else None


def percentile_95(values: Floats) -> float | None:
    """The 95th percentile of samples, between two of them by a straight line; None unless nine in ten are known."""
    known = np.sort(values[np.isfinite(values)])
    if not known.size or known.size < 0.9 * values.size:
        return None
    place = 0.95 * (known.size - 1)
    low = int(place)
    high = min(low + 1, known.size - 1)
    return float(known[low] + (known[high] - known[low]) * (place - low))


def by_key(rows: Columns, key: str) -> dict[int, Columns]:
    """The rows by a number, in their order."""
    if not rows["ts"].size:
        return {}
    order = np.lexsort((rows["ts"], rows[key]))
    numbers, first = np.unique(rows[key][order], return_index=True)
    parts = np.split(order, first[1:])
    return {
        int(number): {name: values[part] for name, values in rows.items()}
        for number, part in zip(numbers.tolist(), parts, strict=True)
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class Growth:
    """How much a device's counter grew, gaps in which it fell left out, and over how many seconds."""

    grown: float
    seconds: float

    @property
    def rate(self) -> float:
        """A second."""
        return self.grown / self.seconds


def growth(rows: Columns, name: str, key: str = "gpu") -> dict[int, Growth]:
    """By device: its counter's growth over rows sorted by (device, ts), where there are two values."""
    known = np.isfinite(rows[name])
    if not known.any():
        return {}
    device, values, times = rows[key][known], rows[name][known], rows["ts"][known]
    grown, seconds = np.diff(values), np.diff(times)
    counted = (device[1:] == device[:-1]) & (grown >= 0) & (seconds > 0)
    numbers, place = np.unique(device[1:][counted], return_inverse=True)
    sums, spans = (np.bincount(place, weights=each[counted]) for each in (grown, seconds))
    return {
        int(number): Growth(grown=total, seconds=span)
        for number, total, span in zip(numbers.tolist(), sums.tolist(), spans.tolist(), strict=True)
    }


def mean_over(values: Mapping[int, float], devices: Mapping[int, object]) -> float | None:
    """The mean over all devices; None where the value of one is not known."""
    return sum(values.values()) / len(devices) if devices and len(values) == len(devices) else None


def shares_of(
    devices: Mapping[int, Columns], name: str, limits: Mapping[int, float | None]
) -> dict[int, Floats]:
    """By device: its samples of a level over its limit, where that is known."""
    return {number: rows[name] / limit for number, rows in devices.items() if (limit := limits.get(number))}


def throttle_share(reasons: Floats) -> float | None:
    """Share of samples with a thermal, power-brake or hardware slowdown among the clock reasons."""
    known = reasons[np.isfinite(reasons)].astype(np.int64)
    return float(((known & THROTTLE_BITS) != 0).mean()) if known.size else None


def power_cap_share(reasons: Floats) -> float | None:
    """Share of samples whose only clock reason beside idle is the software power cap."""
    known = reasons[np.isfinite(reasons)].astype(np.int64)
    return float(((known & 0xFE) == 0x04).mean()) if known.size else None


def spread(devices: Mapping[int, Columns], now: float) -> float | None:
    """The largest difference of mean kernel activity between GPUs of one node over the last two minutes.

    None where no node has two GPUs that were seen for most of that time.
    """
    means: dict[int, list[float]] = {}
    for rows in devices.values():
        known = np.isfinite(rows["kernel_active_ratio"]) & (rows["ts"] > now - SPREAD_SECONDS)
        times = rows["ts"][known]
        if times.size >= LEAST_SAMPLES and times[-1] - times[0] >= 0.5 * SPREAD_SECONDS:
            means.setdefault(int(rows["node"][-1]), []).append(
                float(rows["kernel_active_ratio"][known].mean())
            )
    return max((max(each) - min(each) for each in means.values() if len(each) >= 2), default=None)


def column(devices: Mapping[int, Columns], name: str) -> Floats:
    """A column of all devices, one below the other."""
    return np.concatenate([rows[name] for rows in devices.values()]) if devices else np.empty(0)


def highest_mean(hosts: Mapping[int, Columns], name: str) -> float | None:
    """The highest of the hosts' means over the window; None where none is known."""
    means = [
        float(rows[name][known].mean()) for rows in hosts.values() if (known := np.isfinite(rows[name])).any()
    ]
    return max(means, default=None)


def rank_times(steps: Columns, phases: Columns, start: float, end: float) -> tuple[RankTime, ...]:
    """The compute time of a mean step of every rank that told how long it waited for the network.

    Steps count that lie in the window as a whole. ``phases`` are those of communication; a rank that told of none is
    not known to compute all the time.
    """
    if not phases["ts"].size:
        return ()
    found = []
    waited = by_key(phases, "launch")
    for launch, rows in by_key(steps, "launch").items():
        told = waited.get(launch)
        whole = rows["ts"] - rows["seconds"] >= start
        own = take(rows, whole & (rows["rank"] >= 0))
        if told is None or not own["ts"].size:
            continue
        first = float((own["ts"] - own["seconds"]).min())
        waits = np.minimum(np.nan_to_num(told["end"], nan=end), float(own["ts"].max())) - np.maximum(
            told["ts"], first
        )
        waited_seconds, whole_seconds = float(np.maximum(waits, 0.0).sum()), float(own["seconds"].sum())
        data = float(np.nan_to_num(own["data_wait_seconds"]).sum())
        found.append(
            RankTime(
                node=int(own["node"][-1]),
                rank=int(own["rank"][-1]),
                seconds=max(0.0, whole_seconds - waited_seconds - data) / float(own["steps_covered"].sum()),
                waiting_ratio=min(1.0, waited_seconds / whole_seconds) if whole_seconds > 0.0 else 0.0,
            )
        )
    return tuple(sorted(found, key=lambda one: one.rank))


def exposed_communication(times: Sequence[RankTime]) -> float | None:
    """Share of a step in which ranks wait for the network instead of computing, of those that told it."""
    return sum(one.waiting_ratio for one in times) / len(times) if times else None


def on_random_ranks(steps: Columns, phases: Columns) -> bool | None:
    """Whether long steps are held up by another rank each time; None of fewer than three such steps.

    A step counts where the rank that computes longest takes a tenth more than the median rank. The same rank in half
    of them or more is a slow rank, not pauses at random.
    """
    held = []
    times = _step_times(steps, phases)
    order = np.argsort(times["step"], kind="stable")
    first = np.flatnonzero(np.diff(times["step"][order], prepend=-np.inf))
    for place in np.split(order, first[1:]):
        seconds = times["seconds"][place]
        if seconds.size >= LEAST_SAMPLES and seconds.max() >= PAUSED_RATIO * np.median(seconds) > 0.0:
            held.append(int(times["rank"][place][np.argmax(seconds)]))
    if len(held) < LEAST_SAMPLES:
        return None
    return 2 * max(held.count(rank) for rank in set(held)) < len(held)


def _step_times(steps: Columns, phases: Columns) -> Columns:
    """Of every single step and rank that told its communication: the seconds that it computed itself."""
    parts: list[Columns] = []
    waited = by_key(phases, "launch") if steps["ts"].size else {}
    for launch, rows in by_key(steps, "launch").items():
        own = take(rows, (rows["rank"] >= 0) & (rows["steps_covered"] == 1) & np.isfinite(rows["seconds"]))
        told = waited.get(launch)
        if told is None or not own["ts"].size:
            continue
        ends = np.nan_to_num(told["end"], nan=float(own["ts"].max()))
        waits = _before(told["ts"], ends, own["ts"]) - _before(told["ts"], ends, own["ts"] - own["seconds"])
        computed = own["seconds"] - waits - np.nan_to_num(own["data_wait_seconds"])
        parts.append({"step": own["step"], "rank": own["rank"], "seconds": np.maximum(computed, 0.0)})
    names = ("step", "rank", "seconds")
    return {name: np.concatenate([part[name] for part in parts]) if parts else np.empty(0) for name in names}


def _before(begins: Floats, ends: Floats, times: Floats) -> Floats:
    """Seconds of intervals, in order and apart, that lie before each of the times."""
    whole = np.concatenate(([0.0], np.cumsum(ends - begins)))
    count = np.searchsorted(begins, times, "left")
    over = np.where(count > 0, ends[np.maximum(count - 1, 0)] - times, 0.0)
    return whole[count] - np.maximum(over, 0.0)
