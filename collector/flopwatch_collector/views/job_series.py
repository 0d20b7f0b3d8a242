"""Courses over time of one job: activity, power, memory and network, and its steps."""

import numpy as np
import numpy.typing as npt

from flopwatch.query import Series
from flopwatch_collector.compute.layout import take
from flopwatch_collector.compute.mfu import JobBasis, mfu_series, tokens_of
from flopwatch_collector.compute.timeline import JobTimeline
from flopwatch_collector.model import Columns
from flopwatch_collector.views.present import JobNow
from flopwatch_collector.views.rollups import counted, ratio, summed
from flopwatch_collector.views.series import RAW_STEP_SECONDS, RAW_UP_TO_SECONDS, minutes
from flopwatch_collector.views.sources import Moment, Sources
from flopwatch_collector.views.thinning import known, thinned

LEVELS = {RAW_STEP_SECONDS: "raw", 300.0: "5m", 3_600.0: "1h"}
MOST_RAW_SAMPLES = 1_500_000
"""Memory and network are read from raw samples where that many or fewer answer for the range."""
MOST_LINK_SAMPLES = 400_000
PERCENTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0}
COLUMNS = (
    "mfu", "kernel_active", "tensor_active", "power_watts", "memory_used_ratio", "nic_bytes_per_second",
    "nvlink_bytes_per_second",
)  # fmt: skip
Floats = npt.NDArray[np.float64]


def job_series(
    sources: Sources, moment: Moment, job: JobNow, timeline: JobTimeline | None, rolled: Columns
) -> Series:
    """The courses of the range: by the minute, by five minutes, or by the hour."""
    step = (
        RAW_STEP_SECONDS if moment.asked.seconds <= RAW_UP_TO_SECONDS else 3_600.0 if moment.hourly else 300.0
    )
    edges = minutes(moment) if step == RAW_STEP_SECONDS else np.arange(moment.start, moment.now + step, step)
    columns = {name: np.full(edges.size - 1, np.nan) for name in COLUMNS}
    if step == RAW_STEP_SECONDS:
        if timeline is not None:
            columns["mfu"] = mfu_series(timeline, job.basis, edges)
    else:
        columns |= _of_rollups(rolled, edges, step)
    columns |= _of_samples(sources, moment, job, edges)
    rows = {"ts": edges[:-1], **columns}
    spanned = take(rows, _within_life(job, rows["ts"], step))
    fewer = thinned(
        spanned, "mfu" if np.isfinite(spanned["mfu"]).any() else "kernel_active", moment.asked.points
    )
    return Series(
        level=LEVELS[step],
        step_seconds=step,
        time_seconds=tuple(fewer["ts"].tolist()),
        columns={name: known(fewer[name]) for name in COLUMNS},
    )


def _within_life(job: JobNow, times: Floats, step: float) -> npt.NDArray[np.bool_]:
    begin = job.record.start_seconds if job.record.start_seconds is not None else -np.inf
    end = job.record.end_seconds if job.record.end_seconds is not None else np.inf
    return (times + step > begin) & (times < end)


def _of_rollups(rolled: Columns, edges: Floats, step: float) -> dict[str, Floats]:
    index = np.floor((rolled["ts"] - edges[0]) / step).astype(np.int64)
    inside = (index >= 0) & (index < edges.size - 1)
    rows, index = take(rolled, inside), index[inside]

    def total(name: str) -> Floats:
        return summed(rows, name, index, edges.size - 1)

    result = {
        short: ratio(total(f"{name}_sum"), total(f"{name}_seconds"))
        for short, name in (
            ("kernel_active", "kernel_active_ratio"),
            ("tensor_active", "tensor_active_ratio"),
            ("power_watts", "power_watts"),
        )
    }
    result["mfu"] = ratio(total("steady_flops"), total("steady_peak_flop_seconds"))
    return result


def _of_samples(sources: Sources, moment: Moment, job: JobNow, edges: Floats) -> dict[str, Floats]:
    """What only raw samples and ports tell; nothing where there are too many of them to read at once."""
    step = float(edges[1] - edges[0]) if edges.size > 1 else RAW_STEP_SECONDS
    gpus = sorted({gpu for part in job.record.parts for gpu in (part.gpus or part.leased_gpus or ())})
    begin = max(float(edges[0]), job.record.start_seconds or float(edges[0]))
    end = min(float(edges[-1]), job.record.end_seconds or float(edges[-1]), moment.now)
    expected = max(0.0, end - begin) / 10.0 * len(gpus)
    if not 0 < expected <= MOST_RAW_SAMPLES:
        return {}
    found = sources.store.job_series(float(edges[0]), end, step, jobs=[job.record.number])
    result: dict[str, Floats] = {}
    total = _memory_total(moment, gpus)
    memory = _placed(found["ts"], found["memory_used_bytes"], edges, step)
    result["memory_used_ratio"] = memory / total if total else np.full(memory.size, np.nan)
    if step == RAW_STEP_SECONDS:
        result["kernel_active"] = _placed(found["ts"], found["kernel_active_ratio"], edges, step)
        result["tensor_active"] = _placed(found["ts"], found["tensor_active_ratio"], edges, step)
        result["power_watts"] = _placed(found["ts"], found["power_watts"], edges, step)
    nodes = sorted({part.node for part in job.record.parts})
    result["nic_bytes_per_second"] = _network(sources, nodes, edges, (step, end))
    if expected <= MOST_LINK_SAMPLES:
        result["nvlink_bytes_per_second"] = _links(sources, gpus, edges, end)
    return result


