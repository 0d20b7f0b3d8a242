"""``flopwatch dashboard``: over a collector, or over a Prometheus with ``--prometheus URL``."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from flopwatch.answers.nodes import GpuPage, NodePage, Nodes
from flopwatch.query import Alerts, Economy, Fleet, Job, Jobs, Query, Range, Status
from flopwatch_collector.prometheus.endpoint import Endpoint, Identity
from flopwatch_collector.prometheus.promql import PromClient, PrometheusUnavailable
from flopwatch_collector.prometheus.reader import PrometheusQuery, ReaderTerms
from flopwatch_dashboard import __main__ as dashboard
from flopwatch_dashboard.client import CollectorUnavailable
from flopwatch_dashboard.config import DashboardSettings

T = TypeVar("T")


def main(argv: list[str]) -> int:
    """Serve until SIGTERM or Ctrl-C.

    Raises:
        SettingError: a setting is wrong.
    """
    return dashboard.main(argv, prometheus)


def prometheus(settings: DashboardSettings) -> Query | None:
    """Pages over the Prometheus that the settings name; None where they name none.

    Raises:
        SettingError: its address, a file or a label is wrong.
    """
    if settings.prometheus_url is None:
        return None
    identity = Identity(
        token_file=settings.prometheus_token_file,
        username=settings.prometheus_username,
        password_file=settings.prometheus_password_file,
        headers=settings.prometheus_headers,
    )
    endpoint = Endpoint(
        setting="dashboard.prometheus_",
        url=settings.prometheus_url.rstrip("/"),
        identity=identity,
        ca_file=settings.prometheus_ca_file,
        timeout_seconds=settings.timeout_seconds,
    )
    terms = ReaderTerms(cluster_label=settings.prometheus_cluster_label, time_zone=settings.time_zone)
    return Shown(PrometheusQuery(PromClient(endpoint), terms))


class Shown:
    """Another ``Query`` whose outage the pages show as a collector's."""

    def __init__(self, query: PrometheusQuery) -> None:
        self._query = query

    def status(self) -> Status:
        """The frame of every page."""
        return _told(self._query.status)

    def fleet(self, asked: Range) -> Fleet:
        """The Fleet page."""
        return _told(lambda: self._query.fleet(asked))

    def jobs(self, asked: Range) -> Jobs:
        """Jobs that run."""
        return _told(lambda: self._query.jobs(asked))

    def job(self, job_id: str, asked: Range) -> Job | None:
        """One job, or None when there is no such job."""
        return _told(lambda: self._query.job(job_id, asked))

    def nodes(self, asked: Range) -> Nodes:
        """Every GPU as it is now."""
        return _told(lambda: self._query.nodes(asked))

    def node(self, name: str, asked: Range) -> NodePage | None:
        """One node, or None when there is no such node."""
        return _told(lambda: self._query.node(name, asked))

    def gpu(self, uuid: str, asked: Range) -> GpuPage | None:
        """One GPU by its UUID, or None when there is no such GPU."""
        return _told(lambda: self._query.gpu(uuid, asked))

    def economy(self, asked: Range, overrides: Mapping[str, float]) -> Economy:
        """The Breakeven page."""
        return _told(lambda: self._query.economy(asked, overrides))

    def alerts(self, asked: Range) -> Alerts:
        """Active alerts."""
        return _told(lambda: self._query.alerts(asked))


def _told(ask: Callable[[], T]) -> T:
    try:
        return ask()
    except PrometheusUnavailable as error:
        raise CollectorUnavailable(str(error)) from error
