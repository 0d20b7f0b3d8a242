"""Whether a run writes to storage as it does for a checkpoint: in its regular dips, or while it is silent.

The counters are those of its own cgroups. Storage over the network is not in them: no write says nothing.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from flopwatch_collector.compute.detection.dips import Dips
from flopwatch_collector.compute.layout import take
from flopwatch_collector.model import Columns

WRITE_BACK_SECONDS: Final = 30.0
"""So long the kernel may keep what was written before it counts it as written (dirty_expire_centisecs)."""
WRITE_FACTOR: Final = 3.0
LEAST_BYTES_PER_SECOND: Final = 10e6
"""A log or a metrics file is less; a checkpoint is more."""
SILENT_SECONDS: Final = 120.0
Flags = npt.NDArray[np.bool_]


def writes_during(hosts: Columns, dips: Dips) -> bool | None:
    """Whether one of the run's nodes writes in its dips, and far more than between them.

    ``hosts`` are samples of the run by time, of all its nodes. None where no write was ever counted, or where the
    samples do not tell dips from the time between them.
    """
    late = min(WRITE_BACK_SECONDS, 0.25 * dips.period_seconds)
    known = []
    for grown in _growths(hosts):
        place = np.searchsorted(dips.begins, grown["end"], "left") - 1
        meanwhile = (place >= 0) & (grown["begin"] < dips.ends[np.maximum(place, 0)] + late)
        seen = (grown["end"] >= dips.begins[0]) & (grown["begin"] <= dips.ends[-1] + late)
        inside, between = _rate(grown, seen & meanwhile), _rate(grown, seen & ~meanwhile)
        if inside is not None and between is not None:
            known.append((inside, between))
    if not any(inside + between for inside, between in known):
        return None
    return any(inside >= max(LEAST_BYTES_PER_SECOND, WRITE_FACTOR * between) for inside, between in known)


def writes_since(hosts: Columns, since: float, now: float) -> bool | None:
    """Whether one of the run's nodes has been writing in the newest two minutes of a silence; None: not known."""
    begin = max(since, now - SILENT_SECONDS)
    rates = [_rate(grown, grown["begin"] >= begin) for grown in _growths(hosts)]
    known = [rate for rate in rates if rate is not None]
    return max(known) >= LEAST_BYTES_PER_SECOND if known else None


def _growths(hosts: Columns) -> list[Columns]:
    """Of every node: begin, end and bytes written between two samples, resets left out."""
    found = []
    for node in np.unique(hosts["node"]).tolist():
        own = take(hosts, (hosts["node"] == node) & np.isfinite(hosts["disk_write_bytes"]))
        rows = {"begin": own["ts"][:-1], "end": own["ts"][1:], "written": np.diff(own["disk_write_bytes"])}
        found.append(take(rows, (rows["written"] >= 0) & (rows["end"] > rows["begin"])))
    return found


def _rate(grown: Columns, chosen: Flags) -> float | None:
    """Bytes a second over the chosen stretches; None without any."""
    seconds = float((grown["end"] - grown["begin"])[chosen].sum())
    return float(grown["written"][chosen].sum()) / seconds if seconds > 0 else None
