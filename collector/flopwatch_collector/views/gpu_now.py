"""Every GPU as it is now: the bucket its time counts as, its health, the newest values; whole columns at a time."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flopwatch.answers.nodes import Health
from flopwatch.query import AlertRow
from flopwatch_collector.compute.buckets import BUCKETS, CODE, REASON_CODE, WINDOW_SECONDS
from flopwatch_collector.compute.holds import lease_end
from flopwatch_collector.compute.layout import take
from flopwatch_collector.compute.liability import APPLICATION_XIDS
from flopwatch_collector.compute.throttle import THROTTLE_BITS
from flopwatch_collector.model import Columns, FleetState, Gpu
from flopwatch_collector.schedulers.declared import Standing
from flopwatch_collector.views.sources import Moment, Sources
from flopwatch_collector.views.status import reporting_gpus

XID_SECONDS = 86_400.0
"""An XID is a warning for so long."""
THROTTLES = (
    (0x04, "power_cap"), (0x08, "hw_slowdown"), (0x20, "sw_thermal"), (0x40, "hw_thermal"), (0x80, "power_brake"),
)  # fmt: skip
"""NVML's clock event reasons that hold a clock down under load."""
STATE_PROBLEM = {"lost": "gpu_lost", "reset_required": "reset_required", "unreadable": "unreadable"}
PROBLEM_HEALTH: Mapping[str, Health] = {
    "gpu_lost": "critical", "reset_required": "critical", "unreadable": "warning", "recovery": "critical",
    "xid": "warning", "throttled": "warning", "alert_critical": "critical", "alert_warning": "warning",
    "silent": "unknown",
}  # fmt: skip
"""How bad a problem is; in the order in which they are told."""
WORST: tuple[Health, ...] = ("critical", "warning", "unknown", "ok")
PENDING = REASON_CODE["report_pending"]
LEAST_SECONDS = 150.0
"""A younger window says too little alone."""
NODES = 2**32
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """What was said of nodes and GPUs, beside samples."""

    declared: Mapping[tuple[str, str], tuple[Standing, ...]]
    """By cluster and node."""
    xids: frozenset[int]
    """GPUs with an XID of the hardware within the last day."""
    alerts: Mapping[str, Health]
    """The worst alert that fires, by GPU's UUID and by node's name."""


def told_of(sources: Sources, now: float) -> Told:
    """What holds now."""
    declared: dict[tuple[str, str], tuple[Standing, ...]] = {}
    for each in sources.declared(now):
        key = (each.cluster, each.node)
        declared[key] = (*declared.get(key, ()), each)
    return Told(
        declared=declared,
        xids=xids_of(sources.store.events(now - XID_SECONDS, now + 60.0, ("xid",))),
        alerts=alerts_by_place(sources.alerts.active()),
    )


def xids_of(events: Columns) -> frozenset[int]:
    """GPUs with an XID that an application cannot cause alone."""
    own = ~np.isin(np.nan_to_num(events["code"], nan=-1.0), sorted(APPLICATION_XIDS)) & (
        events["kind"] == "xid"
    )
    gpus = np.nan_to_num(events["gpu"])[own]
    return frozenset(int(gpu) for gpu in gpus if gpu > 0)


def alerts_by_place(rows: Iterable[AlertRow]) -> dict[str, Health]:
    """The worst warning or critical alert that fires, by GPU's UUID or, where it names none, by node's name."""
    found: dict[str, Health] = {}
    for row in rows:
        place = row.labels.get("gpu") or row.labels.get("node")
        if not place or row.state not in ("firing", "clearing") or row.severity == "info":
            continue
        found[place] = worst((found.get(place, "ok"), row.severity))
    return found


def worst(healths: Iterable[Health]) -> Health:
    """The worst of several; ``ok`` of none."""
    found = set(healths)
    return next((each for each in WORST if each in found), "ok")


def natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """A key that sorts ``n9`` before ``n10``."""
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in _DIGITS.split(name) if part)


