"""Which job and node the labels of a series name."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from flopwatch_collector.prometheus.dialect import MODEL_LABELS, NODE_LABELS, POD_LABELS, Scope, quoted

EXPORTER = re.compile(r"(?:^|-)(?:dcgm-exporter|nvidia-dcgm|flopwatch-agent|gpu-exporter)(?:-|$)")
"""A pod of this kind reports GPUs, and does not use them."""
JOB_NAME_LABELS = (
    "label_jobset_sigs_k8s_io_jobset_name", "label_training_kubeflow_org_job_name", "label_ray_io_cluster",
    "label_volcano_sh_job_name", "label_batch_kubernetes_io_job_name", "label_job_name",
)  # fmt: skip
"""Pods of one job carry one of these with the job's name."""
OWNER_KINDS = "(.*Job|JobSet|RayCluster|StatefulSet|LeaderWorkerSet|Workflow|ReplicaSet)"


@dataclass(frozen=True, kw_only=True, slots=True)
class PodName:
    """A pod."""

    namespace: str
    pod: str


@dataclass(frozen=True, kw_only=True, slots=True)
class JobName:
    """What stands for a job."""

    job_id: str
    name: str
    cluster: str
    scheduler: str
    scheduler_job_id: str | None
    namespace: str | None = None


def node_of(labels: Mapping[str, str]) -> str | None:
    """The node that a series is of; an exporter's own pod is none, unless nothing else is said."""
    told = [labels[label] for label in NODE_LABELS[:-1] if labels.get(label)]
    named = [value for value in told if not EXPORTER.search(value)] or told
    if named:
        return named[0]
    address = labels.get("instance")
    return re.sub(r":\d+$", "", address) if address else None


def model_of(labels: Mapping[str, str]) -> str | None:
    """The GPU's model."""
    return next((labels[label] for label in MODEL_LABELS if labels.get(label)), None)


def pod_of(labels: Mapping[str, str]) -> PodName | None:
    """The pod that uses the GPU, where one is named."""
    for pod, namespace in POD_LABELS:
        if labels.get(pod) and not EXPORTER.search(labels[pod]):
            return PodName(namespace=labels.get(namespace, ""), pod=labels[pod])
    return None


def job_of(labels: Mapping[str, str], owners: Mapping[PodName, str], cluster: str) -> JobName | None:
    """The job that the labels name: an agent's, Slurm's, the pod's owner, else the pod itself; None for no job."""
    prefix = f"{cluster}:" if cluster else ""
    if labels.get("job_id"):
        scheduler, own = labels.get("scheduler") or "none", labels["job_id"]
        return JobName(
            job_id=f"{prefix}{own}", name=own, cluster=cluster, scheduler=scheduler, scheduler_job_id=own
        )
    slurm = labels.get("hpc_job", "")
    if slurm not in ("", "0"):
        return JobName(
            job_id=f"{prefix}slurm-{slurm}",
            name=slurm,
            cluster=cluster,
            scheduler="slurm",
            scheduler_job_id=slurm,
        )
    pod = pod_of(labels)
    if pod is None:
        return None
    name = owners.get(pod, pod.pod)
    return JobName(
        job_id=f"{prefix}{pod.namespace}.{name}",
        name=name,
        cluster=cluster,
        scheduler="kubernetes",
        scheduler_job_id=None,
        namespace=pod.namespace or None,
    )


def scope_of(rows: Iterable[Mapping[str, str]], cluster: str | None) -> Scope:
    """The GPUs of a job, from the labels of its series."""
    matchers: dict[tuple[str, ...], set[str]] = {}
    for labels in rows:
        if labels.get("job_id"):
            return Scope(cluster=cluster, own_job=labels["job_id"])
        if labels.get("hpc_job", "") not in ("", "0"):
            return Scope(cluster=cluster, dcgm=(f"hpc_job={quoted(labels['hpc_job'])}",))
        for pod, namespace in POD_LABELS:
            if labels.get(pod) and not EXPORTER.search(labels[pod]):
                matchers.setdefault((pod, namespace, labels.get(namespace, "")), set()).add(labels[pod])
                break
    return Scope(
        cluster=cluster,
        dcgm=tuple(
            f"{pod}=~{quoted('|'.join(sorted(map(re.escape, names))))},{label}={quoted(value)}"
            for (pod, label, value), names in sorted(matchers.items())
        ),
    )


def owner_names(rows: Iterable[Mapping[str, str]]) -> dict[PodName, str]:
    """Names of jobs by pod, from kube-state-metrics; a job's own label beats the pod's controller."""
    names: dict[PodName, str] = {}
    for labels in rows:
        pod = pod_of(labels)
        told = next((labels[label] for label in JOB_NAME_LABELS if labels.get(label)), None)
        if pod is not None and told is not None:
            names[pod] = told
        elif pod is not None and labels.get("owner_name"):
            names.setdefault(pod, labels["owner_name"])
    return names
