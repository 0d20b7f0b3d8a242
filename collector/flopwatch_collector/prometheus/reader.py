"""``PrometheusQuery``: the pages' questions to a site whose telemetry is in Prometheus or what speaks like it."""

import importlib.metadata
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from flopwatch.answers.economy import no_economy
from flopwatch.answers.nodes import GpuPage, NodePage, Nodes
from flopwatch.query import Alerts, ClusterInfo, Economy, Fleet, Job, JobRow, Jobs, Range, Series, Status
from flopwatch_collector.compute.figure import arithmetic
from flopwatch_collector.prometheus.dialect import TENSOR
from flopwatch_collector.prometheus.identity import scope_of
from flopwatch_collector.prometheus.promql import PromClient
from flopwatch_collector.prometheus.site import MOMENT_SECONDS, Site
from flopwatch_collector.prometheus.site_alerts import ORDER, active_alerts
from flopwatch_collector.prometheus.site_jobs import FoundJob, found_jobs, row_of
from flopwatch_collector.prometheus.site_nodes import gpu_of_site, node_of_site, nodes_of_site, seen_gpus
from flopwatch_collector.prometheus.site_series import fleet_series, job_series, nodes_of
from flopwatch_collector.prometheus.unanswered import (
    NO_GPUS,
    NO_TENSOR,
    NOTHING,
    UNAVAILABLE,
    no_ledger,
    no_verdict,
)

DEFAULT_LINE_RATIO = 0.70
NO_STEPS: dict[str, tuple[float | None, ...]] = {
    "step_seconds": (), "tokens_per_second": (), "loss": (), "step": (),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class ReaderTerms:
    """How a site's series are read."""

    cluster_label: str = "cluster"
    time_zone: str = "UTC"
    line_ratio: float = DEFAULT_LINE_RATIO


class PrometheusQuery:
    """Implements ``flopwatch.query.Query``; safe from any thread; raises ``PrometheusUnavailable``.

    It answers what samples of hardware can say. ``Status.unavailable`` names what they cannot; none of that is
    guessed: it is None, empty, or of no capacity.
    """

    def __init__(
        self, client: PromClient, terms: ReaderTerms | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._client = client
        self._terms = terms or ReaderTerms()
        self._clock = clock

    def status(self) -> Status:
        """The frame of every page."""
        return self._status(self._site())

    def fleet(self, asked: Range) -> Fleet:
        """The Fleet page: size, activity, the hardware estimate, alerts."""
        site = self._site()
        alerts = active_alerts(site, asked.cluster)
        return Fleet(
            status=self._status(site),
            range_seconds=asked.seconds,
            verdict=no_verdict(self._terms.line_ratio),
            utilisation=NOTHING,
            mfu=NOTHING,
            mfu_coverage_ratio=None,
            waste=NOTHING,
            waste_money=NOTHING,
            waste_money_per_day=None,
            alerts_by_severity={
                level: sum(1 for row in alerts if row.severity == level and row.state == "firing")
                for level in ORDER
            },
            ledger_today=no_ledger(site.at - asked.seconds, site.at),
            days=(),
            series=fleet_series(site, site.span(asked), site.scope(asked.cluster)),
            mfu_target_ratio=None,
            top_jobs=(),
            alerts=alerts,
        )

    def jobs(self, asked: Range) -> Jobs:
        """Jobs that series name now, the largest first."""
        site = self._site()
        rows = [row_of(site, job) for job in found_jobs(site, asked.cluster).values()]
        ordered = sorted(rows, key=lambda row: (-row.gpus_observed, row.job_id))
        return Jobs(status=self._status(site), range_seconds=asked.seconds, rows=tuple(ordered))

    def job(self, job_id: str, asked: Range) -> Job | None:
        """One job that series name now, or None."""
        site = self._site()
        found = found_jobs(site, asked.cluster).get(job_id)
        return None if found is None else self._job(site, found, asked)

    def nodes(self, asked: Range) -> Nodes:
        """Every GPU that reported within the last hour, with what its series say now."""
        site = self._site()
        return nodes_of_site(site, self._status(site), asked.cluster)

    def node(self, name: str, asked: Range) -> NodePage | None:
        """One node, or None when no GPU of it reported within the last hour."""
        site = self._site()
        gpus = [gpu for gpu in seen_gpus(site, asked.cluster) if gpu.node == name]
        gpus = [gpu for gpu in gpus if gpu.cluster == gpus[0].cluster]
        if not gpus:
            return None
        question = (name, asked.seconds, site.span(asked))
        return node_of_site(site, self._status(site), question, gpus, active_alerts(site, None))

    def gpu(self, uuid: str, asked: Range) -> GpuPage | None:
        """One GPU by its UUID, or None when it did not report within the last hour."""
        site = self._site()
        found = next((gpu for gpu in seen_gpus(site, None) if gpu.uuid == uuid), None)
        if found is None:
            return None
        question = (asked.seconds, site.span(asked))
        return gpu_of_site(site, self._status(site), question, found, active_alerts(site, None))

    def economy(self, asked: Range, overrides: Mapping[str, float]) -> Economy:  # noqa: ARG002 - the port's
        """Nothing: no costs are read here, and samples of hardware give no utilisation to hold against them."""
        return no_economy(self.status())

    def alerts(self, asked: Range) -> Alerts:
        """What the site's own rules say now."""
        site = self._site()
        return Alerts(status=self._status(site), active=active_alerts(site, asked.cluster), history=())

    def _site(self) -> Site:
        return Site(self._client, self._clock(), self._terms.cluster_label)

    def _status(self, site: Site) -> Status:
        clusters = tuple(
            ClusterInfo(name=name, nodes=size.nodes, gpus=size.gpus, gpus_reporting=size.reporting)
            for name, size in site.clusters().items()
        )
        return Status(
            version=importlib.metadata.version("flopwatch"),
            now_seconds=self._clock(),
            data_time_seconds=site.newest(),
            generation=int(site.at // MOMENT_SECONDS),
            simulated=False,
            time_zone=self._terms.time_zone,
            currency="USD",
            price_per_gpu_hour=None,
            price_is_example=False,
            clusters=clusters,
            unavailable=_unavailable(site, clusters),
        )

    def _job(self, site: Site, found: FoundJob, asked: Range) -> Job:
        row = row_of(site, found)
        scope = scope_of(found.labels, found.name.cluster or None)
        span = site.span(asked)
        return Job(
            status=self._status(site),
            range_seconds=asked.seconds,
            row=row,
            series=job_series(site, span, scope, sorted(found.nodes)),
            steps=Series(level="prometheus", step_seconds=0.0, time_seconds=(), columns=NO_STEPS),
            step_percentiles={"p50": None, "p90": None, "p99": None},
            ledger=no_ledger(site.at - asked.seconds, site.at),
            sessions=(),
            nodes=nodes_of(site, scope),
            marks=(),
            strip=(),
            shape={},
            shape_origin=None,
            arithmetic=arithmetic(row.mfu),
            findings=(),
            alerts=tuple(alert for alert in active_alerts(site, None) if _about(alert.labels, row)),
        )


def _about(labels: dict[str, str], row: JobRow) -> bool:
    return labels.get("job_id") in (row.job_id, row.scheduler_job_id) and labels.get("job_id") is not None


def _unavailable(site: Site, clusters: tuple[ClusterInfo, ...]) -> tuple[str, ...]:
    more = []
    if not clusters:
        more.append(NO_GPUS)
    elif site.dialect.gpus(TENSOR, site.scope(None)) is None:
        more.append(NO_TENSOR)
    return (*UNAVAILABLE, *more)
