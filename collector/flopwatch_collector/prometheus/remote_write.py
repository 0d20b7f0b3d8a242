"""One receiver of remote write: a bounded queue, sent in order by a thread of its own."""

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from flopwatch.settings import SettingError
from flopwatch_collector.prometheus.endpoint import Answer, Endpoint, Unreachable

HEADERS = {
    "Content-Type": "application/x-protobuf",
    "Content-Encoding": "snappy",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 60.0
LAST_WORDS_SECONDS = 2.0
"""At the end what waits is sent for so long."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """An encoded request, and what follows once the receiver has taken or refused it."""

    body: bytes
    samples: int
    settled: Callable[[], None] = lambda: None


@dataclass(frozen=True, kw_only=True, slots=True)
class SenderStats:
    """Counts of one receiver since the start."""

    sent_samples: int
    refused_samples: int
    overflowed_samples: int
    failed_attempts: int
    waiting_requests: int


@dataclass(slots=True)
class _Counts:
    sent: int = 0
    refused: int = 0
    overflowed: int = 0
    failed: int = 0


@dataclass(kw_only=True)
class Sender:
    """Sends requests one after the other, each until it is taken or refused for good.

    429, 5xx and no answer are tried again with growing pauses; any other status drops the request. When the queue is
    full the oldest request goes, because receivers take samples in order only.
    """

    name: str
    endpoint: Endpoint
    most_requests: int = 2_000
    first_pause_seconds: float = FIRST_PAUSE_SECONDS
    longest_pause_seconds: float = LONGEST_PAUSE_SECONDS
    _counts: _Counts = field(default_factory=_Counts, repr=False)

    def __post_init__(self) -> None:
        self._queue: deque[Request] = deque()
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"remote-write-{self.name}", daemon=True)
        self._complained = False

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self) -> None:
        """Try once more what waits, for a short time, and end."""
        self._stopping.set()
        with self._changed:
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(self.endpoint.timeout_seconds + LAST_WORDS_SECONDS)

    def put(self, request: Request) -> None:
        """Queue a request."""
        with self._changed:
            self._queue.append(request)
            while len(self._queue) > self.most_requests:
                self._counts.overflowed += self._queue.popleft().samples
            self._changed.notify()

    def forget(self) -> None:
        """Drop what waits: another process sends now."""
        with self._changed:
            self._queue.clear()

    def stats(self) -> SenderStats:
        """How the receiver fares."""
        with self._changed:
            counts = self._counts
            return SenderStats(
                sent_samples=counts.sent,
                refused_samples=counts.refused,
                overflowed_samples=counts.overflowed,
                failed_attempts=counts.failed,
                waiting_requests=len(self._queue),
            )

    def _run(self) -> None:
        pause = self.first_pause_seconds
        while True:
            with self._changed:
                while not self._queue and not self._stopping.is_set():
                    self._changed.wait()
                if not self._queue:
                    return
                request = self._queue[0]
            wait = self._attempt(request)
            if wait is None:
                pause = self.first_pause_seconds
                continue
            if self._stopping.is_set():
                return
            self._stopping.wait(max(wait, pause))
            pause = min(self.longest_pause_seconds, pause * 2)

    def _attempt(self, request: Request) -> float | None:
        """Send once: None when the request is settled, else the least seconds until the next attempt."""
        try:
            answer = self.endpoint.post("", request.body, HEADERS)
        except (Unreachable, SettingError) as error:
            return self._failed(str(error), 0.0)
        except Exception as error:
            log.exception("remote write to %s: an attempt failed in a way that was not foreseen", self.name)
            return self._failed(type(error).__name__, 0.0)
        if 200 <= answer.status < 300:
            self._settle(request, taken=True)
            return None
        if answer.status == 429 or answer.status >= 500:
            return self._failed(f"answered {answer.status}", answer.retry_after_seconds or 0.0)
        log.warning("remote write to %s: %d samples refused: %s", self.name, request.samples, _said(answer))
        self._settle(request, taken=False)
        return None

    def _settle(self, request: Request, *, taken: bool) -> None:
        with self._changed:
            if taken:
                self._counts.sent += request.samples
            else:
                self._counts.refused += request.samples
            if self._queue and self._queue[0] is request:
                self._queue.popleft()
        if taken and self._complained:
            log.info("remote write to %s works again", self.name)
            self._complained = False
        try:
            request.settled()
        except Exception:
            log.exception("remote write to %s: how far it came could not be noted", self.name)

    def _failed(self, reason: str, wait: float) -> float:
        with self._changed:
            self._counts.failed += 1
        if not self._complained:
            log.warning("remote write to %s: %s; tried again", self.name, reason)
            self._complained = True
        return min(wait, self.longest_pause_seconds)


def _said(answer: Answer) -> str:
    """The status and the begin of what the receiver said."""
    words = answer.body[:200].decode("utf-8", "replace").strip().replace("\n", " ")
    return f"answered {answer.status} {words}".strip()
