"""Facts of one job and one node, to be changed by a test."""

from dataclasses import replace
from typing import Any

from flopwatch.query import JobRow, MfuFigure, Target
from flopwatch_collector.alerting.rules import read_all
from flopwatch_collector.alerting.state import Reading
from flopwatch_collector.config import AlertSettings
from flopwatch_collector.facts import Facts, JobFacts, NodeFacts
from flopwatch_collector.watched import NodeHealth, WatchedRun

NOW = 100_000.0


def figure(value: float | None) -> MfuFigure:
    return MfuFigure(
        value_ratio=value, palm_ratio=None, convention="causal", basis="steps+shape" if value is not None else None,
        reason=None if value is not None else "no_steps", flops_per_token=None, palm_flops_per_token=None,
        tokens_per_second=None, gpus=8, gpus_basis="world_size", gpus_observed=8, gpu_model=None, peak_flops=None,
        peak_source=None, dtype=None, dtype_basis=None, shape_origin=None, steps=20,
        window_start_seconds=NOW - 200, window_end_seconds=NOW - 5,
    )  # fmt: skip


def row(mfu: float | None = 0.4, **changes: Any) -> JobRow:
    made = JobRow(
        job_id="j1", name="llama", cluster="a", user="ann", account="nlp", kind="pretrain", state="running",
        scheduler="slurm", scheduler_job_id="17", waiting_for=None, gpus=8, gpus_basis="world_size", gpus_observed=8,
        nodes=1, gpu_model="NVIDIA H100 80GB HBM3", mfu=figure(mfu), wall_mfu_ratio=None,
        target=Target(ratio=None, source="none"), kernel_active_ratio=0.6, tensor_active_ratio=0.5, trend=(),
        start_seconds=NOW - 10_000, end_seconds=None, last_step=1_000, last_step_seconds=NOW - 5,
        waste_gpu_milliseconds=0, waste_money=None, waste_by_class={}, cause=None, findings=0, trainer=None,
    )  # fmt: skip
    return replace(made, **changes)


def job(run: WatchedRun, *, mfu: float | None = 0.4, **changes: Any) -> JobFacts:
    made = JobFacts(
        row=row(mfu), bucket="STEP", bucket_since_seconds=NOW - 1_000, steps_since_start=1_000,
        report_gap_seconds=10.0, data_seconds=NOW - 3, nodes=frozenset(("n1",)), run=run,
    )  # fmt: skip
    return replace(made, **changes)


def node(health: NodeHealth, **changes: Any) -> NodeFacts:
    made = NodeFacts(
        cluster="a", node="n1", last_seen_seconds=NOW - 8, interval_seconds=10.0, bucket="STEP", gpus=8, health=health
    )  # fmt: skip
    return replace(made, **changes)


def of(facts: Facts, rule: str, settings: AlertSettings | None = None) -> list[Reading]:
    return [one for one in read_all(facts, settings or AlertSettings()) if one.rule == rule]


def of_job(rule: str, one: JobFacts, settings: AlertSettings | None = None) -> Reading:
    (reading,) = of(Facts(now=NOW, jobs=(one,), nodes=(), verdict=None, cluster="a"), rule, settings)
    return reading


def of_node(rule: str, one: NodeFacts) -> list[Reading]:
    return of(Facts(now=NOW, jobs=(), nodes=(one,), verdict=None, cluster="a"), rule)
