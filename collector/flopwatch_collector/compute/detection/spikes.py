"""Single long steps: the share of steps beyond the usual spread, and beyond a tenth of the usual time."""

from typing import Final

import numpy as np
import numpy.typing as npt

from flopwatch_collector.compute.detection.middle import middle

Floats = npt.NDArray[np.float64]
DEVIATIONS: Final = 3.0
LEAST_EXCESS: Final = 1.10
"""Equal steps have no deviation at all: a tenth more than usual is the least that counts."""
LEAST_STEPS: Final = 10


def spikes(seconds: Floats) -> npt.NDArray[np.bool_]:
    """Which steps are spikes: above median + 3 median absolute deviations, and at least 1.10 x median."""
    if not seconds.size:
        return np.zeros(0, dtype=np.bool_)
    usual = middle(seconds)
    deviation = middle(np.abs(seconds - usual))
    return (seconds > usual + DEVIATIONS * deviation) & (seconds >= LEAST_EXCESS * usual)


def spike_share(seconds: Floats) -> float | None:
    """Share of the steps that are spikes; None of fewer than ten."""
    return float(spikes(seconds).mean()) if seconds.size >= LEAST_STEPS else None
