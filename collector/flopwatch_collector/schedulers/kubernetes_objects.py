"""Pods, nodes and quotas of the Kubernetes API in words that are no scheduler's own. Pure."""

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from flopwatch_collector.schedulers.reading import Allocation, GpuLimit, JobState, ScheduledJob, ScheduledNode

Row = Mapping[str, Any]
GANGS: Final = frozenset({
    "MPIJob", "PyTorchJob", "TrainJob", "JobSet", "TFJob", "PaddleJob", "XGBoostJob", "JAXJob", "RayCluster", "RayJob",
    "LeaderWorkerSet", "PodGroup",
})  # fmt: skip
"""Controllers whose pods work together or not at all."""
QUEUE_GATE: Final = "kueue.x-k8s.io/"
"""A gate of this prefix is a place in a queue; other gates mean that the pod does not want to start yet."""
COUNT_LABEL: Final = "nvidia.com/gpu.count"
WHOLE_GPU: Final = "nvidia.com/gpu"


@dataclass(frozen=True, kw_only=True, slots=True)
class Labels:
    """Where a site writes what it wants to know, and which resources are GPUs."""

    user: str | None = None
    account: str | None = None
    """None: the namespace."""
    resources: tuple[str, ...] = ("nvidia.com/gpu", "nvidia.com/mig-*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Owner:
    """The topmost controller of a pod."""

    uid: str
    kind: str
    name: str


def instant(text: Any) -> float | None:
    """Seconds of ``2026-11-30T08:00:00Z``; None for anything else."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return found.timestamp() if found.tzinfo is not None else None


def within(row: Any, *path: str) -> Any:
    """What is at a path of keys; None where it ends."""
    for key in path:
        row = row.get(key) if isinstance(row, Mapping) else None
    return row


def rows_at(row: Any, *path: str) -> list[Row]:
    """The objects of the list at a path."""
    found = within(row, *path)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def controller(row: Row) -> Row | None:
    """The reference to the object's controlling owner."""
    return next((ref for ref in rows_at(row, "metadata", "ownerReferences") if ref.get("controller")), None)


def _named(row: Row, key: str) -> str:
    found = within(row, "metadata", key)
    if not found or not isinstance(found, str):
        raise ValueError(f"it has no metadata.{key}")
    return found


def gpus_of_pod(pod: Row, resources: tuple[str, ...]) -> int:
    """GPUs that a pod holds: its containers together, or the largest init container."""
    working = sum(_gpus(each, resources) for each in rows_at(pod, "spec", "containers"))
    before = [(_gpus(each, resources), each) for each in rows_at(pod, "spec", "initContainers")]
    aside = sum(count for count, each in before if each.get("restartPolicy") == "Always")
    first = max((count for count, each in before if each.get("restartPolicy") != "Always"), default=0)
    return max(working + aside, first)


def _gpus(container: Row, resources: tuple[str, ...]) -> int:
    told = within(container, "resources", "limits") or within(container, "resources", "requests") or {}
    return _counted(told, resources)


def _counted(amounts: Any, resources: tuple[str, ...]) -> int:
    if not isinstance(amounts, Mapping):
        return 0
    names = [name for name in amounts if any(fnmatchcase(name, pattern) for pattern in resources)]
    return sum(int(str(amounts[name])) for name in names if str(amounts[name]).isdigit())


def job_from_pod(
    pod: Row, owner: Owner | None, labels: Labels, deleted_seconds: float | None = None
) -> ScheduledJob | None:
    """The pod as a part of its owner's job; None for one without GPUs.

    ``deleted_seconds`` is when it disappeared, for one that has.

    Raises:
        ValueError: it has no UID.
    """
    gpus = gpus_of_pod(pod, labels.resources)
    uid = _named(pod, "uid")
    if not gpus:
        return None
    node = within(pod, "spec", "nodeName")
    state, end = _state(pod, deleted_seconds)
    known = owner or Owner(uid=uid, kind="Pod", name=str(within(pod, "metadata", "name") or uid))
    told = {**(within(pod, "metadata", "annotations") or {}), **(within(pod, "metadata", "labels") or {})}
    namespace = within(pod, "metadata", "namespace")
    return ScheduledJob(
        scheduler="kubernetes",
        scheduler_job_id=uid,
        ref=f"kubernetes:{uid}",
        owner_uid=known.uid,
        state=state,
        name=known.name,
        user=told.get(labels.user) if labels.user else None,
        account=told.get(labels.account, namespace) if labels.account else namespace,
        qos=within(pod, "spec", "priorityClassName"),
        partition=str(within(pod, "spec", "schedulerName") or "default-scheduler"),
        submit_seconds=instant(within(pod, "metadata", "creationTimestamp")),
        start_seconds=_scheduled(pod) if node else None,
        end_seconds=end,
        exit_reason=_ending(pod) if end is not None else None,
        together_id=known.uid if known.kind in GANGS else None,
        requested_gpus=gpus if state == "pending" else 0,
        reason=_waiting_for(pod) if state == "pending" else None,
        allocations=(Allocation(node=node, gpu_count=gpus),) if isinstance(node, str) and node else (),
        lease_source="kubernetes",
    )


def _state(pod: Row, deleted_seconds: float | None) -> tuple[JobState, float | None]:
    over = within(pod, "status", "phase") in ("Succeeded", "Failed")
    if over or deleted_seconds is not None:
        ends = [
            at
            for status in rows_at(pod, "status", "containerStatuses")
            if (at := instant(within(status, "state", "terminated", "finishedAt"))) is not None
        ]
        return "ended", max(ends) if over and ends else deleted_seconds or _changed(pod)
    return ("running" if within(pod, "spec", "nodeName") else "pending"), None


def _changed(pod: Row) -> float | None:
    """The newest change of a condition: of a pod that failed without a container's end."""
    times = [instant(each.get("lastTransitionTime")) for each in rows_at(pod, "status", "conditions")]
    return max((at for at in times if at is not None), default=None)


def _ending(pod: Row) -> str:
    reason = within(pod, "status", "reason")
    if isinstance(reason, str) and reason:
        return reason.lower()
    phase = within(pod, "status", "phase")
    return {"Succeeded": "completed", "Failed": "failed"}.get(str(phase), "cancelled")


def _condition(row: Row, kind: str) -> Row:
    return next((each for each in rows_at(row, "status", "conditions") if each.get("type") == kind), {})


def _scheduled(pod: Row) -> float | None:
    bound = _condition(pod, "PodScheduled")
    at = instant(bound.get("lastTransitionTime")) if bound.get("status") == "True" else None
    return at if at is not None else instant(within(pod, "status", "startTime"))


def _waiting_for(pod: Row) -> str:
    """Why the pod waits; a gate that is no queue's is ``SchedulingGated``."""
    gates = [str(gate.get("name")) for gate in rows_at(pod, "spec", "schedulingGates")]
    if gates:
        queued = all(gate.startswith(QUEUE_GATE) for gate in gates)
        return "Queued" if queued else "SchedulingGated"
    return str(_condition(pod, "PodScheduled").get("reason") or "Unscheduled")


def node_from(node: Row, labels: Labels) -> ScheduledNode | None:
    """The node; None for one that has no GPUs.

    Raises:
        ValueError: it has no name.
    """
    name = _named(node, "name")
    gpus = _node_gpus(node, labels)
    if not gpus:
        return None
    cordoned = bool(within(node, "spec", "unschedulable"))
    ready = _condition(node, "Ready")
    if ready and ready.get("status") != "True":
        return ScheduledNode(
            name=name,
            gpu_count=gpus,
            trouble="health",
            trouble_since_seconds=instant(ready.get("lastTransitionTime")),
            trouble_text=str(ready.get("reason") or "the node is not ready"),
            drained=cordoned,
        )
    return ScheduledNode(
        name=name,
        gpu_count=gpus,
        trouble="drain" if cordoned else None,
        trouble_since_seconds=_cordoned_since(node) if cordoned else None,
        trouble_text="cordoned" if cordoned else "",
        drained=cordoned,
    )


def _node_gpus(node: Row, labels: Labels) -> int:
    """Physical GPUs: the label of GPU feature discovery, else the capacity, which counts shares of GPUs as GPUs."""
    told = str(within(node, "metadata", "labels", COUNT_LABEL) or "")
    if told.isdigit():
        return int(told)
    whole = _counted(within(node, "status", "capacity"), (WHOLE_GPU,))
    return whole or min(1, _counted(within(node, "status", "capacity"), labels.resources))


def _cordoned_since(node: Row) -> float | None:
    taints = rows_at(node, "spec", "taints")
    times = [
        instant(each.get("timeAdded"))
        for each in taints
        if each.get("key") == "node.kubernetes.io/unschedulable"
    ]
    return max((at for at in times if at is not None), default=None)


def limits_of(quotas: Iterable[Row], labels: Labels) -> tuple[GpuLimit, ...]:
    """The GPU quota of each namespace; of several the smallest."""
    found: dict[str, GpuLimit] = {}
    patterns = tuple(f"{before}.{name}" for name in labels.resources for before in ("requests", "limits"))
    for quota in quotas:
        namespace = within(quota, "metadata", "namespace")
        hard = within(quota, "status", "hard") or within(quota, "spec", "hard") or {}
        if not isinstance(namespace, str) or not any(
            fnmatchcase(name, each) for name in hard for each in patterns
        ):
            continue
        gpus = _counted(hard, patterns)
        used = within(quota, "status", "used")
        limit = GpuLimit(
            kind="namespace",
            name=namespace,
            gpus=gpus,
            used_gpus=_counted(used, patterns) if isinstance(used, Mapping) else None,
        )
        if namespace not in found or gpus < found[namespace].gpus:
            found[namespace] = limit
    return tuple(found[name] for name in sorted(found))
