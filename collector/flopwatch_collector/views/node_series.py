"""Courses of a node's or a GPU's hardware over time; the width of a bucket follows from the range."""

import warnings
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from flopwatch.query import Series
from flopwatch_collector.model import Columns, Gpu
from flopwatch_collector.views.sources import Moment, Sources
from flopwatch_collector.views.thinning import known

STEPS = (10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0, 21_600.0, 86_400.0)
MOST_POINTS = 1_500
LEAST_NETWORK_SECONDS = 60.0
"""Rates of ports over less would be those of one or two samples."""
GPU_SERIES = {
    "kernel_active": "kernel_active_ratio", "sm_active": "sm_active_ratio", "tensor_active": "tensor_active_ratio",
    "dram_active": "dram_active_ratio", "power_watts": "power_watts", "temperature_celsius": "temperature_celsius",
    "memory_temperature_celsius": "memory_temperature_celsius", "sm_clock_hertz": "sm_clock_hertz",
    "memory_clock_hertz": "memory_clock_hertz", "memory_used_bytes": "memory_used_bytes",
}  # fmt: skip
NODE_SERIES = ("kernel_active_ratio", "tensor_active_ratio", "power_watts", "temperature_celsius")
Floats = npt.NDArray[np.float64]


def step_of(seconds: float, points: int) -> float:
    """The width of a bucket that gives at most about ``points`` of them."""
    wanted = seconds / max(1, min(points, MOST_POINTS))
    return next((step for step in STEPS if step >= wanted), STEPS[-1])


def level_of(step: float) -> str:
    """What a bucket's values are: single samples, or means of so long."""
    if step <= STEPS[0]:
        return "raw"
    return f"{step / 3_600:g}h" if step >= 3_600 else f"{step / 60:g}m" if step >= 60 else f"{step:g}s"


def of_gpu(sources: Sources, moment: Moment, gpu: Gpu) -> Series:
    """One GPU, wherever it was."""
    numbers = [each.number for each in moment.state.gpus.values() if each.uuid == gpu.uuid]
    step = step_of(moment.asked.seconds, moment.asked.points)
    times = _times(moment, step)
    rows = sources.store.gpu_series(
        float(times[0]), moment.now + step, step, tuple(GPU_SERIES.values()), numbers
    )
    columns = {name: _placed(rows, each, times, step) for name, each in GPU_SERIES.items()}
    total = gpu.memory_total_bytes
    used = columns.pop("memory_used_bytes")
    columns["memory_used_ratio"] = used / total if total else np.full(times.size, np.nan)
    return _series(times, step, columns)


def of_node(sources: Sources, moment: Moment, node: int, gpus: Sequence[int]) -> Series:
    """A node's GPUs together: means of activity, all power, the hottest; and its network."""
    step = step_of(moment.asked.seconds, moment.asked.points)
    times = _times(moment, step)
    rows = sources.store.gpu_series(float(times[0]), moment.now + step, step, NODE_SERIES, gpus)
    by_gpu = {name: _matrix(rows, name, times, step, gpus) for name in NODE_SERIES}
    columns = {
        "kernel_active": over(by_gpu["kernel_active_ratio"], "mean"),
        "tensor_active": over(by_gpu["tensor_active_ratio"], "mean"),
        "node_power_watts": over(by_gpu["power_watts"], "sum"),
        "hottest_celsius": over(by_gpu["temperature_celsius"], "max"),
    }
    return _series(times, step, {**columns, **_network(sources, moment, node, (times, step))})


def over(values: Floats, how: str) -> Floats:
    """One value a time over all GPUs that gave one; a sum only where all that ever gave one do."""
    if not values.size:
        return np.full(values.shape[1], np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a time without any value is not a number
        if how == "sum":
            giving = np.isfinite(values).any(axis=1)
            whole: Floats = values[giving].sum(axis=0) if giving.any() else np.full(values.shape[1], np.nan)
            return whole
        reduced: Floats = (np.nanmax if how == "max" else np.nanmean)(values, axis=0)
    return reduced


def _times(moment: Moment, step: float) -> Floats:
    """Begins of the buckets of the range, up to the newest that has begun."""
    return np.arange((moment.now - moment.asked.seconds) // step * step, moment.now, step)


def _placed(rows: Columns, name: str, times: Floats, step: float) -> Floats:
    """A column on the range's times; where a GPU has two numbers, the values of one or the other."""
    result = np.full(times.size, np.nan)
    at = np.round((rows["ts"] - times[0]) / step).astype(np.int64)
    inside = (at >= 0) & (at < times.size) & np.isfinite(rows[name])
    result[at[inside]] = rows[name][inside]
    return result


def _matrix(rows: Columns, name: str, times: Floats, step: float, gpus: Iterable[int]) -> Floats:
    lines = [
        _placed({"ts": rows["ts"][own], name: rows[name][own]}, name, times, step)
        for own in (rows["gpu"] == gpu for gpu in gpus)
    ]
    return np.array(lines) if lines else np.empty((0, times.size))


def _network(sources: Sources, moment: Moment, node: int, grid: tuple[Floats, float]) -> dict[str, Floats]:
    times, step = grid
    wide = max(step, LEAST_NETWORK_SECONDS)
    rows = sources.store.node_series(times[0] // wide * wide, moment.now + step, wide, [node])
    result = {}
    for name in ("transmit", "receive"):
        values = dict(zip(rows["ts"].tolist(), rows[f"{name}_bytes_per_second"].tolist(), strict=True))
        result[f"nic_{name}"] = np.array([values.get(time // wide * wide, np.nan) for time in times.tolist()])
    return result


def _series(times: Floats, step: float, columns: Mapping[str, Floats]) -> Series:
    return Series(
        level=level_of(step),
        step_seconds=step,
        time_seconds=tuple(times.tolist()),
        columns={name: known(values) for name, values in columns.items()},
    )