def present_gpus(state: FleetState, cluster: str | None) -> dict[int, list[Gpu]]:
    """GPUs that are in their slots, by node, in the order of their index."""
    found: dict[int, list[Gpu]] = {}
    for gpu in state.gpus.values():
        if gpu.to_seconds is None and cluster in (None, gpu.cluster):
            found.setdefault(gpu.node, []).append(gpu)
    for own in found.values():
        own.sort(key=lambda gpu: (gpu.index if gpu.index is not None else 1_000, gpu.slot, gpu.uuid))
    return found


def rows_of(latest: Columns, numbers: Ints) -> Ints:
    """The row of each GPU's newest sample; -1 where there is none."""
    known = latest["gpu"].astype(np.int64)
    if not known.size:
        return np.full(numbers.size, -1, dtype=np.int64)
    order = np.argsort(known, kind="stable")
    place = np.minimum(np.searchsorted(known[order], numbers), known.size - 1)
    rows = order[place]
    return np.where(known[rows] == numbers, rows, -1)


def column(latest: Columns, name: str, rows: Ints) -> Floats:
    """A column of the newest samples; not a number where there is none."""
    if not latest[name].size:
        return np.full(rows.size, np.nan)
    return np.where(rows >= 0, latest[name][np.maximum(rows, 0)], np.nan)


