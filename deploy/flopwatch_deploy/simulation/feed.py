"""Pushes a simulated cluster through the wire at a collector: live data on time, history behind it.

Run as a process of its own (``python -m flopwatch_deploy.simulation.feed``), so that making the data does not
slow the collector. Each line it prints is one JSON object with the share of the history that was sent.
"""

import argparse
import gzip
import http.client
import json
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from flopwatch import wire
from flopwatch.encoding import encode
from flopwatch_deploy.simulation.batches import Simulator, Span
from flopwatch_deploy.simulation.cluster import DAY, HOUR, build

LIVE_SECONDS = 10.0
RECENT_SECONDS = 2 * HOUR
RECENT_CHUNK_SECONDS = 600.0
HISTORY_INTERVAL_SECONDS = 900.0
CONNECTIONS = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """What to simulate, and where to send it."""

    host: str
    port: int
    gpus: int
    days: int
    seed: int
    now_seconds: float
    token: str | None = None


class Sender:
    """One kept connection to the ingest endpoint; waits when the collector says so."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._connection: http.client.HTTPConnection | None = None

    def send(self, batch: wire.Batch) -> None:
        """Deliver one batch.

        Raises:
            ConnectionError: the collector refused it, or stayed away for a minute.
        """
        body = gzip.compress(encode(batch), 1)
        deadline = time.monotonic() + 60.0
        while time.monotonic() < deadline:
            status, wait = self._post(body)
            if status == 200:
                return
            if status in (0, 429, 503):
                time.sleep(wait)
                continue
            raise ConnectionError(f"the collector answered {status} to a simulated batch of {batch.node}")
        raise ConnectionError("the collector did not take a simulated batch for 60 s")

    def _post(self, body: bytes) -> tuple[int, float]:
        """Status of one try, 0 without an answer, and how long to wait before the next."""
        headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
        headers[wire.SENT_AT_HEADER] = repr(time.time())
        if self._options.token:
            headers["Authorization"] = f"Bearer {self._options.token}"
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection(
                    self._options.host, self._options.port, timeout=30
                )
            self._connection.request("POST", "/api/v1/ingest", body, headers)
            answer = self._connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            self._connection = None
            return 0, 0.5
        return answer.status, float(answer.headers.get("Retry-After") or 0.5)


def history_spans(options: Options, nodes: int) -> Iterator[tuple[int, float, float, float, str]]:
    """(node, start, end, interval, spool) of all that lies before the live data, newest first."""
    now = options.now_seconds
    # A whole number of history's intervals, so that its newest sample lies where the recent data begins.
    recent = (now - RECENT_SECONDS) // HISTORY_INTERVAL_SECONDS * HISTORY_INTERVAL_SECONDS
    for end in _steps_back(now, recent, RECENT_CHUNK_SECONDS):
        for node in range(nodes):
            yield node, max(recent, end - RECENT_CHUNK_SECONDS), end, LIVE_SECONDS, "recent"
    first = (now // DAY - options.days + 1) * DAY
    for end in _day_ends(recent, first):
        for node in range(nodes):
            yield node, max(first, (end - 1.0) // DAY * DAY), end, HISTORY_INTERVAL_SECONDS, "history"


def _steps_back(end: float, start: float, step: float) -> Iterator[float]:
    while end > start:
        yield end
        end -= step


def _day_ends(end: float, start: float) -> Iterator[float]:
    while end > start:
        yield end
        end = (end - 1.0) // DAY * DAY


class Senders:
    """Many agents' connections: batches go out side by side, as those of real nodes do."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._own = threading.local()
        self._pool = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="node")
        self._under_way: list[Future[None]] = []

    def send(self, batch: wire.Batch) -> None:
        """Hand over one batch; waits when many are under way.

        Raises:
            ConnectionError: an earlier batch could not be delivered.
        """
        self._under_way.append(self._pool.submit(self._send, batch))
        if len(self._under_way) > 4 * CONNECTIONS:
            self._under_way.pop(0).result()

    def settle(self) -> None:
        """Wait until every batch is delivered, so that those of a node arrive in order.

        Raises:
            ConnectionError: one could not be delivered.
        """
        while self._under_way:
            self._under_way.pop(0).result()

    def _send(self, batch: wire.Batch) -> None:
        if not hasattr(self._own, "sender"):
            self._own.sender = Sender(self._options)
        self._own.sender.send(batch)


class Feed:
    """Sends live batches when they are due, and history in between."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._simulator = Simulator(
            build(seed=options.seed, gpus=options.gpus, days=options.days, now_seconds=options.now_seconds)
        )
        self._senders = Senders(options)
        self._sequences: dict[tuple[str, int], int] = {}
        self._live_until = options.now_seconds

    def run(self) -> None:
        """Until the process is ended.

        Raises:
            ConnectionError: the collector stays away.
        """
        nodes = self._simulator.cluster.nodes
        history = list(history_spans(self._options, nodes))
        self._live(self._options.now_seconds)
        for done, (node, start, end, interval, spool) in enumerate(history):
            self._send(node, (start, end), interval, spool)
            if done % nodes == nodes - 1:
                self._senders.settle()
                _say(history_ratio=(done + 1) / len(history))
            self._catch_up()
        while True:
            time.sleep(max(0.05, self._live_until + LIVE_SECONDS - time.time()))
            self._catch_up()

    def _catch_up(self) -> None:
        """Send the live ticks that are due; after a pause of the machine the missed ones too."""
        while time.time() >= self._live_until + LIVE_SECONDS:
            self._live(self._live_until + LIVE_SECONDS)

    def _live(self, until: float) -> None:
        self._senders.settle()
        for node in range(self._simulator.cluster.nodes):
            self._send(node, (until - LIVE_SECONDS, until), LIVE_SECONDS, "live")
        self._senders.settle()
        self._live_until = until

    def _send(self, node: int, between: tuple[float, float], interval: float, spool: str) -> None:
        sequence = self._sequences.get((spool, node), 0)
        span = Span(
            node=node,
            start_seconds=between[0],
            end_seconds=between[1],
            interval_seconds=interval,
            spool=f"{spool}-{self._options.seed}-{int(self._options.now_seconds)}",
            sequence=sequence,
        )
        batch = self._simulator.batch(span)
        if batch is not None:
            self._sequences[(spool, node)] = sequence + 1
            self._senders.send(batch)


def _say(**values: float) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def main(argv: list[str] | None = None) -> int:
    """Feed a collector until ended; 1 when it no longer answers."""
    parser = argparse.ArgumentParser(prog="feed")
    for name, kind in (
        ("host", str),
        ("port", int),
        ("gpus", int),
        ("days", int),
        ("seed", int),
        ("now", float),
    ):
        parser.add_argument(f"--{name}", type=kind, required=True)
    asked = parser.parse_args(argv)
    options = Options(
        host=asked.host,
        port=asked.port,
        gpus=asked.gpus,
        days=asked.days,
        seed=asked.seed,
        now_seconds=asked.now,
    )
    try:
        Feed(options).run()
    except ConnectionError as error:
        sys.stderr.write(f"flopwatch demo: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
