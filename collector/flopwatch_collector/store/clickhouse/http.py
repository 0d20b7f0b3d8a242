"""The one door to ClickHouse: statements and blocks over HTTP, foreign errors turned into ours."""

import http.client
import re
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from flopwatch_collector.model import Columns
from flopwatch_collector.store.clickhouse import native
from flopwatch_collector.store.port import Overloaded, TooSlow, Unavailable

ATTEMPTS = 4
FIRST_PAUSE_SECONDS, PAUSES_GROW = 0.05, 6.0
"""The first pause is short: the server may only have closed a connection that was long idle."""
WORK_SECONDS = 600.0
"""How long a statement may take that changes tables or reads all of them."""
GRACE_SECONDS = 5.0
"""So much longer than the server's own limit an answer is waited for."""
RETRY_AFTER_SECONDS = 10.0
_BUSY = frozenset({202, 241, 252})
"""Too many queries at once, memory limit, too many parts: the server is there and has too much to do."""
_SLOW = frozenset({159, 160})
"""Time limit exceeded, estimated to be exceeded."""
_PASSING = frozenset({3, 164, 209, 210, 225, 236, 242, 279, 285, 286, 319, 999})
"""Network, Keeper and replica faults, a server that is stopping: another try may do."""
_CODE = re.compile(r"Code: (\d+)")


