"""A real receiver of webhooks on loopback, and the real control database."""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


@dataclass
class Received:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class Receiver:
    """Answers with ``statuses`` one after another, then 200; each answer takes ``delay_seconds``."""

    port: int = 0
    received: list[Received] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    delay_seconds: float = 0.0
    location: str | None = None
    changed: threading.Condition = field(default_factory=threading.Condition)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hooks/secret-token"

    @property
    def states(self) -> list[str]:
        return [one.body["status"] for one in self.received]

    def wait_for(self, count: int, timeout_seconds: float = 10.0) -> list[Received]:
        """The requests, once there are at least ``count``."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.received) >= count, timeout_seconds), self.received
            return list(self.received)

    def settle(self, seconds: float = 0.3) -> list[Received]:
        """The requests after a while in which more could have come."""
        time.sleep(seconds)
        return list(self.received)

    def take(self, received: Received) -> int:
        with self.changed:
            self.received.append(received)
            self.changed.notify_all()
            return self.statuses.pop(0) if self.statuses else 200


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    here = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            time.sleep(here.delay_seconds)
            status = here.take(Received(path=self.path, headers=dict(self.headers), body=body))
            self.send_response(status)
            if here.location is not None:
                self.send_header("Location", here.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    here.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield here
    server.shutdown()
    server.server_close()
    thread.join()
