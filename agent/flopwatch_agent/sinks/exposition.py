"""Serves ``/metrics`` and ``/healthz`` from what was read last: a scrape reads nothing and waits for nothing.

Every series is made anew from the snapshot, so nothing outlives its sample.
"""

import contextlib
import logging
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from flopwatch import metrics
from flopwatch.settings import SettingError
from flopwatch.wire import GpuDevice, GpuSample
from flopwatch_agent.freshness import STALE_INTERVALS, is_fresh
from flopwatch_agent.source import Snapshot

logger = logging.getLogger(__name__)

MAX_SERIES = 2000
POLL_SECONDS = 30.0
SHORTEST_PATIENCE_SECONDS = 10.0
Series = tuple[metrics.Metric, tuple[str, ...], float]


class SnapshotCollector(Collector):
    """prometheus_client's collector over the snapshot that ``latest`` gives."""

    def __init__(self, latest: Callable[[], Snapshot | None], version: str) -> None:
        self._latest = latest
        self._version = version
        self._dropped = 0

    def collect(self) -> Iterable[Metric]:
        """Every family that has a series now."""
        snapshot = self._latest()
        if snapshot is None:
            return
        kept: dict[str, tuple[metrics.Metric, list[tuple[tuple[str, ...], float]]]] = {}
        count = 0
        for metric, labels, value in series(snapshot, self._version, self._dropped):
            count += 1
            if count > MAX_SERIES:
                self._dropped += 1
                continue
            kept.setdefault(metric.name, (metric, []))[1].append((labels, value))
        for metric, rows in kept.values():
            yield family(metric, rows)


def family(metric: metrics.Metric, rows: list[tuple[tuple[str, ...], float]]) -> Metric:
    """One metric with its series, in prometheus_client's form."""
    made: GaugeMetricFamily | CounterMetricFamily
    if metric.kind == "counter":
        made = CounterMetricFamily(metric.name.removesuffix("_total"), metric.help, labels=metric.labels)
    else:
        made = GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
    for labels, value in rows:
        made.add_metric(labels, value)
    return made


def series(snapshot: Snapshot, version: str, dropped: int) -> Iterator[Series]:
    """Every series of a snapshot; what is unknown has none."""
    yield from agent_series(snapshot, version, dropped)
    yield from gpu_series(snapshot)
    yield from fault_series(snapshot)
    yield from port_series(snapshot)
    yield from node_series(snapshot)
    yield from job_series(snapshot)


def agent_series(snapshot: Snapshot, version: str, dropped: int) -> Iterator[Series]:
    """The agent itself."""
    inventory = snapshot.inventory
    yield metrics.AGENT_INFO, (version, inventory.driver_version or ""), 1.0
    yield metrics.NVML_UP, (), float(inventory.nvml == "ok")
    yield (
        metrics.GPUS_SEEN,
        (),
        float(sum(gpu.mig_parent_uuid is None and gpu.state == "ok" for gpu in inventory.gpus)),
    )
    for name, value in (*snapshot.counters, ("series_dropped", dropped)):
        metric = metrics.GPUS_EXPECTED if name == "gpus_expected" else metrics.AGENT_COUNTERS[name]
        yield metric, (), float(value)
    for health in snapshot.health:
        yield metrics.SOURCE_SUCCESS, (health.name,), float(health.success)
        yield metrics.SOURCE_SECONDS, (health.name,), health.duration_seconds
        yield metrics.SOURCE_AGE, (health.name,), max(0.0, snapshot.now - health.read_seconds)
        yield metrics.SOURCE_ERRORS, (health.name,), float(health.errors)


def gpu_series(snapshot: Snapshot) -> Iterator[Series]:
    """The GPUs: levels only while their sample is fresh."""
    now, interval = snapshot.now, snapshot.interval_seconds
    fresh = {sample.gpu: sample for sample in snapshot.gpu_samples if is_fresh(sample, now, interval)}
    yield from availability_series(snapshot, fresh)
    for gpu in snapshot.inventory.gpus:
        sample = fresh.get(gpu.uuid)
        index = "" if gpu.index is None else str(gpu.index)
        yield metrics.GPU_INFO, (gpu.uuid, gpu.name, gpu.slot, index, gpu.mig_profile or ""), 1.0
        yield metrics.GPU_UP, (gpu.uuid,), float(gpu.state == "ok" and sample is not None)
        yield from device_series(gpu)
        if sample is not None:
            yield from sample_series(sample, snapshot.now)


def availability_series(snapshot: Snapshot, fresh: Mapping[str, GpuSample]) -> Iterator[Series]:
    """By metric: whether every GPU that is read tells it; MIG instances, which tell less, do not count."""
    whole = {gpu.uuid for gpu in snapshot.inventory.gpus if gpu.mig_parent_uuid is None}
    samples = [sample for uuid, sample in fresh.items() if uuid in whole]
    if samples:
        for field, metric in metrics.GPU_SAMPLE.items():
            told = all(getattr(sample, field) is not None for sample in samples)
            yield metrics.GPU_METRIC_AVAILABLE, (metric.name,), float(told)


