"""What a reader chose on the Nodes page, read from the address: what is shown, how it is grouped, which nodes."""

from collections.abc import Mapping
from dataclasses import dataclass

from flopwatch.answers.nodes import NodeRow, Nodes
from flopwatch_dashboard.view import View

METRICS = (
    "kernel_active_ratio", "tensor_active_ratio", "sm_active_ratio", "mfu_ratio", "memory_used_ratio", "power_watts",
    "temperature_celsius", "sm_clock_hertz", "nic_bytes_per_second",
)  # fmt: skip
"""Values, in the order in which they are offered."""
KINDS = ("state", "health")
"""What a GPU is, rather than a value."""
GROUPINGS = ("rack", "cluster", "model")
SHOWS = ("all", "problems", "silent", "idle")
SHORT: Mapping[str, str] = {
    "state": "state",
    "health": "health",
    **{name: name.rsplit("_", 1)[0] for name in METRICS},
}
"""The word in the address."""
NAMES = {short: name for name, short in SHORT.items()}
KEPT = ("nodes.metric", "nodes.group", "nodes.show", "nodes.find")
IDLE_CLASSES = ("unallocated", "allocated_idle")


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """What is shown, how grouped, of which nodes."""

    metric: str
    grouping: str
    show: str = "all"
    find: str = ""

    @property
    def filters(self) -> bool:
        """Whether some nodes are left out."""
        return self.show != "all" or bool(self.find)


def offered(nodes: Nodes) -> tuple[str, ...]:
    """What this source of data can show: state and health need a ledger, values need someone who gives them."""
    kinds = KINDS if nodes.buckets else ()
    return (
        *kinds,
        *(name for name in METRICS if any(v is not None for v in nodes.gpus.values.get(name, ()))),
    )


def groupings(nodes: Nodes) -> tuple[str, ...]:
    """By what nodes can be grouped; by racks only where the site's pattern finds some."""
    racks = any(row.rack is not None for row in nodes.nodes)
    return GROUPINGS if racks else GROUPINGS[1:]


def chosen(nodes: Nodes, view: View) -> Choice:
    """The choice in the address; what is not allowed there counts as not given."""
    given = dict(view.inputs)
    metrics, by = offered(nodes), groupings(nodes)
    metric = NAMES.get(given.get("nodes.metric", ""), "")
    grouping, show = given.get("nodes.group", ""), given.get("nodes.show", "all")
    if metric not in metrics:
        metric = metrics[0] if metrics else METRICS[0]
    return Choice(
        metric=metric,
        grouping=grouping if grouping in by else by[0],
        show=show if show in SHOWS else "all",
        find=given.get("nodes.find", "").strip(),
    )


def address(view: View, changes: Mapping[str, str | None]) -> str:
    """The address of the page with the choice as it is, and some of it changed; None takes it out."""
    kept: dict[str, str | None] = {name: value for name, value in view.inputs if name in KEPT}
    values = {name: value for name, value in {**kept, **changes}.items() if value}
    return view.link("nodes", **values)


def fitting(nodes: Nodes, choice: Choice) -> tuple[int, ...]:
    """Places of the nodes that are shown."""
    busy = _idle_nodes(nodes) if choice.show == "idle" else frozenset()
    named = _nodes_of_jobs(nodes, choice.find.casefold()) if choice.find else frozenset()
    return tuple(
        at
        for at, row in enumerate(nodes.nodes)
        if _shown(row, choice.show, idle=at in busy)
        and (not choice.find or at in named or _found(row, choice.find))
    )


def _shown(row: NodeRow, show: str, *, idle: bool) -> bool:
    if show == "problems":
        return row.health != "ok" or bool(row.problems)
    if show == "silent":
        return row.gpus_reporting < row.gpus
    return idle if show == "idle" else True


def _found(row: NodeRow, words: str) -> bool:
    told = " ".join((row.node, row.cluster, row.rack or "", row.gpu_model or "", *row.declared)).casefold()
    return all(word in told for word in words.casefold().split())


def _idle_nodes(nodes: Nodes) -> frozenset[int]:
    """Nodes with a GPU that nobody uses now."""
    codes = {at for at, name in enumerate(nodes.classes) if name in IDLE_CLASSES}
    return frozenset(
        node for node, bucket in zip(nodes.gpus.node, nodes.gpus.bucket, strict=True) if bucket in codes
    )


def _nodes_of_jobs(nodes: Nodes, words: str) -> frozenset[int]:
    """Nodes of jobs whose name or id has the words in it."""
    wanted = {at for at, job in enumerate(nodes.jobs) if words in f"{job.name} {job.job_id}".casefold()}
    return frozenset(node for node, job in zip(nodes.gpus.node, nodes.gpus.job, strict=True) if job in wanted)


def group_of(row: NodeRow, grouping: str, view: View) -> str:
    """The name of a node's group."""
    if grouping == "rack":
        return row.rack or view.t("nodes.no_rack")
    if grouping == "model":
        return (row.gpu_model or view.t("nodes.no_model")).removeprefix("NVIDIA ")
    return row.cluster
