"""A receiver of remote write that answers as a test wants and keeps what came."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.unit.collector.prometheus.wire_format import Written, read_request


@dataclass(frozen=True)
class Request:
    headers: Mapping[str, str]
    body: bytes
    status: int


@dataclass
class Receiver:
    """Answers 200, or first what is in ``answers``."""

    answers: list[int] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    port: int = 0

    def __post_init__(self) -> None:
        self._server: ThreadingHTTPServer | None = None
        self.start(0)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api/v1/write"

    def start(self, port: int) -> None:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = receiver.answers.pop(0) if receiver.answers else 200
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.requests.append(Request(headers, body, status))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        serve = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        serve.start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def samples(self, status: int) -> list[Written]:
        """Samples of the requests that were answered so, in the order they came."""
        return [
            each
            for request in self.requests
            if request.status == status
            for each in read_request(request.body)
        ]
