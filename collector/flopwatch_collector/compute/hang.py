"""Whether a silent run hangs: only when its step source lives and its hardware says so too."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from flopwatch_collector.compute.gpu_state import STALE_INTERVALS
from flopwatch_collector.compute.job_state import Outcome, Silence
from flopwatch_collector.compute.layout import take
from flopwatch_collector.model import Columns

BASELINE_SECONDS = 1800.0
"""How much of the run before the silence gives its usual power."""
LEAST_INTERVALS = 3.5
"""The silence is judged over so many samples at least, where they are far apart."""
LONGEST_SECONDS = LEAST_INTERVALS * 900.0
POWER_FACTOR = 0.5
TENSOR_RATIO = 0.001
EVIDENCE_SAMPLES = (
    "ts",
    "gpu",
    "node",
    "job",
    "interval_seconds",
    "power_watts",
    "tensor_active_ratio",
    "process_count",
)


def evidence_span(silence: Silence) -> tuple[float, float]:
    """The time whose samples decide: fixed, so that a later look gives the same answer."""
    longest = max(silence.threshold_seconds, LONGEST_SECONDS)
    return silence.start_seconds - BASELINE_SECONDS, silence.start_seconds + longest


def outcome(silence: Silence, gpus: Iterable[int], samples: Columns, *, readable: bool) -> Outcome:
    """What the silence was. ``gpus`` are the run's, ``readable`` whether the step source's log can be read.

    A hang needs the source's node to have sent samples until the threshold, and one of: power below half of
    the run's usual on all GPUs, tensor activity of 0.1 % at most on all, or no process left on any.
    """
    start, (first, last) = silence.start_seconds, evidence_span(silence)
    inside = (samples["ts"] > first) & (samples["ts"] <= last)
    rows = take(samples, inside & np.isin(samples["gpu"], np.fromiter(gpus, dtype=np.int64)))
    usual = take(rows, rows["ts"] <= start)
    interval = _interval(usual if usual["ts"].size else rows)
    end = min(start + max(silence.threshold_seconds, LEAST_INTERVALS * interval), silence.end_seconds)
    silent = take(rows, (rows["ts"] > start + interval) & (rows["ts"] <= end))
    if not readable or not _alive(silence, silent, end):
        return "steps_lost"
    evident = _power_fell(usual, silent) or _tensor_off(silent) or _processes_gone(silent)
    return "hang" if evident else "steps_lost"


def _interval(rows: Columns) -> float:
    """The usual time between samples; the one that spans the last step still shows its work."""
    intervals = rows["interval_seconds"]
    return float(np.nanmedian(intervals)) if np.isfinite(intervals).any() else 0.0


def _alive(silence: Silence, silent: Columns, end: float) -> bool:
    """Whether the node that sent the steps was sampled until the end of the threshold."""
    own = silent["node"] == silence.source_node
    chosen = own if silence.source_node is not None and own.any() else np.ones(own.size, dtype=np.bool_)
    if not chosen.any() or (silence.source_node is not None and not own.any()):
        return False
    newest = int(np.argmax(np.where(chosen, silent["ts"], -np.inf)))
    interval = float(np.nan_to_num(silent["interval_seconds"][newest], nan=10.0))
    return bool(end - silent["ts"][newest] <= STALE_INTERVALS * interval)


def _power_fell(usual: Columns, silent: Columns) -> bool:
    before = usual["power_watts"]
    if not np.isfinite(before).any() or not np.isfinite(silent["power_watts"]).any():
        return False
    limit = POWER_FACTOR * float(np.nanmedian(before))
    medians = [
        float(np.nanmedian(power))
        for gpu in np.unique(silent["gpu"])
        if np.isfinite(power := silent["power_watts"][silent["gpu"] == gpu]).any()
    ]
    return all(median < limit for median in medians)


def _tensor_off(silent: Columns) -> bool:
    tensor = silent["tensor_active_ratio"]
    return bool(np.isfinite(tensor).all() and (tensor <= TENSOR_RATIO).all())


def _processes_gone(silent: Columns) -> bool:
    """Whether at the end no GPU has a process any more."""
    newest: npt.NDArray[np.bool_] = silent["ts"] >= silent["ts"].max() - np.nanmedian(
        silent["interval_seconds"]
    )
    count = silent["process_count"][newest]
    return bool(count.size and (count == 0).all())
