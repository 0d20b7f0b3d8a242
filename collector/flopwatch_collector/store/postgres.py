"""The one door to PostgreSQL: transactions that several collectors share."""

import contextlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import psycopg

from flopwatch_collector.store.port import Unavailable
from flopwatch_collector.store.transactions import Rows, Statements

CONNECT_SECONDS = 5
_SESSION = (
    "-c statement_timeout=30000 -c lock_timeout=20000 -c idle_in_transaction_session_timeout=60000 "
    "-c synchronous_commit=on"
)
"""A collector that is stopped in mid-transaction must not stop the others for ever."""
_LOCK = "SELECT pg_advisory_xact_lock(%s, %s)"
_LOCK_CLASS = 0x666C6F70


class _Postgres:
    def __init__(self, connection: "psycopg.Connection[tuple[Any, ...]]") -> None:
        self._connection = connection

    def ask(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        return self._connection.execute(_styled(sql), values).fetchall()

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        return self._connection.execute(_styled(sql), values).rowcount

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_styled(sql), rows)


class PostgresTransactions:
    """A connection, made anew when it is lost; writing transactions of one ``area`` follow one another everywhere.

    A transaction begun within another of the same thread is part of it.
    """

    shared = True

    def __init__(self, url: str, area: int, schema: Sequence[str]) -> None:
        self._url = url
        self._area = area
        self._schema = schema
        self._lock = threading.RLock()
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._depth = 0
        with self.writing() as statements:
            for statement in schema:
                statements.run(statement)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Statements]:
        """A transaction that holds the area's lock until its end.

        Raises:
            Unavailable: the server cannot be reached, or the lock is not given in time.
        """
        with self._lock, self._translated():
            connection = self._connected()
            with connection.transaction():
                if not self._depth:
                    connection.execute(_LOCK, (_LOCK_CLASS, self._area))
                self._depth += 1
                try:
                    yield _Postgres(connection)
                finally:
                    self._depth -= 1

    @contextlib.contextmanager
    def reading(self) -> Iterator[Statements]:
        """Statements that only read.

        Raises:
            Unavailable: the server cannot be reached.
        """
        with self._lock, self._translated():
            yield _Postgres(self._connected())

    def now(self) -> float:
        """Epoch seconds of the server's clock."""
        with self.reading() as statements:
            return float(statements.ask("SELECT extract(epoch FROM clock_timestamp())::float8")[0][0])

    def close(self) -> None:
        """Let the connection go."""
        with self._lock:
            self._drop()

    def _connected(self) -> "psycopg.Connection[tuple[Any, ...]]":
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(
                self._url, autocommit=True, connect_timeout=CONNECT_SECONDS, options=_SESSION
            )
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (psycopg.OperationalError, psycopg.InterfaceError) as problem:
            if not self._depth:
                self._drop()
            raise Unavailable(f"the control state in PostgreSQL: {_told(problem)}") from problem


def _styled(sql: str) -> Any:
    return sql.replace("%", "%%").replace("?", "%s")


def _told(problem: psycopg.Error) -> str:
    """The first line of what the server or the network said: it has no secret in it."""
    return (str(problem).strip().splitlines() or [type(problem).__name__])[0]
