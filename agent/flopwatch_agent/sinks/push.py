"""Sends spooled batches to the collector, oldest first, one at a time, each until the collector has it for good."""

import contextlib
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
from flopwatch_agent.sinks.kept import PlainHandler, SecureHandler
from flopwatch_agent.spool import DamagedBatchError, Spool, SpooledBatch

logger = logging.getLogger(__name__)

INGEST_PATH = "/api/v1/ingest"
ANSWER_SECONDS = 30.0
FIRST_WAIT_SECONDS = 1.0
SHORT_OUTAGE_SECONDS = 60.0
LONGEST_SHORT_WAIT_SECONDS = 5.0
LONGEST_WAIT_SECONDS = 60.0
IDLE_SECONDS = 30.0
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
        self._handlers = connection_handlers(target)
        self._opener = urllib.request.build_opener(StayHere, *self._handlers)
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
        try:
            self._empty()
        finally:
            for handler in self._handlers:
                handler.close()

    def _empty(self) -> None:
        """Send until stopped."""
        while not self._stopped.is_set():
            self._wake.clear()
            batch = self._spool.oldest()
            if batch is None:
                self._wake.wait(IDLE_SECONDS)
                continue
            try:
                wait = self._attempt(batch)
            except Exception:
                logger.exception("sending batch %d failed; it is tried again", batch.sequence)
                self.state.failed_attempts += 1
                wait = self._waits.next(None)
            if wait > 0:
                self._stopped.wait(wait)

    def _attempt(self, batch: SpooledBatch) -> float:
        """Send one batch; how long to wait before the next attempt."""
        try:
            body = self._spool.read(batch)
            return 0.0 if body is None else self._settle(batch, self._send(body))
        except DamagedBatchError as error:
            return self._set_aside(batch, f"damaged on disk: {error}")
        except OSError as error:
            self._note(f"the spool cannot be read or changed: {error}")
            return self._waits.next(None)

    def _set_aside(self, batch: SpooledBatch, reason: str) -> float:
        self._spool.reject(batch, reason)
        self.state.rejected += 1
        logger.error("batch %d is set aside: %s", batch.sequence, reason)
        return 0.0

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
            return self._set_aside(batch, f"{status} {answer.reason}")
        self.state.failed_attempts += 1
        self._note(refusal(status, answer.reason, self._target.url))
        return self._waits.next(answer.retry_after_seconds)

    def _send(self, body: bytes) -> Answer:
        try:
            token = self._target.bearer()
        except SettingError as error:
            return Answer(reason=str(error))
        return self._answer(self._request(body, token))

    def _request(self, body: bytes, token: str | None) -> urllib.request.Request:
        request = urllib.request.Request(  # noqa: S310 - the settings allow http and https only
            self._target.url.rstrip("/") + INGEST_PATH, data=body, method="POST"
        )
        request.add_header("Content-Type", "application/json")
        request.add_header("Content-Encoding", "gzip")
        request.add_header(SENT_AT_HEADER, repr(time.time()))
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        return request

    def _answer(self, request: urllib.request.Request) -> Answer:
        """What the collector says; a status counts also when the rest of the answer is cut off."""
        try:
            with self._opener.open(request, timeout=ANSWER_SECONDS) as response:
                with contextlib.suppress(OSError, HTTPException):
                    response.read(MAX_REASON_BYTES)
                return Answer(status=response.status)
        except urllib.error.HTTPError as error:
            return Answer(
                status=error.code, reason=reason_of(error), retry_after_seconds=retry_after(error.headers)
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
    """Exponential back-off with jitter; an outage shorter than a minute is tried at least every five seconds."""

    failures: int = 0
    since: float | None = None
    """When the outage began, by ``clock``."""
    generator: random.Random = field(default_factory=random.Random)
    clock: Callable[[], float] = time.monotonic

    def next(self, asked_seconds: float | None) -> float:
        """Seconds to wait after one more failure; never less than the collector asked for."""
        moment = self.clock()
        self.since = moment if self.since is None else self.since
        is_short = moment - self.since < SHORT_OUTAGE_SECONDS
        ceiling = LONGEST_SHORT_WAIT_SECONDS if is_short else LONGEST_WAIT_SECONDS
        longest = min(ceiling, FIRST_WAIT_SECONDS * 2**self.failures)
        if longest < ceiling:
            self.failures += 1
        jittered: float = longest * self.generator.uniform(0.5, 1.0)
        return max(jittered, min(asked_seconds or 0.0, 3600.0))

    def reset(self) -> None:
        """The collector took a batch."""
        self.failures, self.since = 0, None


class StayHere(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: it would carry the token to another host."""

    def redirect_request(self, *_: object) -> None:
        """No request."""


def connection_handlers(target: Target) -> list[urllib.request.BaseHandler]:
    """What opens connections, and with TLS checks the collector's certificate."""
    if not target.url.startswith("https:"):
        return [PlainHandler()]
    try:
        context = ssl.create_default_context(cafile=None if target.ca_file is None else str(target.ca_file))
    except OSError as error:
        allowed = f"a readable file of certificates in PEM form ({error})"
        raise SettingError("agent.ca_file", str(target.ca_file), allowed) from error
    return [PlainHandler(), SecureHandler(context)]


def reason_of(error: urllib.error.HTTPError) -> str:
    """The beginning of a refusal's text; empty when the connection was cut before it came."""
    try:
        with error:
            return error.read(MAX_REASON_BYTES).decode("utf-8", "replace")
    except (OSError, HTTPException):
        return ""


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
