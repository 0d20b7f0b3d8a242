"""Pushes batches over HTTP as agents do, and notes how long each waited for its answer."""

import asyncio
import gzip
from dataclasses import dataclass, field
from typing import cast

INGEST, REMOTE_WRITE = "/api/v1/ingest", "/api/v1/write"


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """Where batches go, and how."""

    host: str
    port: int
    keep_alive: bool
    gzip_level: int
    """0 sends plain JSON."""
    token: str | None = None
    path: str = INGEST

    def request(self, body: bytes, sent_at: float | None) -> bytes:
        """The bytes of one push, with the headers an agent sends."""
        lines = [
            f"POST {self.path} HTTP/1.1",
            f"Content-Length: {len(body)}",
            f"Host: {self.host}:{self.port}",
            "User-Agent: flopwatch-agent",
            "Connection: " + ("keep-alive" if self.keep_alive else "close"),
        ]
        if self.path == REMOTE_WRITE:
            lines += [
                "Content-Type: application/x-protobuf",
                "Content-Encoding: snappy",
                "X-Prometheus-Remote-Write-Version: 0.1.0",
            ]
        else:
            lines.append("Content-Type: application/json")
        if self.gzip_level and self.path == INGEST:
            lines.append("Content-Encoding: gzip")
        if sent_at is not None:
            lines.append(f"Flopwatch-Sent-At: {sent_at!r}")
        if self.token:
            lines.append(f"Authorization: Bearer {self.token}")
        return "\r\n".join([*lines, "", ""]).encode() + body

    def packed(self, body: bytes) -> bytes:
        """The body as it travels."""
        return gzip.compress(body, self.gzip_level, mtime=0) if self.gzip_level else body


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """Status (0 when the connection broke before one came) and body."""

    status: int
    body: bytes = b""
    headers: bytes = b""

    @property
    def duplicate(self) -> bool:
        """Whether the collector had the batch already."""
        return b'"duplicate":true' in self.body

    @property
    def retry_after_seconds(self) -> float:
        """What the collector asks to wait; a second when it does not say."""
        for line in self.headers.lower().split(b"\r\n"):
            if line.startswith(b"retry-after:"):
                return float(line.partition(b":")[2])
        return 1.0


class Connection(asyncio.Protocol):
    """One connection: a request, its answer, the next one."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[Answer] | None = None
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by class

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, rest = self._received.partition(b"\r\n\r\n")
        if not found:
            return
        lines = head.lower().split(b"\r\n")
        sizes = (int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:"))
        length = next(sizes, 0)
        if len(rest) >= length:
            self._received = rest[length:]
            self._settle(Answer(status=int(head[9:12]), body=bytes(rest[:length]), headers=bytes(head)))

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._settle(Answer(status=0))

    @property
    def is_open(self) -> bool:
        """Whether a request can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    def send(self, request: bytes) -> "asyncio.Future[Answer]":
        """Send one request; the future is its answer."""
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._answer

    def close(self) -> None:
        """End the connection."""
        if self._transport is not None:
            self._transport.close()

    def _settle(self, answer: Answer) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)


@dataclass(slots=True)
class Connections:
    """A kept connection a node, or a new one for every push."""

    target: Target
    opened: int = 0
    _kept: dict[int, Connection] = field(default_factory=dict)

    async def push(self, node: int, request: bytes) -> Answer:
        """Send one request of a node; status 0 when nobody answered."""
        try:
            connection = await self._connection(node)
        except OSError:
            return Answer(status=0)
        answer = await connection.send(request)
        if not self.target.keep_alive:
            connection.close()
        return answer

    def close(self) -> None:
        """End every connection."""
        for connection in self._kept.values():
            connection.close()

    async def _connection(self, node: int) -> Connection:
        kept = self._kept.get(node)
        if kept is not None and kept.is_open:
            return kept
        self.opened += 1
        loop = asyncio.get_running_loop()
        _, made = await loop.create_connection(Connection, self.target.host, self.target.port)
        if self.target.keep_alive:
            self._kept[node] = made
        return made
