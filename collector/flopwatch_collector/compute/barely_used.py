"""*Barely used*: work without steps whose SMs were active for less than 5 % of an hour. A subtotal, no bucket."""

from typing import Final

import numpy as np

from flopwatch_collector.compute.rollup import hourly
from flopwatch_collector.model import Columns

SM_RATIO: Final = 0.05


def barely_used_gpu_milliseconds(rollups: Columns) -> int | None:
    """GPU time of BUSY_OPAQUE in hours in which the job's mean SM activity was below 5 %.

    None where there is such work and SM activity was not known in any hour of it.
    """
    rows = hourly(rollups)
    opaque, seconds = (
        np.nan_to_num(rows["opaque_gpu_seconds"]),
        np.nan_to_num(rows["sm_active_ratio_seconds"]),
    )
    worked, known = opaque > 0.0, seconds > 0.0
    if worked.any() and not (worked & known).any():
        return None
    mean = np.divide(rows["sm_active_ratio_sum"], seconds, out=np.ones(seconds.size), where=known)
    return round(float(opaque[worked & known & (mean < SM_RATIO)].sum()) * 1000.0)
