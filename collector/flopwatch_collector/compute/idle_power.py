"""What a GPU draws when nothing runs on it, from its own samples."""

from typing import Final

import numpy as np

from flopwatch_collector.model import Columns

LEAST_SAMPLES: Final = 5
LEAST_WATTS: Final = 1.0
"""Less is a sensor that does not answer."""
MOST_WATTS: Final = 250.0
"""No accelerator idles above it: a sensor that shows more without work says nothing of idleness."""


def idle_watts(samples: Columns) -> dict[int, float]:
    """By GPU: the median power of its samples without a process and without a kernel, where there are enough."""
    power, kernel = samples["power_watts"], samples["kernel_active_ratio"]
    empty = (samples["process_count"] == 0) & ~(kernel > 0.0) & (power >= LEAST_WATTS)
    gpu, watts = samples["gpu"][empty].astype(np.int64), power[empty]
    order = np.lexsort((watts, gpu))
    gpu, watts = gpu[order], watts[order]
    numbers, first, count = np.unique(gpu, return_index=True, return_counts=True)
    enough = count >= LEAST_SAMPLES
    middle = watts[first[enough] + (count[enough] - 1) // 2]
    plausible = middle <= MOST_WATTS
    return dict(zip(numbers[enough][plausible].tolist(), middle[plausible].tolist(), strict=True))
