"""The agent keeps its connection to the collector, and loses nothing when the collector does not."""

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.integration.agent.agent_process import eventually

from flopwatch_agent.sinks.push import Pusher, Target
from flopwatch_agent.spool import Spool


class Collector(ThreadingHTTPServer):
    """Speaks HTTP/1.1; notes by which connection each batch came."""

    daemon_threads = True

    def __init__(self, *, hang_up: bool = False, status: int = 200, answer: bytes = b"{}") -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.hang_up, self.status, self.answer = hang_up, status, answer
        self.came: list[tuple[int, int]] = []
        """(port of the connection, sequence)."""


class Handler(BaseHTTPRequestHandler):
    server: Collector
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.came.append((self.client_address[1], json.loads(gzip.decompress(body))["sequence"]))
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.answer)))
        self.end_headers()
        self.wfile.write(self.server.answer)
        # Without a word in the answer, as a collector does that restarts or finds the connection idle.
        self.close_connection = self.server.hang_up

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(collector: Collector) -> Iterator[Collector]:
    thread = threading.Thread(target=collector.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield collector
    finally:
        collector.shutdown()
        thread.join()
        collector.server_close()


@contextmanager
def pushing(collector: Collector, folder: Path, batches: int) -> Iterator[Pusher]:
    spool = Spool(folder / "spool", 1 << 20)
    for number in range(batches):
        spool.write(number, b'{"sequence":%d}' % number)
    pusher = Pusher(Target(url=f"http://127.0.0.1:{collector.server_port}", bearer=lambda: None), spool)
    pusher.start()
    try:
        yield pusher
    finally:
        pusher.stop(5.0)


def test_batches_go_over_one_connection(tmp_path: Path) -> None:
    with serving(Collector()) as collector, pushing(collector, tmp_path, 5) as pusher:
        eventually(lambda: pusher.state.sent == 5)

    assert [sequence for _, sequence in collector.came] == [0, 1, 2, 3, 4]
    assert len({port for port, _ in collector.came}) == 1


def test_a_connection_that_the_collector_closed_is_made_anew_without_a_failed_attempt(tmp_path: Path) -> None:
    with serving(Collector(hang_up=True)) as collector, pushing(collector, tmp_path, 5) as pusher:
        eventually(lambda: pusher.state.sent == 5)
        failed = pusher.state.failed_attempts

    assert sorted({sequence for _, sequence in collector.came}) == [0, 1, 2, 3, 4]
    assert len({port for port, _ in collector.came}) == 5
    assert failed == 0


@pytest.mark.parametrize("length", [10, 100_000], ids=["short", "longer than is read"])
def test_after_a_refusal_the_next_batch_gets_its_own_answer(tmp_path: Path, length: int) -> None:
    refusing = Collector(status=422, answer=b"x" * length)
    with serving(refusing) as collector, pushing(collector, tmp_path, 3) as pusher:
        eventually(lambda: pusher.state.rejected == 3)

    assert [sequence for _, sequence in collector.came] == [0, 1, 2]
    assert len({port for port, _ in collector.came}) == (1 if length == 10 else 3)
