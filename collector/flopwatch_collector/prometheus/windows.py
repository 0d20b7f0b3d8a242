"""Closed windows of ledger and rollups as readings."""

from collections.abc import Iterator

import numpy as np

from flopwatch import fleet_metrics as table
from flopwatch.metrics import Metric
from flopwatch_collector.compute.buckets import BUCKETS, REASONS, WINDOW_SECONDS
from flopwatch_collector.compute.classes import CLASS_OF, by_bucket, waste_by_job
from flopwatch_collector.compute.layout import take
from flopwatch_collector.model import Columns, FleetState
from flopwatch_collector.prometheus.samples import Reading


def ends_between(after: float, edge: float) -> list[float]:
    """Ends of the windows that closed after ``after``, up to ``edge``; windows begin at multiples of their length."""
    first = int(after // WINDOW_SECONDS) + 1
    return [float(number * WINDOW_SECONDS) for number in range(first, int(edge // WINDOW_SECONDS) + 1)]


def window_readings(ledger: Columns, rollups: Columns, state: FleetState) -> list[Reading]:
    """Everything of one window: GPU time by bucket of every cluster, and what every job did.

    ``ledger`` and ``rollups`` hold the rows of this window only.
    """
    return [*_ledger(ledger, state), *_jobs(ledger, rollups, state)]


def _ledger(ledger: Columns, state: FleetState) -> Iterator[Reading]:
    clusters: dict[str, list[int]] = {}
    for node in state.nodes.values():
        clusters.setdefault(node.cluster, []).append(node.number)
    for cluster, nodes in sorted(clusters.items()):
        rows = take(ledger, np.isin(ledger["node"], np.array(nodes, dtype=np.int64)))
        for (bucket, reason), milliseconds in by_bucket(rows).items():
            name = BUCKETS[bucket]
            labels = (cluster, CLASS_OF[name], name, REASONS[reason])
            yield Reading(metric=table.WINDOW_LEDGER, values=labels, value=milliseconds / 1000.0)


def _jobs(ledger: Columns, rollups: Columns, state: FleetState) -> Iterator[Reading]:
    wasted = waste_by_job(ledger)
    for row, number in enumerate(rollups["job"].tolist()):
        record = state.jobs.get(int(number))
        if record is None:
            continue
        values: tuple[tuple[Metric, float], ...] = (
            (table.WINDOW_JOB_GPU, float(rollups["gpu_seconds"][row])),
            (table.WINDOW_JOB_WASTE, wasted.get(record.number, 0) / 1000.0),
            (table.WINDOW_JOB_MFU, _ratio(rollups, row, "kept_flops", "leased_peak_flop_seconds")),
            (table.WINDOW_JOB_KERNEL, _mean(rollups, row, "kernel_active_ratio")),
            (table.WINDOW_JOB_TENSOR, _mean(rollups, row, "tensor_active_ratio")),
        )
        for metric, value in values:
            if np.isfinite(value):
                yield Reading(metric=metric, values=(record.cluster, record.job_id), value=value)


def _mean(rows: Columns, row: int, name: str) -> float:
    return _ratio(rows, row, f"{name}_sum", f"{name}_seconds")


def _ratio(rows: Columns, row: int, part: str, whole: str) -> float:
    """One column over another; not a number where the second is unknown or nothing."""
    below = float(rows[whole][row])
    return float(rows[part][row]) / below if below > 0 else float("nan")