def _placed(times: Floats, values: Floats, edges: Floats, step: float) -> Floats:
    """Values at their bucket; not a number where there is none."""
    result = np.full(edges.size - 1, np.nan)
    index = np.round((times - edges[0]) / step).astype(np.int64)
    inside = (index >= 0) & (index < result.size)
    result[index[inside]] = values[inside]
    return result


def _memory_total(moment: Moment, gpus: list[int]) -> float | None:
    """Mean memory of the job's GPUs in bytes."""
    sizes = [
        gpu.memory_total_bytes
        for number in gpus
        if (gpu := moment.state.gpus.get(number)) is not None and gpu.memory_total_bytes
    ]
    return sum(sizes) / len(sizes) if sizes else None


def _network(sources: Sources, nodes: list[int], edges: Floats, span: tuple[float, float]) -> Floats:
    """Bytes a second in and out of the job's nodes, all together."""
    step, end = span
    rows = sources.store.node_series(float(edges[0]), end, step, nodes)
    both = rows["transmit_bytes_per_second"] + rows["receive_bytes_per_second"]
    index = np.round((rows["ts"] - edges[0]) / step).astype(np.int64)
    inside = (index >= 0) & (index < edges.size - 1) & np.isfinite(both)
    total = counted(index[inside], both[inside], edges.size - 1)
    count = np.bincount(index[inside], minlength=edges.size - 1)
    return np.where(count > 0, total, np.nan)


def _links(sources: Sources, gpus: list[int], edges: Floats, end: float) -> Floats:
    """NVLink bytes a second of the job's GPUs, all together, from counters that may start again."""
    names = ("nvlink_transmit_bytes", "nvlink_receive_bytes")
    rows = sources.store.gpu_samples(float(edges[0]), end, names, gpus=gpus)
    moved = rows["nvlink_transmit_bytes"] + rows["nvlink_receive_bytes"]
    delta, passed = np.diff(moved), np.diff(rows["ts"])
    usable = (np.diff(rows["gpu"]) == 0) & np.isfinite(delta) & (delta >= 0) & (passed > 0)
    index = np.searchsorted(edges, rows["ts"][1:][usable], side="right") - 1
    inside = (index >= 0) & (index < edges.size - 1)
    index, delta, passed = index[inside], delta[usable][inside], passed[usable][inside]
    return ratio(counted(index, delta, edges.size - 1), counted(index, passed, edges.size - 1)) * len(gpus)


def steps_series(timeline: JobTimeline | None, basis: JobBasis, moment: Moment) -> Series:
    """The kept steps of the range, thinned so that slow ones stay."""
    names = ("step_seconds", "tokens_per_second", "loss", "step")
    if timeline is None:
        return Series(level="raw", step_seconds=0.0, time_seconds=(), columns=dict.fromkeys(names, ()))
    kept = timeline.kept()
    steps = take(kept, (kept["ts"] >= moment.start) & (kept["ts"] <= moment.now))
    seconds = np.where(steps["seconds"] > 0, steps["seconds"], np.nan)
    rows = {
        "ts": steps["ts"],
        "step_seconds": seconds / steps["steps_covered"],
        "tokens_per_second": tokens_of(steps, basis.run) / seconds,
        "loss": steps["loss"],
        "step": steps["step"].astype(np.float64),
    }
    fewer = thinned(rows, "step_seconds", moment.asked.points)
    apart = float(np.median(np.diff(steps["ts"]))) if steps["ts"].size > 1 else 0.0
    return Series(
        level="raw",
        step_seconds=apart,
        time_seconds=tuple(fewer["ts"].tolist()),
        columns={name: known(fewer[name]) for name in names},
    )


def step_percentiles(timeline: JobTimeline | None, moment: Moment) -> dict[str, float | None]:
    """Step times of steady steps in the range; each report counts as the steps it covers."""
    nothing: dict[str, float | None] = dict.fromkeys(PERCENTILES)
    if timeline is None:
        return nothing
    steady = timeline.steady()
    chosen = (steady["ts"] >= moment.start) & (steady["seconds"] > 0)
    seconds = (steady["seconds"] / steady["steps_covered"])[chosen]
    if not seconds.size:
        return nothing
    order = np.argsort(seconds)
    counted = np.cumsum(steady["steps_covered"][chosen][order])
    result: dict[str, float | None] = {}
    for name, percent in PERCENTILES.items():
        at = int(np.searchsorted(counted, percent / 100.0 * counted[-1]))
        result[name] = float(seconds[order][min(at, seconds.size - 1)])
    return result
