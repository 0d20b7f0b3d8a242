"""The same readings at the collector's ``/metrics``, for sites that scrape, and how remote write fares."""

import logging
from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family

from flopwatch import fleet_metrics as table
from flopwatch.metrics import Metric
from flopwatch.query import Query
from flopwatch_collector.facts import Facts
from flopwatch_collector.prometheus.fleet_readings import readings
from flopwatch_collector.prometheus.remote_write import SenderStats
from flopwatch_collector.prometheus.watched_readings import watched_readings
from flopwatch_collector.store.port import TooSlow, Unavailable

log = logging.getLogger(__name__)


class FleetReadout:
    """Fleet, jobs and alerts as they are when scraped; answers come from the pages' memo."""

    def __init__(self, query: Query, watched: Callable[[], Facts | None] = lambda: None) -> None:
        self._query = query
        self._watched = watched

    def describe(self) -> Iterable[Family]:
        """No metric is asked for at registration."""
        return []

    def collect(self) -> Iterator[Family]:
        """Every family that has a series now; while the store cannot be asked, only that this is so."""
        try:
            found = [*readings(self._query), *watched_readings(self._watched())]
        except (Unavailable, TooSlow) as error:
            log.warning("fleet, jobs and alerts could not be read for a scrape: %s", error)
            found = []
            yield GaugeMetricFamily(table.READ.name, table.READ.help, value=0.0)
        else:
            yield GaugeMetricFamily(table.READ.name, table.READ.help, value=1.0)
        made: dict[str, GaugeMetricFamily] = {}
        for reading in found:
            metric = reading.metric
            if metric.name not in made:
                made[metric.name] = GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
            made[metric.name].add_metric(reading.values, reading.value)
        yield from made.values()


class RemoteWriteReadout:
    """Counts of every receiver."""

    def __init__(self, stats: Callable[[], Iterable[tuple[str, SenderStats]]]) -> None:
        self._stats = stats

    def describe(self) -> Iterable[Family]:
        """No metric is asked for at registration."""
        return []

    def collect(self) -> Iterator[Family]:
        """The four metrics of the table; none where nothing is written."""
        sent, dropped, failed = map(
            _counter, (table.REMOTE_WRITE_SENT, table.REMOTE_WRITE_DROPPED, table.REMOTE_WRITE_FAILED)
        )
        waiting = GaugeMetricFamily(
            table.REMOTE_WRITE_WAITING.name,
            table.REMOTE_WRITE_WAITING.help,
            labels=table.REMOTE_WRITE_WAITING.labels,
        )
        any_ = False
        for name, stats in self._stats():
            any_ = True
            sent.add_metric((name,), stats.sent_samples)
            dropped.add_metric((name, "refused"), stats.refused_samples)
            dropped.add_metric((name, "overflow"), stats.overflowed_samples)
            failed.add_metric((name,), stats.failed_attempts)
            waiting.add_metric((name,), stats.waiting_requests)
        if any_:
            yield from (sent, dropped, failed, waiting)


def _counter(metric: Metric) -> CounterMetricFamily:
    return CounterMetricFamily(metric.name.removesuffix("_total"), metric.help, labels=metric.labels)
