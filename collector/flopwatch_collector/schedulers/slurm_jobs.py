"""Jobs in the JSON of ``squeue``, ``sacct`` and slurmrestd, of any version from 21.08 on. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from flopwatch_collector.schedulers.reading import Allocation, JobState, ScheduledJob
from flopwatch_collector.schedulers.slurm_values import (
    gpus_of,
    indices_of,
    moment,
    node_names,
    text,
    whole,
    words,
)

HOLDING: Final = frozenset(
    {"RUNNING", "SUSPENDED", "STOPPED", "CONFIGURING", "SIGNALING", "STAGE_OUT", "RESIZING"}
)
WAITING: Final = frozenset(
    {"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
)
ENDINGS: Final = (
    "OUT_OF_MEMORY", "NODE_FAIL", "PREEMPTED", "TIMEOUT", "DEADLINE", "BOOT_FAIL", "CANCELLED", "FAILED",
    "REVOKED", "COMPLETED",
)  # fmt: skip
Row = Mapping[str, Any]


def job_from_queue(row: Row) -> ScheduledJob:
    """A job of ``squeue --json`` or ``/slurm/…/jobs``; of an array the tasks that wait together are one.

    Raises:
        ValueError: the row is none of these programs'.
    """
    number = whole(row.get("job_id"))
    if number is None:
        raise ValueError("a job has no job_id")
    states = words(row.get("job_state", row.get("state")))
    state = _state(states)
    restarts = whole(row.get("restart_cnt")) or 0
    return ScheduledJob(
        scheduler="slurm",
        scheduler_job_id=str(number),
        ref=f"slurm:{number}",
        state=state,
        name=text(row.get("name")),
        user=text(row.get("user_name", row.get("user"))),
        account=text(row.get("account")),
        qos=text(row.get("qos")),
        partition=text(row.get("partition")) or "",
        # A requeued job is submitted anew, and remains the same job.
        submit_seconds=moment(row.get("submit_time")) if restarts == 0 else None,
        start_seconds=moment(row.get("start_time")) if state != "pending" else None,
        end_seconds=moment(row.get("end_time")) if state == "ended" else None,
        exit_reason=_ending(states) if state == "ended" else None,
        array_parent_id=_parent(row, "array_job_id"),
        together_id=_parent(row, "het_job_id"),
        restart_count=restarts,
        requested_gpus=_requested(row) if state == "pending" else 0,
        waiting_jobs=_tasks(row),
        reason=text(row.get("state_reason")),
        allocations=() if state == "pending" else _allocations(row),
        lease_source="slurm",
    )


def _state(states: frozenset[str]) -> JobState:
    if states & WAITING:
        return "pending"
    if states & frozenset(ENDINGS) or "COMPLETING" in states:
        return "ended"
    return "running" if states & HOLDING else "ended"


def _ending(states: frozenset[str]) -> str | None:
    return next((word.lower() for word in ENDINGS if word in states), None)


def _parent(row: Row, name: str) -> str | None:
    parent = whole(row.get(name))
    return str(parent) if parent else None


def _tasks(row: Row) -> int:
    """How many tasks a waiting row stands for: ``array_task_string`` is ``5-12%4`` or ``1,3,7``, perhaps cut short."""
    tasks = text(row.get("array_task_string"))
    if tasks is None:
        return 1
    count = 0
    for part in tasks.partition("%")[0].strip("[]").split(","):
        bounds, _, stride = part.partition(":")
        first, dash, last = bounds.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            continue
        step = int(stride) if stride.isdigit() and int(stride) else 1
        count += len(range(int(first), int(last if dash else first) + 1, step))
    return max(1, count)


def _requested(row: Row) -> int:
    """GPUs that one waiting job asks for."""
    for name in ("tres_req_str", "tres_alloc_str"):
        found = gpus_of(text(row.get(name)))
        if found is not None:
            return found
    nodes = whole(row.get("node_count")) or 1
    tasks = whole(row.get("tasks")) or nodes
    for name, factor in (("tres_per_job", 1), ("tres_per_node", nodes), ("tres_per_task", tasks)):
        found = gpus_of(text(row.get(name)))
        if found is not None:
            return found * factor
    return 0


def _allocations(row: Row) -> tuple[Allocation, ...]:
    """The job's GPUs, node by node; a job without GPUs has none."""
    total = gpus_of(text(row.get("tres_alloc_str")))
    if total == 0:
        return ()
    names = _nodes(row)
    details = row.get("gres_detail") or []
    if isinstance(details, list) and details and len(details) == len(names):
        shares = [
            Allocation(node=name, gpu_count=gpus_of(str(detail)) or 0, indices=_indices(detail))
            for name, detail in zip(names, details, strict=True)
        ]
        return tuple(share for share in shares if share.gpu_count)
    if total is None or not names or total % len(names):
        return ()
    return tuple(Allocation(node=name, gpu_count=total // len(names)) for name in names)


def _indices(detail: Any) -> tuple[int, ...] | None:
    return indices_of(str(detail))


def _nodes(row: Row) -> tuple[str, ...]:
    """The nodes of a job, in the order of ``gres_detail``."""
    resources = row.get("job_resources")
    listed = resources.get("nodes") if isinstance(resources, Mapping) else None
    if isinstance(listed, Mapping):
        listed = listed.get("list")
    return node_names(text(row.get("nodes")) or text(listed))


def ended_from_accounting(row: Row) -> ScheduledJob | None:
    """A job of ``sacct --json`` or ``/slurmdb/…/jobs`` that has ended; None for one that has not.

    Raises:
        ValueError: the row is none of these programs'.
    """
    number = whole(row.get("job_id"))
    if number is None:
        raise ValueError("a job has no job_id")
    times = _table(row, "time")
    states = words(row.get("state"))
    end = moment(times.get("end"))
    if end is None or _state(states) != "ended":
        return None
    parent = whole(_table(row, "array").get("job_id"))
    return ScheduledJob(
        scheduler="slurm",
        scheduler_job_id=str(number),
        ref=f"slurm:{number}",
        state="ended",
        name=text(row.get("name")),
        user=text(row.get("user")),
        account=text(row.get("account")),
        qos=text(row.get("qos")),
        partition=text(row.get("partition")) or "",
        submit_seconds=moment(times.get("submission")) if not whole(row.get("restart_cnt")) else None,
        start_seconds=moment(times.get("start")),
        end_seconds=end,
        exit_reason=_ending(states),
        array_parent_id=str(parent) if parent else None,
        allocations=_accounted(row),
        lease_source="slurm",
    )


def _table(row: Row, name: str) -> Row:
    found = row.get(name)
    return found if isinstance(found, Mapping) else {}


def _accounted(row: Row) -> tuple[Allocation, ...]:
    """Accounting knows how many GPUs, and no more."""
    total = sum(tres_count(_table(row, "tres").get("allocated"), "gpu"))
    try:
        names = node_names(text(row.get("nodes")))
    except ValueError:
        names = ()
    if not total or not names or total % len(names):
        return ()
    return tuple(Allocation(node=name, gpu_count=total // len(names)) for name in names)


def tres_count(entries: Any, name: str) -> list[int]:
    """Counts of a GRES in ``[{"type": "gres", "name": "gpu", "count": 8}]``; typed ones only where no other is."""
    rows = [row for row in entries or () if isinstance(row, Mapping) and row.get("type") == "gres"]
    plain = [row for row in rows if row.get("name") == name]
    chosen = plain or [row for row in rows if str(row.get("name", "")).startswith(f"{name}:")]
    return [count for row in chosen if (count := whole(row.get("count"))) is not None]


def limits_rows(document: Row) -> list[Row]:
    """Rows of QOS in ``/slurmdb/…/qos``: the list has had two names."""
    found = document.get("qos", document.get("QOS"))
    return [row for row in found if isinstance(row, Mapping)] if isinstance(found, list) else []