def fault_series(snapshot: Snapshot) -> Iterator[Series]:
    """Details and XIDs of the GPUs, and how near the NICs are."""
    for uuid, details in snapshot.gpu_details.items():
        for name, value in details.items():
            key, separator, label = name.partition("/")
            metric = metrics.GPU_DETAILS.get(key)
            if metric is not None:
                yield metric, (uuid, label) if separator else (uuid,), value
    for item in snapshot.xids:
        yield metrics.GPU_XIDS, (item.gpu, str(item.xid)), float(item.count)
        yield metrics.GPU_XID_TIME, (item.gpu, str(item.xid)), item.last_seconds
    for pair in snapshot.affinity:
        yield metrics.GPU_NIC, (pair.gpu, pair.device, pair.relation), 1.0


def device_series(gpu: GpuDevice) -> Iterator[Series]:
    """Limits of one GPU."""
    if gpu.memory_total_bytes is not None:
        yield metrics.GPU_MEMORY, (gpu.uuid,), float(gpu.memory_total_bytes)
    if gpu.power_limit_watts is not None:
        yield metrics.GPU_POWER_LIMIT, (gpu.uuid,), gpu.power_limit_watts


def sample_series(sample: GpuSample, now: float) -> Iterator[Series]:
    """One sample."""
    yield metrics.GPU_AGE, (sample.gpu,), max(0.0, now - sample.time_seconds)
    for field, metric in metrics.GPU_SAMPLE.items():
        value = getattr(sample, field)
        if value is not None:
            yield metric, (sample.gpu,), float(value)
    for direction, count in (
        ("transmit", sample.pcie_transmit_bytes),
        ("receive", sample.pcie_receive_bytes),
    ):
        if count is not None:
            yield metrics.GPU_IO, (sample.gpu, direction), float(count)


def port_series(snapshot: Snapshot) -> Iterator[Series]:
    """The NIC ports."""
    for port in snapshot.port_samples:
        rate = port.link_rate_bits_per_second
        yield metrics.PORT_INFO, (port.port, port.role, port.scope or "port"), 1.0
        values = (
            (metrics.PORT_IO, (port.port, "transmit"), port.transmit_bytes),
            (metrics.PORT_IO, (port.port, "receive"), port.receive_bytes),
            (metrics.PORT_UP, (port.port,), port.link_up),
            (metrics.PORT_LIMIT, (port.port,), None if rate is None else rate / 8),
            (metrics.PORT_ERRORS, (port.port,), port.errors),
            (metrics.PORT_WAITS, (port.port,), port.waits),
        )
        for metric, labels, value in values:
            if value is not None:
                yield metric, labels, float(value)


def node_series(snapshot: Snapshot) -> Iterator[Series]:
    """The host."""
    node = snapshot.node_sample
    if node is None:
        return
    values = (
        (metrics.NODE_CPU, (), node.cpu_busy_ratio),
        (metrics.NODE_IO_WAIT, (), node.io_wait_ratio),
        (metrics.NODE_MEMORY, (), node.memory_available_bytes),
        (metrics.NODE_MEMORY_TOTAL, (), node.memory_total_bytes),
        (metrics.NODE_PRESSURE, (), node.memory_pressure_ratio),
        (metrics.NODE_CPU_PRESSURE, (), node.cpu_pressure_ratio),
        (metrics.NODE_IO_PRESSURE, (), node.io_pressure_ratio),
        (metrics.NODE_DISK, ("read",), node.disk_read_bytes),
        (metrics.NODE_DISK, ("write",), node.disk_write_bytes),
    )
    for metric, labels, value in values:
        if value is not None:
            yield metric, labels, float(value)


def job_series(snapshot: Snapshot) -> Iterator[Series]:
    """The live jobs: one info series a GPU, and the last step."""
    for job in snapshot.jobs:
        for gpu in job.gpus:
            labels = (gpu, job.scheduler_job_id or job.ref, job.scheduler, job.user or "", job.account or "")
            yield metrics.JOB_INFO, labels, 1.0
    names = {job.ref: job.scheduler_job_id or job.ref for job in snapshot.jobs}
    yield from host_series(snapshot, names)
    yield from log_series(snapshot, names)
    for step in snapshot.last_steps:
        name = names.get(step.job)
        if name is None:
            continue
        yield metrics.JOB_STEP, (name,), float(step.step)
        yield metrics.JOB_STEP_AGE, (name,), max(0.0, snapshot.now - step.end_time_seconds)
        if step.seconds is not None:
            yield metrics.JOB_STEP_SECONDS, (name,), step.seconds / step.steps_covered