class StatementFailed(Exception):
    """The server refused a statement: a fault of ours or of the set-up, which no other try mends."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"ClickHouse refused a statement (code {code}): {text}")
        self.code = code


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """Where ClickHouse is and who asks. The password is in no ``repr`` and no message."""

    url: str
    database: str = "flopwatch"
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: Path | None = None
    timeout_seconds: float = 30.0


class Client:
    """Connections kept alive, one for each request under way; any thread may ask."""

    def __init__(self, address: Address, pause: Callable[[float], object] = time.sleep) -> None:
        self._address = address
        self._pause = pause
        self._parts = urllib.parse.urlsplit(address.url)
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._closed = False
        self._tls = (
            ssl.create_default_context(cafile=address.ca_file) if self._parts.scheme == "https" else None
        )

    @property
    def database(self) -> str:
        """The database all tables are in."""
        return self._address.database

    def ask(self, sql: str, seconds: float | None = None) -> Columns:
        """The answer of a question.

        Raises:
            Unavailable: the server cannot be reached, or is not well.
            TooSlow: it took longer than ``seconds``.
            StatementFailed: the server does not understand it.
        """
        limits = {} if seconds is None else {"max_execution_time": f"{seconds:g}"}
        settings = {
            "default_format": "Native",
            "low_cardinality_allow_in_native_format": "0",
            "distributed_product_mode": "global",
            "wait_end_of_query": "1",  # an error in the middle of an answer would be in its bytes
            **limits,
        }
        patience = WORK_SECONDS if seconds is None else seconds + GRACE_SECONDS
        try:
            return native.decode(self._send(sql.encode(), settings, patience, again=False))
        except Overloaded as busy:
            raise Unavailable(f"ClickHouse at {self.where} has too much to do") from busy
        except ValueError as problem:
            raise Unavailable(f"ClickHouse at {self.where}: {problem}") from problem

    def run(self, sql: str, settings: Mapping[str, str] | None = None) -> None:
        """Run a statement that has no answer; it must be one that may be run again."""
        self._send(sql.encode(), {"wait_end_of_query": "1", **(settings or {})}, WORK_SECONDS)

    def insert(self, table: str, columns: Columns, types: Mapping[str, str], token: str) -> None:
        """Insert one block; the same token again, after any doubt, inserts nothing more.

        Raises:
            Overloaded: the server has too much to do.
            Unavailable: it cannot be reached, or is not well.
            StatementFailed: it refuses the block.
        """
        names = ", ".join(f"`{name}`" for name in columns)
        settings = {
            "query": f"INSERT INTO {table} ({names}) FORMAT Native",
            "insert_deduplicate": "1",
            "insert_deduplication_token": token,
            "async_insert": "0",
            "distributed_foreground_insert": "1",
        }
        self._send(native.encode(columns, types), settings, self._address.timeout_seconds)

    def _send(
        self, body: bytes, settings: Mapping[str, str], patience: float, *, again: bool = True
    ) -> bytes:
        """The server's answer, after as many tries as are sensible; ``again``: also after one that took too long."""
        pause = FIRST_PAUSE_SECONDS
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._once(body, settings, patience)
            except TimeoutError as problem:
                self._drop_idle()
                if not again:
                    raise TooSlow(f"ClickHouse at {self.where} did not answer in {patience:g} s") from problem
                failure: Exception = Unavailable(
                    f"ClickHouse at {self.where} did not answer in {patience:g} s"
                )
            except (OSError, http.client.HTTPException) as problem:
                self._drop_idle()
                failure = Unavailable(f"ClickHouse at {self.where}: {problem or type(problem).__name__}")
            except (_Passing, Overloaded) as problem:
                failure = problem.failure if isinstance(problem, _Passing) else problem
            if attempt == ATTEMPTS:
                break
            self._pause(pause)
            pause *= PAUSES_GROW
        raise failure

    def _once(self, body: bytes, settings: Mapping[str, str], patience: float) -> bytes:
        path = f"{self._parts.path or '/'}?{urllib.parse.urlencode({'database': self.database, **settings})}"
        connection = self._taken()
        try:
            if connection.sock is None:
                connection.connect()
            connection.sock.settimeout(patience)
            connection.request("POST", path, body, self._headers())
            answer = connection.getresponse()
            content = answer.read()
        except BaseException:
            connection.close()
            raise
        self._given_back(connection)
        if answer.status != 200 or answer.getheader("X-ClickHouse-Exception-Code"):
            raise self._refusal(answer.status, content)
        return content

    def _taken(self) -> http.client.HTTPConnection:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        host, timeout = self._parts.hostname or "", self._address.timeout_seconds
        if self._tls is not None:
            return http.client.HTTPSConnection(
                host, self._parts.port or 8443, timeout=timeout, context=self._tls
            )
        return http.client.HTTPConnection(host, self._parts.port or 8123, timeout=timeout)

    def _given_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def _drop_idle(self) -> None:
        """Let go what the server may have closed as well."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _headers(self) -> dict[str, str]:
        headers = {"User-Agent": "flopwatch", "Content-Type": "application/octet-stream"}
        if self._address.user is not None:
            headers["X-ClickHouse-User"] = self._address.user
        if self._address.password is not None:
            headers["X-ClickHouse-Key"] = self._address.password
        return headers

    def _refusal(self, status: int, content: bytes) -> Exception:
        text = content[:2_000].decode("utf-8", "replace").strip()
        found = _CODE.search(text)
        code = int(found.group(1)) if found else 0
        if status in {401, 403} or code in {192, 193, 194, 516}:
            return Unavailable(
                f"ClickHouse at {self.where} refuses the user {self._address.user or 'default'!r}"
            )
        if code in _SLOW:
            return TooSlow(f"ClickHouse stopped the question: {text}")
        if code in _BUSY:
            return Overloaded(RETRY_AFTER_SECONDS)
        if code in _PASSING or (not code and status >= 500):
            return _Passing(Unavailable(f"ClickHouse at {self.where} answered {status}: {text}"))
        return StatementFailed(code, text)

    @property
    def where(self) -> str:
        """Host and port, for messages."""
        return f"{self._parts.hostname}:{self._parts.port or (8123 if self._tls is None else 8443)}"

    def close(self) -> None:
        """Let the connections go."""
        with self._lock:
            self._closed = True
        self._drop_idle()


class _Passing(Exception):
    """A fault that another try may mend."""

    def __init__(self, failure: Unavailable) -> None:
        super().__init__(str(failure))
        self.failure = failure


def literal(text: str) -> str:
    """A text as SQL wants it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def reachable_host(url: str) -> bool:
    """Whether the address names a host over HTTP."""
    parts = urllib.parse.urlsplit(url)
    return parts.scheme in {"http", "https"} and bool(parts.hostname)
