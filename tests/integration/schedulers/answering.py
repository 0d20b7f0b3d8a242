"""An HTTP server on loopback that answers as a test says, and keeps what it was asked."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Answer = tuple[int, Any]
"""(status, JSON object, or a list of objects that are sent a line each)."""


@dataclass(kw_only=True)
class Api:
    """What is answered by path, and what was asked."""

    answers: dict[str, Any] = field(default_factory=dict)
    """By path: an object, ``(status, object)``, or a function of the query."""
    asked: list[tuple[str, dict[str, str], dict[str, str]]] = field(default_factory=list)
    """(path, query, headers)."""
    url: str = ""

    def answer(self, path: str, query: dict[str, str]) -> Answer:
        found = self.answers.get(path, (404, {"message": "not found"}))
        if callable(found):
            found = found(query)
        return found if isinstance(found, tuple) else (200, found)


@contextlib.contextmanager
def answering(answers: dict[str, Any | Callable[[dict[str, str]], Any]]) -> Iterator[Api]:
    """The server, until the test is over."""
    api = Api(answers=answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            api.asked.append((parts.path, query, dict(self.headers.items())))
            status, document = api.answer(parts.path, query)
            lines = document if isinstance(document, list) else [document]
            body = "".join(json.dumps(line) + "\n" for line in lines).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    api.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield api
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
