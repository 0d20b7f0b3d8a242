"""A Prometheus at one moment: what it has, which clusters, and how jobs are named there."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from flopwatch.query import Range
from flopwatch_collector.prometheus.dialect import GPU_LABELS, NAMES, NODE_LABELS, POD_LABELS, Dialect, Scope
from flopwatch_collector.prometheus.identity import (
    JOB_NAME_LABELS,
    OWNER_KINDS,
    PodName,
    node_of,
    owner_names,
)
from flopwatch_collector.prometheus.promql import Course, PromClient, Row, Span

MOMENT_SECONDS = 30.0
"""All questions of so long are of the same time, so that pages agree and equal questions are asked once."""
KNOWN_FOR = "1h"
"""A GPU is known while it has reported within this time."""
MOST_POINTS = 120
LEAST_STEP_SECONDS = 30.0
UNNAMED_CLUSTER = "default"
"""The cluster of series without a cluster's label."""
OWNED_PODS = ", ".join(label for pair in POD_LABELS for label in pair)


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterSize:
    """GPUs of a cluster."""

    nodes: int
    gpus: int
    reporting: int


class Site:
    """Questions to a server at one moment; every method raises ``PrometheusUnavailable``."""

    def __init__(self, client: PromClient, now: float, cluster_label: str) -> None:
        self.client = client
        self.at = now // MOMENT_SECONDS * MOMENT_SECONDS
        self.cluster_label = cluster_label
        listed = "|".join(NAMES)
        found = self.ask(f'count by (__name__) ({{__name__=~"{listed}"}})')
        self.dialect = Dialect(
            present=frozenset(row.labels.get("__name__", "") for row in found), cluster_label=cluster_label
        )

    def ask(self, expression: str | None) -> list[Row]:
        """Series now; none where there is no expression for it."""
        return [] if expression is None else self.client.instant(expression, self.at)

    def course(self, expression: str | None, span: Span) -> list[Course]:
        """Series over time; none where there is no expression for it."""
        return [] if expression is None else self.client.range(expression, span)

    def span(self, asked: Range) -> Span:
        """The range of a graph, on the borders of its steps so that a refresh asks for the same points."""
        step = max(LEAST_STEP_SECONDS, asked.seconds / max(2, min(asked.points, MOST_POINTS)))
        step = -(-step // LEAST_STEP_SECONDS) * LEAST_STEP_SECONDS
        at = self.at if asked.end_seconds is None else min(self.at, asked.end_seconds)
        return Span(start=(at - asked.seconds) // step * step + step, end=at // step * step, step=step)

    def cluster_of(self, labels: Mapping[str, str]) -> str:
        """The name of the cluster that a series is of."""
        return labels.get(self.cluster_label) or UNNAMED_CLUSTER

    def scope(self, cluster: str | None) -> Scope:
        """The GPUs of a cluster by its name, or all."""
        return Scope(cluster="" if cluster == UNNAMED_CLUSTER else cluster)

    def newest(self) -> float | None:
        """When the newest sample was."""
        rows = self.ask(self.dialect.newest(Scope()))
        return rows[0].value if rows else None

    def clusters(self) -> dict[str, ClusterSize]:
        """Every cluster: what was there within the last hour, and what reports."""
        known, now = self.dialect.present_gpus(Scope(), KNOWN_FOR), self.dialect.present_gpus(Scope())
        gpus, reporting = self._distinct(known, GPU_LABELS), self._distinct(now, GPU_LABELS)
        nodes = self._nodes(known)
        return {
            name: ClusterSize(nodes=nodes.get(name, 0), gpus=count, reporting=reporting.get(name, 0))
            for name, count in sorted(gpus.items())
        }

    def owners(self) -> dict[PodName, str]:
        """Names of jobs by pod, where kube-state-metrics is scraped."""
        rows: list[Row] = []
        if "kube_pod_owner" in self.dialect.present:
            owner = f'kube_pod_owner{{owner_is_controller="true",owner_kind=~"{OWNER_KINDS}"}}'
            rows += self.ask(f"max by ({OWNED_PODS}, owner_kind, owner_name) ({owner})")
        if "kube_pod_labels" in self.dialect.present:
            told = " or ".join(f'kube_pod_labels{{{label}!=""}}' for label in JOB_NAME_LABELS)
            rows += self.ask(f"max by ({OWNED_PODS}, {', '.join(JOB_NAME_LABELS)}) ({told})")
        return owner_names(row.labels for row in rows)

    def _distinct(self, gpus: str | None, labels: Iterable[str]) -> dict[str, int]:
        if gpus is None:
            return {}
        each = f"group by ({self.cluster_label}, {', '.join(labels)}) ({gpus})"
        rows = self.ask(f"count by ({self.cluster_label}) ({each})")
        return {self.cluster_of(row.labels): round(row.value) for row in rows}

    def _nodes(self, gpus: str | None) -> dict[str, int]:
        if gpus is None:
            return {}
        rows = self.ask(f"group by ({self.cluster_label}, {', '.join(NODE_LABELS)}) ({gpus})")
        names: dict[str, set[str]] = {}
        for row in rows:
            names.setdefault(self.cluster_of(row.labels), set()).add(node_of(row.labels) or "")
        return {cluster: len(found) for cluster, found in names.items()}