def jobs_held(state: FleetState, now: float) -> dict[int, int]:
    """Job of each GPU by the leases that run now."""
    return {
        gpu: lease.job
        for lease in state.leases.values()
        if lease.start_seconds <= now
        and ((end := lease_end(lease, state.jobs.get(lease.job))) is None or now < end)
        for gpu in lease.gpus
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class Now:
    """What decides about GPUs, each array as long as there are GPUs."""

    number: Ints
    node: Ints
    rows: Ints
    """Of the newest samples; -1 none."""
    reporting: npt.NDArray[np.bool_]
    job: Ints
    """0: none."""
    process: Floats
    kernel: Floats


def now_of(moment: Moment, gpus: list[Gpu]) -> Now:
    """Of these GPUs, what their newest samples and leases say."""
    state, latest = moment.state, moment.state.latest
    number = np.array([gpu.number for gpu in gpus], dtype=np.int64)
    rows = rows_of(latest, number)
    fresh = reporting_gpus(state, moment.now)
    reporting = np.array([gpu.number in fresh for gpu in gpus], dtype=np.bool_)
    held = jobs_held(state, moment.now)
    leased = np.array([held.get(gpu.number, 0) for gpu in gpus], dtype=np.int64)
    sampled = np.nan_to_num(column(latest, "job", rows)).astype(np.int64)
    return Now(
        number=number,
        node=np.array([gpu.node for gpu in gpus], dtype=np.int64),
        rows=rows,
        reporting=reporting,
        job=np.where((sampled > 0) & reporting, sampled, leased),
        process=column(latest, "process_count", rows),
        kernel=column(latest, "kernel_active_ratio", rows),
    )


def buckets_of(sources: Sources, gpus: list[Gpu], now: Now, told: Told, state: FleetState) -> Ints:
    """The bucket of each GPU now, an index into ``BUCKETS``.

    Time of a job counts as the ledger's newest windows say of the job on that node; a GPU of it without a process
    is held empty. The rest follows from what holds of the GPU itself.
    """
    ticked, newest = sources.accounting.newest()
    found = _of_jobs(newest.ledger, now, ticked)
    empty = (now.job > 0) & (now.process == 0)
    found[empty] = CODE["HELD_EMPTY"]
    free = now.job == 0
    found[free] = np.where(now.process[free] > 0, CODE["BUSY_OPAQUE"], CODE["FREE"])
    found[~now.reporting] = CODE["UNKNOWN"]
    for at, gpu in enumerate(gpus):
        if gpu.state != "ok":
            found[at] = CODE["FAULT"]
    _declare(found, gpus, told, state, free)
    return found


def _declare(
    found: Ints, gpus: list[Gpu], told: Told, state: FleetState, free: npt.NDArray[np.bool_]
) -> None:
    """GPUs that nobody holds count as what is declared of them."""
    if not told.declared:
        return
    bucket = {"maintenance": "MAINT", "spare": "SPARE", "drain": "FAULT", "faulty": "FAULT"}
    for at, gpu in enumerate(gpus):
        node = state.nodes.get(gpu.node)
        for each in told.declared.get((gpu.cluster, node.name if node else ""), ()):
            if free[at] and each.gpu in (None, gpu.uuid):
                found[at] = CODE[bucket[each.declaration]]


def _of_jobs(ledger: Columns, now: Now, ticked: float) -> Ints:
    """By job and node, the bucket with most time in the newest window; ``BUSY_OPAQUE`` where it has none yet.

    A window that has only begun is taken together with the one before. Time whose report is still due counts only
    where there is no other: it is told apart from work that nobody measures when the report comes.
    """
    result = np.full(now.job.size, CODE["BUSY_OPAQUE"], dtype=np.int64)
    last = float(ledger["ts"].max(initial=0.0))
    since = last if ticked - last >= LEAST_SECONDS else last - WINDOW_SECONDS
    newest = take(ledger, ledger["ts"] >= since)
    if not newest["ts"].size:
        return result
    pairs = newest["job"].astype(np.int64) * NODES + newest["node"].astype(np.int64)
    keys, place = np.unique(pairs, return_inverse=True)
    totals = np.zeros((keys.size, len(BUCKETS)), dtype=np.int64)
    weight = np.where(newest["reason"] == PENDING, 1, newest["gpu_milliseconds"])
    np.add.at(totals, (place, newest["bucket"].astype(np.int64)), weight)
    largest, idle = totals.argmax(axis=1), totals[:, CODE["HELD_IDLE"]] > 0
    own = now.job * NODES + now.node
    at = np.minimum(np.searchsorted(keys, own), keys.size - 1)
    known = (keys[at] == own) & (now.job > 0)
    result[known] = largest[at[known]]
    resting = known & idle[at] & (now.kernel == 0.0)
    result[resting] = CODE["HELD_IDLE"]
    return result


def problems_of(gpu: Gpu, reporting: bool, sample: Mapping[str, float], told: Told) -> tuple[str, ...]:  # noqa: FBT001 - a fact
    """What is wrong with a GPU, as codes of ``PROBLEM_HEALTH``, in their order; ``sample`` may be empty."""
    reasons, action = sample.get("clock_event_reasons", 0.0), sample.get("recovery_action", 0.0)
    found = {
        STATE_PROBLEM.get(gpu.state, ""),
        "recovery" if action > 0 else "",
        "xid" if gpu.number in told.xids else "",
        "throttled" if reporting and math.isfinite(reasons) and int(reasons) & THROTTLE_BITS else "",
        f"alert_{told.alerts[gpu.uuid]}" if gpu.uuid in told.alerts else "",
        "" if reporting else "silent",
    }
    return tuple(code for code in PROBLEM_HEALTH if code in found)


def health_of(problems: Iterable[str]) -> Health:
    """The health that problems leave."""
    return worst(PROBLEM_HEALTH[code] for code in problems if code in PROBLEM_HEALTH)


def suspicious(moment: Moment, gpus: list[Gpu], now: Now, told: Told) -> npt.NDArray[np.bool_]:
    """GPUs of which something may have to be said; all others are well."""
    latest = moment.state.latest
    reasons = np.nan_to_num(column(latest, "clock_event_reasons", now.rows)).astype(np.int64)
    action = np.nan_to_num(column(latest, "recovery_action", now.rows))
    marked = np.array(
        [gpu.state != "ok" or gpu.number in told.xids or gpu.uuid in told.alerts for gpu in gpus],
        dtype=np.bool_,
    )
    flagged: npt.NDArray[np.bool_] = ~now.reporting | ((reasons & THROTTLE_BITS) != 0) | (action > 0) | marked
    return flagged


def throttles_of(reasons: float | None) -> tuple[str, ...]:
    """Why a clock is held down, in words' codes."""
    bits = 0 if reasons is None or not math.isfinite(reasons) else int(reasons)
    return tuple(name for bit, name in THROTTLES if bits & bit)
