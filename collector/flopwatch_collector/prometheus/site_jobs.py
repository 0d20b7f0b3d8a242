"""Jobs from the labels of their GPUs' series, with the hardware estimate of each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from flopwatch.query import JobRow, MfuFigure, Target
from flopwatch_collector.prometheus.dialect import (
    JOB_LABELS,
    KERNEL,
    NODE_LABELS,
    SM_CLOCK,
    TENSOR,
    Scope,
    Signal,
)
from flopwatch_collector.prometheus.estimate import Activity, estimate
from flopwatch_collector.prometheus.identity import JobName, job_of, model_of, node_of
from flopwatch_collector.prometheus.site import Site
from flopwatch_collector.prometheus.unanswered import no_mfu

Labels = Mapping[str, str]


@dataclass(kw_only=True)
class FoundJob:
    """A job, and what its series say: per series the number of its GPUs and means over them."""

    name: JobName
    labels: list[Labels] = field(default_factory=list)
    gpus: dict[tuple[tuple[str, str], ...], float] = field(default_factory=dict)
    means: dict[str, dict[tuple[tuple[str, str], ...], float]] = field(default_factory=dict)
    nodes: set[str] = field(default_factory=set)
    last_step: float | None = None

    @property
    def count(self) -> int:
        """GPUs that are seen."""
        return round(sum(self.gpus.values()))

    def mean(self, name: str) -> float | None:
        """Mean of a signal over the GPUs it is known for."""
        values = self.means.get(name, {})
        weights = {key: self.gpus[key] for key in values if key in self.gpus}
        total = sum(weights.values())
        return sum(values[key] * weight for key, weight in weights.items()) / total if total else None

    def activities(self) -> list[Activity]:
        """Tensor activity and clock by model; empty unless they are known for every GPU."""
        tensor, clocked = self.means.get("tensor", {}), self.means.get("tensor_clock", {})
        if set(tensor) != set(self.gpus) or set(clocked) != set(self.gpus):
            return []
        return [
            Activity(
                model=model_of(dict(key)),
                gpus=count,
                tensor_active_ratio=tensor[key],
                tensor_clock_hertz=clocked[key],
            )
            for key, count in self.gpus.items()
        ]


def found_jobs(site: Site, cluster: str | None) -> dict[str, FoundJob]:
    """Every job that a series names now, by its id."""
    scope = site.scope(cluster)
    owners = site.owners()
    counted = site.ask(site.dialect.by_job("count", (KERNEL,), scope, JOB_LABELS))
    if not counted:
        counted = site.ask(site.dialect.by_job("count", (TENSOR,), scope, JOB_LABELS))
    jobs: dict[str, FoundJob] = {}
    for row in counted:
        name = job_of(row.labels, owners, row.labels.get(site.cluster_label, ""))
        if name is not None:
            job = jobs.setdefault(name.job_id, FoundJob(name=name))
            job.labels.append(row.labels)
            job.gpus[_key(row.labels)] = row.value
    by_key = {key: job for job in jobs.values() for key in job.gpus}
    for measure, signals in MEASURES.items():
        for row in site.ask(site.dialect.by_job("avg", signals, scope, JOB_LABELS)):
            known = by_key.get(_key(row.labels))
            if known is not None:
                known.means.setdefault(measure, {})[_key(row.labels)] = row.value
    _add_nodes(site, scope, by_key)
    _add_steps(site, jobs.values())
    return jobs


MEASURES: Mapping[str, tuple[Signal, ...]] = {
    "kernel": (KERNEL,),
    "tensor": (TENSOR,),
    "tensor_clock": (TENSOR, SM_CLOCK),
}


def _add_nodes(site: Site, scope: Scope, by_key: Mapping[tuple[tuple[str, str], ...], FoundJob]) -> None:
    labels = (*JOB_LABELS, *NODE_LABELS)
    for row in site.ask(site.dialect.by_job("group", (KERNEL,), scope, labels)):
        node = node_of(row.labels)
        job = by_key.get(_key({k: v for k, v in row.labels.items() if k not in NODE_LABELS}))
        if job is not None and node is not None:
            job.nodes.add(node)


def _add_steps(site: Site, jobs: Iterable[FoundJob]) -> None:
    """The newest step, where agents of ours see steps."""
    if "flopwatch_job_step" not in site.dialect.present:
        return
    rows = site.ask(f"max by ({site.cluster_label}, job_id) (flopwatch_job_step)")
    steps = {(row.labels.get(site.cluster_label, ""), row.labels.get("job_id")): row.value for row in rows}
    for job in jobs:
        if job.name.scheduler_job_id is not None:
            job.last_step = steps.get((job.name.cluster, job.name.scheduler_job_id))


def row_of(site: Site, job: FoundJob) -> JobRow:
    """The job's line: what steps, ledger or prices would be needed for is unknown."""
    labels = job.labels[0]
    models = {model_of(each) for each in job.labels}
    model = next(iter(models)) if len(models) == 1 else None
    return JobRow(
        job_id=job.name.job_id,
        name=job.name.name,
        cluster=site.cluster_of(labels),
        user=labels.get("user") or None,
        account=labels.get("account") or job.name.namespace,
        kind="unknown",
        state="running",
        scheduler=job.name.scheduler,
        scheduler_job_id=job.name.scheduler_job_id,
        waiting_for=None,
        gpus=job.count,
        gpus_basis="observed",
        gpus_observed=job.count,
        nodes=len(job.nodes),
        gpu_model=model,
        mfu=_figure(job, model),
        wall_mfu_ratio=None,
        target=Target(ratio=None, source="none"),
        kernel_active_ratio=job.mean("kernel"),
        tensor_active_ratio=job.mean("tensor"),
        trend=(),
        start_seconds=None,
        end_seconds=None,
        last_step=None if job.last_step is None else int(job.last_step),
        last_step_seconds=None,
        waste_gpu_milliseconds=0,
        waste_money=None,
        waste_by_class={},
        cause=None,
        findings=0,
        trainer=None,
    )


def _figure(job: FoundJob, model: str | None) -> MfuFigure:
    figure = no_mfu(job.count, model)
    activities = job.activities()
    value = estimate(activities) if activities else None
    tensor, clocked = job.mean("tensor"), job.mean("tensor_clock")
    if value is None or not tensor or clocked is None:
        return figure
    return replace(
        figure,
        value_ratio=value,
        basis="hardware",
        convention="hardware",
        clock_basis="peak_clock",
        tensor_active_ratio=tensor,
        sm_clock_hertz=clocked / tensor,
        clock_hertz=clocked / value,
    )


def _key(labels: Labels) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, value) for name, value in labels.items() if value))
