"""What a trainer's Prometheus endpoint said, scrape after scrape, as a file that grows: followed like any other."""

import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from hashlib import sha256
from http.client import HTTPException

from flopwatch_agent.log_file import FileIdentity
from flopwatch_agent.trainers.files.prometheus import GAUGES

TIMEOUT_SECONDS = 3.0
MAX_PAGE_BYTES = 4 << 20
MAX_WAITING_BYTES = 1 << 20
CHUNK_BYTES = 64 << 10
NO_DEVICE = -1


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """What a follower asks of a file."""

    st_size: int
    st_mtime: float


class EndpointError(Exception):
    """An endpoint cannot be read; the message says why."""


def opener() -> urllib.request.OpenerDirector:
    """Reads an endpoint where it is: no proxy, and no redirect is followed."""
    made = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        made.add_handler(handler)
    return made


OPENER = opener()


class EndpointStream:
    """One endpoint. Its scraper adds in one thread, its follower reads in another.

    Only lines of gauges that trainers are known to have are kept, nothing else of the page.
    """

    def __init__(self, url: str, node: str, now: float) -> None:
        self.url = url
        self.path = url
        name = sha256(f"{node}\0{url}".encode()).hexdigest()[:24]
        self.identity = FileIdentity(NO_DEVICE, int(name, 16))
        self.offset = 0
        self.size_at_open = 0
        self.born_seconds: float | None = None
        self.closed = False
        self.answered_seconds: float | None = None
        self.problem: str | None = None
        self._name = f"endpoint:{name}:{round(now)}"
        self._lock = threading.Lock()
        self._waiting = bytearray()
        self._size = 0
        self._changed = now

    def status(self) -> StreamStatus:
        """How much was scraped, and when last."""
        return StreamStatus(self._size, self._changed)

    def read(self, limit: int) -> bytes:
        """The next bytes, at most ``limit``; empty when all was read."""
        with self._lock:
            data = bytes(self._waiting[:limit])
            del self._waiting[:limit]
        self.offset += len(data)
        return data

    def source_id(self) -> str | None:
        """The name of the endpoint as this agent reads it since its start; None until it answered."""
        return self._name if self._size else None

    def close(self) -> None:
        """It is scraped no more."""
        self.closed = True

    def scrape(self, now: float) -> None:
        """Read the page once, at most a few seconds; a failure is kept as the problem."""
        try:
            page = page_of(self.url)
        except EndpointError as error:
            self.problem = str(error)
            return
        self.problem, self.answered_seconds = None, now
        lines = b"".join(line + b"\n" for line in page.splitlines() if is_known(line))
        mark = b"# scrape_time %.3f\n" % now
        self._add(mark + lines + mark, now)

    def _add(self, data: bytes, now: float) -> None:
        with self._lock:
            if len(self._waiting) < MAX_WAITING_BYTES:
                self._waiting += data
                self._size += len(data)
                self._changed = now


def is_known(line: bytes) -> bool:
    """Whether a line is a sample of a gauge that is read."""
    return line.split(b"{", 1)[0].split(b" ", 1)[0].decode("ascii", "replace") in GAUGES


def page_of(url: str) -> bytes:
    """The page at an address.

    Raises:
        EndpointError: it does not answer in time, not with 200, or with too much.
    """
    page, end = bytearray(), time.monotonic() + TIMEOUT_SECONDS
    try:
        with OPENER.open(url, timeout=TIMEOUT_SECONDS) as answer:
            while part := answer.read1(CHUNK_BYTES):
                page += part
                if len(page) > MAX_PAGE_BYTES:
                    raise EndpointError(f"its page is larger than {MAX_PAGE_BYTES >> 20} MiB")
                if time.monotonic() > end:
                    raise EndpointError(f"its page takes longer than {TIMEOUT_SECONDS:g} s")
    except urllib.error.HTTPError as error:
        with error:
            raise EndpointError(f"it answers {error.code}") from error
    except (OSError, HTTPException, ValueError) as error:
        raise EndpointError(f"it does not answer: {getattr(error, 'reason', error)}") from error
    return bytes(page)
