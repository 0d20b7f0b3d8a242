"""Nodes, reservations and QOS in Slurm's JSON, of any version from 21.08 on. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from flopwatch_collector.schedulers.reading import GpuLimit, ScheduledNode, Trouble
from flopwatch_collector.schedulers.slurm_jobs import Row, limits_rows, tres_count
from flopwatch_collector.schedulers.slurm_values import gpus_of, moment, node_names, text, words

OUT_OF_ORDER: Final = frozenset({"DOWN", "FAIL", "FAILING", "ERROR"})
DRAINED: Final = frozenset({"DRAIN", "DRAINED", "DRAINING"})
MAINTENANCE: Final = frozenset({"MAINT", "MAINTENANCE"})
ON_PURPOSE: Final = frozenset(
    {"POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_DOWN", "CLOUD", "FUTURE"}
)
"""With these a node that does not answer is not out of order."""


def node_from(row: Row) -> ScheduledNode:
    """A node of ``scontrol show node --json``, ``sinfo --json`` by node, or ``/slurm/…/nodes``.

    Raises:
        ValueError: the row has no name.
    """
    name = text(row.get("name"))
    if name is None:
        raise ValueError("a node has no name")
    states = words(row.get("state")) | words(row.get("state_flags"))
    since = moment(row.get("reason_changed_at"))
    trouble = _trouble(states)
    maintenance = bool(states & MAINTENANCE)
    reason = text(row.get("reason")) or ""
    return ScheduledNode(
        name=name,
        host_name=text(row.get("hostname")) or text(row.get("node_hostname")),
        gpu_count=None if _is_absent(states) else gpus_of(text(row.get("gres"))),
        trouble=trouble,
        trouble_since_seconds=since if trouble is not None else None,
        trouble_text=reason,
        drained=bool(states & DRAINED),
        maintenance=maintenance,
        maintenance_text=reason if maintenance else "",
    )


def _is_absent(states: frozenset[str]) -> bool:
    """Whether the node is only an entry: no machine stands behind it now, so it is no capacity."""
    return "FUTURE" in states or ("CLOUD" in states and "POWERED_DOWN" in states)


def _trouble(states: frozenset[str]) -> Trouble | None:
    if states & OUT_OF_ORDER and not states & ON_PURPOSE:
        return "health"
    return "drain" if states & DRAINED else None


def reserved(rows: Iterable[Row], now: float) -> dict[str, tuple[float, str]]:
    """By node: since when, and the name of, a running reservation for maintenance."""
    result: dict[str, tuple[float, str]] = {}
    for row in rows:
        start, end = moment(row.get("start_time")), moment(row.get("end_time"))
        if not words(row.get("flags")) & MAINTENANCE or start is None or start > now:
            continue
        if end is not None and end <= now:
            continue
        for name in node_names(text(row.get("node_list"))):
            result.setdefault(name, (start, text(row.get("name")) or "reservation"))
    return result


def gpu_limits(document: Row) -> tuple[GpuLimit, ...]:
    """The GPU limits of each QOS: of the group, of a user, of an account."""
    found: list[GpuLimit] = []
    for row in limits_rows(document):
        name = text(row.get("name"))
        most = _within(row, "limits", "max", "tres")
        if name is None or most is None:
            continue
        per = _within(most, "per") or {}
        told = (
            ("qos", most.get("total")),
            ("qos_per_user", per.get("user")),
            ("qos_per_account", per.get("account")),
        )
        found += [
            GpuLimit(kind=kind, name=name, gpus=gpus)  # type: ignore[arg-type]
            for kind, entries in told
            for gpus in tres_count(entries, "gpu")
        ]
    return tuple(found)


def _within(row: Any, *path: str) -> Mapping[str, Any] | None:
    for key in path:
        row = row.get(key) if isinstance(row, Mapping) else None
    return row if isinstance(row, Mapping) else None
