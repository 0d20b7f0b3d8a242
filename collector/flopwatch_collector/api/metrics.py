"""``/metrics``: the collector's own health, in a registry of its own."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated

from fastapi import APIRouter, Depends, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from flopwatch_collector.api.access import Caller
from flopwatch_collector.api.errors import documented
from flopwatch_collector.api.query import CallerNeed
from flopwatch_collector.ingest.accept import IngestStats
from flopwatch_collector.model import FleetState
from flopwatch_collector.store.port import StoreStats

COMMIT_BUCKETS = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.5, 5.0, 10.0)
Readings = Callable[[], Mapping[str, float | None]]


class Metrics:
    """Counts of this process, and what it reads when it is scraped."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        self._refused = Counter(
            "flopwatch_collector_batches_refused",
            "Pushes that were answered with an error, by reason",
            ["reason"],
            registry=self.registry,
        )
        self._durable = Histogram(
            "flopwatch_collector_ingest_seconds",
            "Time from the arrival of a batch until it was durable",
            buckets=COMMIT_BUCKETS,
            registry=self.registry,
        )

    def refused(self, reason: str) -> None:
        """Count a push that was answered with an error."""
        self._refused.labels(reason).inc()

    def durable_after(self, seconds: float) -> None:
        """Note how long a batch took to become durable."""
        self._durable.observe(seconds)

    def read(self, readout: "Readout") -> None:
        """Read these too at each scrape."""
        self.registry.register(readout)

    def text(self) -> bytes:
        """The exposition."""
        return generate_latest(self.registry)


class Readout:
    """Metrics that are read from the parts at each scrape."""

    def __init__(
        self,
        ingest: Callable[[], IngestStats],
        store: Callable[[], StoreStats],
        state: Callable[[], FleetState],
        periodic_ages: Readings,
        on_duty: Callable[[], bool] = lambda: True,
    ) -> None:
        self._ingest = ingest
        self._store = store
        self._state = state
        self._periodic_ages = periodic_ages
        self._on_duty = on_duty

    def describe(self) -> Iterable[Metric]:
        """No metric is asked for at registration."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All of them, as they are now."""
        yield from _of_ingest(self._ingest())
        yield from _of_store(self._store())
        yield GaugeMetricFamily(
            "flopwatch_collector_generation",
            "Rises whenever an answer may have changed",
            value=self._state().generation,
        )
        ages = GaugeMetricFamily(
            "flopwatch_collector_periodic_age_seconds",
            "Time since each periodic job last succeeded",
            labels=["task"],
        )
        for task, age in self._periodic_ages().items():
            if age is not None:
                ages.add_metric([task], age)
        yield ages
        yield GaugeMetricFamily(
            "flopwatch_collector_on_duty",
            "1 while this collector does the periodic work, alone or of several; 0 while another does",
            value=int(self._on_duty()),
        )


def _of_ingest(stats: IngestStats) -> Iterator[Metric]:
    yield CounterMetricFamily(
        "flopwatch_collector_batches_accepted", "Batches made durable", value=stats.accepted
    )
    yield CounterMetricFamily(
        "flopwatch_collector_batches_duplicate", "Batches that had come before", value=stats.duplicates
    )
    yield CounterMetricFamily("flopwatch_collector_rows", "Rows made durable", value=stats.rows)
    yield GaugeMetricFamily(
        "flopwatch_collector_batches_waiting", "Batches that are not durable yet", value=stats.waiting
    )


def _of_store(stats: StoreStats) -> Iterator[Metric]:
    rows = GaugeMetricFamily("flopwatch_collector_store_rows", "Rows kept, by table", labels=["table"])
    for table, count in stats.rows.items():
        rows.add_metric([table], count)
    yield rows
    yield GaugeMetricFamily("flopwatch_collector_store_bytes", "Bytes on disk", value=stats.bytes_on_disk)
    yield GaugeMetricFamily(
        "flopwatch_collector_store_pending_batches",
        "Batches queued for the disk",
        value=stats.pending_batches,
    )
    yield CounterMetricFamily("flopwatch_collector_store_commits", "Commits to disk", value=stats.commits)
    yield CounterMetricFamily(
        "flopwatch_collector_store_reopened",
        "Times the store was opened anew after an error",
        value=stats.reopened,
    )
    yield GaugeMetricFamily(
        "flopwatch_collector_store_problems",
        "Things found wrong with the data folder; the log says which",
        value=len(stats.problems),
    )
    yield GaugeMetricFamily(
        "flopwatch_collector_store_batches_missing",
        "Batches that were acknowledged and could not be read again",
        value=stats.batches_missing,
    )
    if stats.last_commit_seconds is not None:
        yield GaugeMetricFamily(
            "flopwatch_collector_store_last_commit_timestamp_seconds",
            "When the newest commit was",
            value=stats.last_commit_seconds,
        )


def router(metrics: Metrics, caller: CallerNeed) -> APIRouter:
    """The exposition endpoint."""
    api = APIRouter(tags=["operation"])

    @api.get(
        "/metrics",
        response_class=Response,
        responses={
            200: {
                "content": {"text/plain": {"schema": {"type": "string"}}},
                "description": "Prometheus text.",
            },
            **documented(401, 403, 429, 500),
        },
    )
    def exposition(_: Annotated[Caller, Depends(caller)]) -> Response:
        """The collector's own metrics."""
        return Response(metrics.text(), media_type=CONTENT_TYPE_LATEST)

    return api
