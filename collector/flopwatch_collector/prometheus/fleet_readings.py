"""What is true now of fleet, jobs and alerts, as readings: from the same answers as the pages."""

from collections import Counter
from collections.abc import Iterator

from flopwatch import fleet_metrics as table
from flopwatch.metrics import Metric
from flopwatch.query import AlertRow, Fleet, JobRow, Query, Range, VerdictCode
from flopwatch_collector.prometheus.samples import Reading

VERDICTS: tuple[VerdictCode, ...] = (
    "above_sustained", "above_not_sustained", "below", "below_sustained", "insufficient_data",
)  # fmt: skip
Known = tuple[Metric, tuple[str, ...], float | None]


def readings(query: Query) -> Iterator[Reading]:
    """Every series that has a value now. What is unknown has none."""
    for metric, labels, value in _all(query):
        if value is not None:
            yield Reading(metric=metric, values=labels, value=float(value))


def _all(query: Query) -> Iterator[Known]:
    asked = Range()
    for cluster in query.status().clusters:
        name = (cluster.name,)
        yield table.NODES, name, cluster.nodes
        yield table.GPUS, name, cluster.gpus
        yield table.GPUS_REPORTING, name, cluster.gpus_reporting
        yield from _fleet(cluster.name, query.fleet(Range(cluster=cluster.name)))
    for row in query.jobs(asked).rows:
        if row.state != "ended":
            yield from _job(row)
    for labels, count in Counter(_alert(alert) for alert in query.alerts(asked).active).items():
        yield table.ALERT, labels, count


def _fleet(cluster: str, fleet: Fleet) -> Iterator[Known]:
    ledger, verdict, name = fleet.ledger_today, fleet.verdict, (cluster,)
    yield table.BILLABLE, name, ledger.billable_ratio
    yield table.BILLABLE_UPPER, name, ledger.billable_upper_ratio
    yield table.ALLOCATED, name, ledger.allocated_ratio
    yield table.UNKNOWN, name, ledger.unknown_ratio
    yield table.MEAN_30_DAYS, name, verdict.mean_30d_ratio
    yield table.BREAKEVEN, name, verdict.line_ratio
    for code in VERDICTS:
        yield table.VERDICT, (cluster, code), code == verdict.code
    yield table.FLEET_MFU, name, fleet.mfu.value
    yield table.FLEET_MFU_COVERAGE, name, fleet.mfu_coverage_ratio
    yield table.FLEET_MFU_TARGET, name, fleet.mfu_target_ratio
    for amount in ledger.classes:
        for label, milliseconds in amount.buckets.items():
            bucket, _, reason = label.partition(":")
            yield table.LEDGER, (cluster, amount.name, bucket, reason), milliseconds / 1000.0
    yield table.WASTE, name, ledger.waste_gpu_milliseconds / 1000.0
    yield table.WASTE_MONEY, (cluster, fleet.status.currency), ledger.waste_money


def _job(row: JobRow) -> Iterator[Known]:
    name = (row.cluster, row.job_id)
    who = (row.name, row.user, row.account, row.kind, row.scheduler, row.scheduler_job_id, row.gpu_model)
    yield table.JOB_INFO, (*name, *(text or "" for text in who)), 1.0
    yield table.JOB_STATE, (*name, row.state), 1.0
    yield table.JOB_GPUS, name, row.gpus
    yield table.JOB_GPUS_OBSERVED, name, row.gpus_observed
    yield table.JOB_NODES, name, row.nodes
    yield table.JOB_MFU, (*name, row.mfu.basis or "", row.mfu.convention), row.mfu.measured_ratio
    if row.mfu.basis == "hardware":
        yield table.JOB_HARDWARE, name, row.mfu.value_ratio
    yield table.JOB_WALL_MFU, name, row.wall_mfu_ratio
    yield table.JOB_TARGET, name, row.target.ratio
    yield table.JOB_KERNEL, name, row.kernel_active_ratio
    yield table.JOB_TENSOR, name, row.tensor_active_ratio
    yield table.JOB_TOKENS, name, row.mfu.tokens_per_second
    yield table.JOB_LAST_STEP, name, row.last_step
    yield table.JOB_LAST_STEP_TIME, name, row.last_step_seconds
    yield table.JOB_WASTE, name, row.waste_gpu_milliseconds / 1000.0


def _alert(row: AlertRow) -> tuple[str, ...]:
    """The alert's labels here; several of one job may share them."""
    where = (row.labels.get("cluster", ""), row.labels.get("job_id", ""), row.labels.get("node", ""))
    return (row.rule, row.state, row.severity, *where)
