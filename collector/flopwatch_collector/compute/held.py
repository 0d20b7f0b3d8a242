"""GPUs that a job held over time, each with its peak: what elastic jobs and jobs over several models are held against.

A GPU counts once at any time, whoever says that it was held.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from flopwatch_collector.model import LeaseRecord

Floats = npt.NDArray[np.float64]
Stretch = tuple[float, float]


def _none() -> Floats:
    return np.zeros(0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """How many GPUs were held since each time of change, and the dense FLOP/s of all of them together."""

    times: Floats = field(default_factory=_none)
    gpus: Floats = field(default_factory=_none)
    flops: Floats = field(default_factory=_none)

    def over(self, begin: Floats, end: Floats) -> tuple[Floats, Floats]:
        """(mean GPUs while any were held, mean dense FLOP/s of one of them) of every interval; 0 where none was."""
        if not self.times.size:
            return np.zeros(begin.size), np.zeros(begin.size)
        rates = np.stack((np.sign(self.gpus), self.gpus, self.flops))
        before = np.zeros(rates.shape)
        np.cumsum(rates[:, :-1] * np.diff(self.times), axis=1, out=before[:, 1:])
        held, seconds, flops = self._until(end, rates, before) - self._until(begin, rates, before)
        gpus, peak = np.zeros(begin.size), np.zeros(begin.size)
        np.divide(seconds, held, out=gpus, where=held > 0)
        np.divide(flops, seconds, out=peak, where=seconds > 0)
        return gpus, peak

    def _until(self, at: Floats, rates: Floats, before: Floats) -> Floats:
        """The integrals of the rates up to each time; ``before``: up to each change."""
        last = np.maximum(np.searchsorted(self.times, at, side="right") - 1, 0)
        return np.asarray(before[:, last] + rates[:, last] * np.maximum(at - self.times[last], 0.0))


def held_of(leases: Iterable[LeaseRecord], peaks: Mapping[int, float]) -> Held:
    """What leases gave out; ``peaks`` has the dense FLOP/s of every GPU that counts."""
    by_gpu: dict[int, list[Stretch]] = {}
    for lease in leases:
        end = np.inf if lease.end_seconds is None else lease.end_seconds
        for gpu in set(lease.gpus) & peaks.keys():
            by_gpu.setdefault(gpu, []).append((lease.start_seconds, end))
    changes: dict[float, list[float]] = {}
    for gpu, stretches in by_gpu.items():
        for begin, end in _merged(stretches):
            for time, sign in ((begin, 1.0), (end, -1.0)):
                if np.isfinite(time):
                    change = changes.setdefault(time, [0.0, 0.0])
                    change[0] += sign
                    change[1] += sign * peaks[gpu]
    times = sorted(changes)
    table = np.array([changes[time] for time in times]).reshape(-1, 2)
    return Held(times=np.array(times), gpus=np.cumsum(table[:, 0]), flops=np.cumsum(table[:, 1]))


def _merged(stretches: list[Stretch]) -> list[Stretch]:
    """The same time without overlaps."""
    if len(stretches) == 1:
        return stretches
    result: list[Stretch] = []
    for begin, end in sorted(stretches):
        if result and begin <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        elif end > begin:
            result.append((begin, end))
    return result
