"""Sends spooled batches to the collector, oldest first, one at a time, each until the collector has it for good."""

import logging
import random
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from email.message import Message
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from pathlib import Path

from flopwatch.settings import SettingError
from flopwatch.wire import SENT_AT_HEADER
from flopwatch_agent.spool import Spool, SpooledBatch

logger = logging.getLogger(__name__)

INGEST_PATH = "/api/v1/ingest"
TIMEOUT_SECONDS = 30.0
FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 60.0
REFUSED_FOR_GOOD = frozenset((400, 413, 415, 422))
REFUSED_SENDER = frozenset((401, 403))
MAX_REASON_BYTES = 4000


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """Where to send, and as whom."""

    url: str
    bearer: Callable[[], str | None]
    """The token now; asked before each attempt, so that a renewed file is used."""
    ca_file: Path | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What came of one attempt; ``status`` is None when the collector did not answer."""

    status: int | None = None
    reason: str = ""
    retry_after_seconds: float | None = None


@dataclass(slots=True)
class PushState:
    """How pushing goes, for ``/metrics``."""

    sent: int = 0
    rejected: int = 0
    failed_attempts: int = 0
    last_success_seconds: float | None = None
    problem: str | None = None


class Pusher:
    """A thread that empties the spool.

    Raises:
        SettingError: ``ca_file`` cannot be used.
    """

    def __init__(self, target: Target, spool: Spool) -> None:
        self.state = PushState()
        self._target = target
        self._spool = spool
        self._opener = urllib.request.build_opener(StayHere, *tls_handlers(target))
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self._waits = Waits()
        self._thread = threading.Thread(target=self._run, name="push", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def notify(self) -> None:
        """A batch was spooled."""
        self._wake.set()

    def stop(self, seconds: float) -> None:
        """Send what is there, at most for the given time; the rest stays in the spool."""
        end = time.monotonic() + seconds
        while self._spool.waiting and self.state.problem is None and time.monotonic() < end:
            time.sleep(0.02)
        self._stopped.set()
        self._wake.set()
        self._thread.join(max(0.1, end - time.monotonic()))

    def _run(self) -> None:
        while not self._stopped.is_set():
            batch = self._spool.oldest()
            if batch is None:
                self._wake.wait(1.0)
                self._wake.clear()
                continue
            wait = self._attempt(batch)
            if wait > 0:
                self._stopped.wait(wait)

    def _attempt(self, batch: SpooledBatch) -> float:
        """Send one batch; how long to wait before the next attempt."""
        try:
            body = batch.path.read_bytes()
        except OSError:
            return 0.0 if self._spool.oldest() != batch else 1.0
        try:
            answer = self._send(body)
            return self._settle(batch, answer)
        except OSError as error:
            self._note(f"the spool cannot be changed: {error}")
            return self._waits.next(None)

    def _settle(self, batch: SpooledBatch, answer: Answer) -> float:
        status = answer.status
        if status is not None and 200 <= status < 300:
            self._spool.done(batch)
            self.state.sent += 1
            self.state.last_success_seconds = time.time()
            self._note(None)
            self._waits.reset()
            return 0.0
        if status in REFUSED_FOR_GOOD:
            self._spool.reject(batch, f"{status} {answer.reason}")
            self.state.rejected += 1
            logger.error(
                "the collector refused batch %d for good (%s): %s", batch.sequence, status, answer.reason
            )
            return 0.0
        self.state.failed_attempts += 1
        self._note(refusal(status, answer.reason, self._target.url))
        return self._waits.next(answer.retry_after_seconds)

    def _send(self, body: bytes) -> Answer:
        try:
            token = self._target.bearer()
        except SettingError as error:
            return Answer(reason=str(error))
        request = urllib.request.Request(  # noqa: S310 - the settings allow http and https only
            self._target.url.rstrip("/") + INGEST_PATH, data=body, method="POST"
        )
        request.add_header("Content-Type", "application/json")
        request.add_header("Content-Encoding", "gzip")
        request.add_header(SENT_AT_HEADER, repr(time.time()))
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with self._opener.open(request, timeout=TIMEOUT_SECONDS) as response:
                response.read()
                return Answer(status=response.status)
        except urllib.error.HTTPError as error:
            with error:
                reason = error.read(MAX_REASON_BYTES).decode("utf-8", "replace")
                return Answer(
                    status=error.code, reason=reason, retry_after_seconds=retry_after(error.headers)
                )
        except (OSError, HTTPException) as error:
            return Answer(reason=str(getattr(error, "reason", error)))

    def _note(self, problem: str | None) -> None:
        """Log a change once, never each attempt."""
        if problem != self.state.problem:
            if problem is None:
                logger.info("the collector at %s takes batches", self._target.url)
            else:
                logger.warning("%s; batches wait in the spool", problem)
        self.state.problem = problem


@dataclass(slots=True)
class Waits:
    """Exponential back-off with jitter."""

    failures: int = 0
    generator: random.Random = field(default_factory=random.Random)

    def next(self, asked_seconds: float | None) -> float:
        """Seconds to wait after one more failure; never less than the collector asked for."""
        longest = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2**self.failures)
        self.failures = min(self.failures + 1, 16)
        jittered: float = longest * self.generator.uniform(0.5, 1.0)
        return max(jittered, min(asked_seconds or 0.0, 3600.0))

    def reset(self) -> None:
        """The collector took a batch."""
        self.failures = 0


class StayHere(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: it would carry the token to another host."""

    def redirect_request(self, *_: object) -> None:
        """No request."""


def tls_handlers(target: Target) -> list[urllib.request.HTTPSHandler]:
    """What checks the collector's certificate; nothing without TLS."""
    if not target.url.startswith("https:"):
        return []
    try:
        context = ssl.create_default_context(cafile=None if target.ca_file is None else str(target.ca_file))
    except OSError as error:
        allowed = f"a readable file of certificates in PEM form ({error})"
        raise SettingError("agent.ca_file", str(target.ca_file), allowed) from error
    return [urllib.request.HTTPSHandler(context=context)]


def refusal(status: int | None, reason: str, url: str) -> str:
    """Why a batch was not taken, and what to do."""
    if status in REFUSED_SENDER:
        remedy = "set agent.token or agent.token_file to a token of role agent"
        return f"the collector at {url} refuses this agent ({status}): {remedy}"
    if status is None:
        return f"the collector at {url} does not answer: {reason}"
    if 300 <= status < 500 and status != 429:
        return f"{url} answers {status} to a batch: set agent.collector_url to the collector's own address"
    return f"the collector at {url} cannot take batches now ({status})"


def retry_after(headers: Message) -> float | None:
    """Seconds of a Retry-After header, as a number or as a date."""
    text = headers.get("Retry-After")
    if not text:
        return None
    if text.strip().isdigit():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return None
