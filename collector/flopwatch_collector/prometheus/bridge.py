"""Remote write put together: every interval what is true now, and every closed window once."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from flopwatch.query import Query
from flopwatch.settings import SettingError
from flopwatch_collector.accounting import Accounting
from flopwatch_collector.compute.buckets import WINDOW_SECONDS
from flopwatch_collector.compute.layout import take
from flopwatch_collector.config import RemoteWriteSettings
from flopwatch_collector.facts import Facts
from flopwatch_collector.model import Fleet
from flopwatch_collector.prometheus.endpoint import Endpoint, Identity, line_of
from flopwatch_collector.prometheus.fleet_readings import readings
from flopwatch_collector.prometheus.remote_write import Request, Sender
from flopwatch_collector.prometheus.samples import Sample, SeriesBook, labels_of
from flopwatch_collector.prometheus.watched_readings import watched_readings
from flopwatch_collector.prometheus.windows import ends_between, window_readings
from flopwatch_collector.prometheus.write_request import encode
from flopwatch_collector.store.port import Control

SAMPLES_A_REQUEST = 2_000
MOST_WINDOWS_A_TURN = 24
DOCUMENT = "remote_write"

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Watermark:
    """Up to where a receiver has been sent closed windows."""

    window_end_seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class BridgeSources:
    """The collector's parts that are sent from."""

    query: Query
    accounting: Accounting
    fleet: Fleet
    control: Control
    clock: Callable[[], float] = time.time
    simulated: bool = False
    on_duty: Callable[[], bool] = lambda: True
    """Whether it is this one of several collectors that writes."""
    watched: Callable[[], Facts | None] = lambda: None
    """What the rules were last evaluated on."""


@dataclass(kw_only=True)
class Bridge:
    """One receiver with the series it was sent."""

    settings: RemoteWriteSettings
    sources: BridgeSources
    sender: Sender
    _book: SeriesBook = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._labels: Mapping[str, str] = {
            **self.settings.labels,
            **({"simulated": "true"} if self.sources.simulated else {}),
        }
        self._begin_anew()
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"remote-write-clock-{self.sender.name}", daemon=True
        )

    def start(self) -> None:
        """Begin to make samples and to send them."""
        self.sender.start()
        self._thread.start()

    def stop(self) -> None:
        """Make no more samples; what waits is tried once more."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        self.sender.stop()

    def _begin_anew(self) -> None:
        """As a process that has sent nothing yet; windows go on where the receiver took the last one."""
        self._book = SeriesBook(self._labels)
        kept = self.sources.control.load(DOCUMENT, Watermark).get(self.sender.name)
        self._queued_until = kept.window_end_seconds if kept else None
        self._was_on_duty = True

    def turn(self) -> None:
        """Queue what is true now, and the windows that closed since the last turn; nothing off duty."""
        if not self.sources.on_duty():
            self._was_on_duty = False
            self.sender.forget()
            return
        if not self._was_on_duty:
            self._begin_anew()
        now = self.sources.clock()
        found = (*readings(self.sources.query), *watched_readings(self.sources.watched()))
        self._queue(self._book.at(found, now), lambda: None)
        edge = self.sources.accounting.provisional_from_seconds
        if edge is None:
            return
        if self._queued_until is None:
            self._queued_until = edge
        for end in ends_between(self._queued_until, edge)[:MOST_WINDOWS_A_TURN]:
            self._queue(self._window(end), lambda end=end: self._settled(end))  # type: ignore[misc]
            self._queued_until = end

    def _window(self, end: float) -> list[Sample]:
        """The samples of the window that ended at ``end``."""
        start = end - WINDOW_SECONDS
        ledger = self.sources.accounting.ledger_rows(start, end)
        rollups = self.sources.accounting.job_rollups(start, end)
        inside = take(ledger, np.asarray(ledger["ts"] == start))
        return [
            Sample(
                labels=labels_of(reading, self._labels),
                value=reading.value,
                time_milliseconds=round(end * 1000),
            )
            for reading in window_readings(inside, rollups, self.sources.fleet.state())
        ]

    def _queue(self, samples: list[Sample], settled: Callable[[], None]) -> None:
        """Requests of a bounded size; the last one settles them all."""
        for begin in range(0, len(samples), SAMPLES_A_REQUEST):
            part = samples[begin : begin + SAMPLES_A_REQUEST]
            last = begin + SAMPLES_A_REQUEST >= len(samples)
            request = Request(body=encode(part), samples=len(part), settled=settled if last else lambda: None)
            self.sender.put(request)

    def _settled(self, end: float) -> None:
        self.sources.control.save(DOCUMENT, {self.sender.name: Watermark(window_end_seconds=end)})

    def _run(self) -> None:
        """A turn every interval. A turn that fails is logged with its traceback; the next one is tried."""
        while not self._stopping.wait(self.settings.interval_seconds):
            try:
                self.turn()
            except Exception:
                log.exception("remote write to %s: no samples could be made", self.sender.name)


def bridges(settings: tuple[RemoteWriteSettings, ...], sources: BridgeSources) -> tuple[Bridge, ...]:
    """A bridge for every ``[[remote_write]]``.

    Raises:
        SettingError: one is wrong, two have the same name, or simulated data would leave this machine.
    """
    names = [one.name for one in settings]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SettingError("remote_write.name", twice, "a name for each [[remote_write]] of its own")
    return tuple(_bridge(one, sources) for one in settings)


def _bridge(settings: RemoteWriteSettings, sources: BridgeSources) -> Bridge:
    setting = f"remote_write.{settings.name}."
    url = settings.url if settings.url_file is None else line_of(settings.url_file, f"{setting}url_file")
    endpoint = Endpoint(
        setting=setting,
        url=url or "",
        identity=Identity(
            token_file=settings.token_file,
            username=settings.username,
            password_file=settings.password_file,
            headers=settings.headers,
        ),
        ca_file=settings.ca_file,
        timeout_seconds=settings.timeout_seconds,
    )
    if sources.simulated and not endpoint.loopback:
        raise SettingError(
            f"{setting}url", endpoint.shown, "a receiver on this machine while data are simulated"
        )
    sender = Sender(name=settings.name, endpoint=endpoint, most_requests=settings.queue_requests)
    return Bridge(settings=settings, sources=sources, sender=sender)