def host_series(snapshot: Snapshot, names: dict[str, str]) -> Iterator[Series]:
    """The host's part of the live jobs."""
    for sample in snapshot.job_samples:
        name = names.get(sample.job)
        if name is None:
            continue
        values: list[tuple[metrics.Metric, tuple[str, ...], float | None]] = [
            *((metric, (name,), getattr(sample, field)) for field, metric in metrics.JOB_HOST.items()),
            (metrics.JOB_PRESSURE, (name, "cpu"), sample.cpu_pressure_ratio),
            (metrics.JOB_PRESSURE, (name, "memory"), sample.memory_pressure_ratio),
            (metrics.JOB_PRESSURE, (name, "io"), sample.io_pressure_ratio),
            (metrics.JOB_DISK, (name, "read"), sample.disk_read_bytes),
            (metrics.JOB_DISK, (name, "write"), sample.disk_write_bytes),
            (metrics.JOB_FAULTS, (name,), sample.major_faults),
            (metrics.JOB_REFAULTS, (name,), sample.cache_refaults),
        ]
        for metric, labels, value in values:
            if value is not None:
                yield metric, labels, float(value)


def log_series(snapshot: Snapshot, names: dict[str, str]) -> Iterator[Series]:
    """How far the followed logs are behind, by job."""
    lags: dict[str, int] = {}
    for log in snapshot.logs:
        if log.job in names and log.lag_bytes is not None:
            lags[log.job] = lags.get(log.job, 0) + log.lag_bytes
    for ref, lag in lags.items():
        yield metrics.LOG_LAG, (names[ref],), float(lag)


def patience_seconds(snapshot: Snapshot) -> float:
    """How long the agent's loop may take for a turn."""
    return max(SHORTEST_PATIENCE_SECONDS, STALE_INTERVALS * snapshot.interval_seconds)


class QuietServer(ThreadingHTTPServer):
    """A client that hangs up in the middle is no news."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002 - socketserver's name
        """At debug level."""
        logger.debug("a request of %s failed: %s", client_address, sys.exc_info()[1])


class ExpositionServer:
    """The HTTP server of one agent.

    Raises:
        SettingError: the address cannot be listened on.
    """

    def __init__(self, host: str, port: int, latest: Callable[[], Snapshot | None], version: str) -> None:
        registry = CollectorRegistry()
        registry.register(SnapshotCollector(latest, version))
        handler = type(
            "Handler", (ExpositionHandler,), {"registry": registry, "latest": staticmethod(latest)}
        )
        try:
            self._server = QuietServer((host, port), handler)
        except OSError as error:
            name = "agent.port" if error.errno in (98, 13) else "agent.host"
            value = port if name == "agent.port" else host
            raise SettingError(
                name, value, f"an address that is free to listen on ({error.strerror})"
            ) from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(POLL_SECONDS,), name="exposition", daemon=True
        )

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Stop answering."""
        ending = threading.Thread(target=self._server.shutdown, name="exposition-end", daemon=True)
        ending.start()
        while ending.is_alive() and self._thread.is_alive():
            self._knock()
            ending.join(0.02)
        self._server.server_close()

    def _knock(self) -> None:
        """Wake the server, which looks only now and then whether it is to end."""
        host, port = self._server.server_address[:2]
        reachable = "127.0.0.1" if host == "0.0.0.0" else str(host)  # noqa: S104 - compared, not listened on
        with contextlib.suppress(OSError):
            socket.create_connection((reachable, port), timeout=1.0).close()


class ExpositionHandler(BaseHTTPRequestHandler):
    """Answers one request."""

    registry: CollectorRegistry
    latest: Callable[[], Snapshot | None]
    timeout = 10
    server_version = "flopwatch-agent"

    def do_GET(self) -> None:
        """``/metrics`` and ``/healthz``; anything else is 404."""
        path = self.path.partition("?")[0]
        if path == "/metrics":
            encode, kind = choose_encoder(self.headers.get("Accept", ""))
            self._answer(200, kind, encode(self.registry))
        elif path == "/healthz":
            self._answer(*self._health())
        else:
            self._answer(404, "text/plain; charset=utf-8", b"flopwatch agent: /metrics, /healthz\n")

    def _health(self) -> tuple[int, str, bytes]:
        """200 while the agent's loop turns: not when three intervals, or ten seconds, passed without."""
        snapshot = self.latest()
        turned = None if snapshot is None else snapshot.turned_seconds
        kind = "text/plain; charset=utf-8"
        if snapshot is None or turned is None or abs(time.time() - turned) > patience_seconds(snapshot):
            return 503, kind, b"the agent's loop does not turn\n"
        return 200, kind, b"ok\n"

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - http.server's name
        """At debug level only."""
        logger.debug(format, *arguments)
