"""Short transactions of a small database, the same statements in SQLite and PostgreSQL."""

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from flopwatch_collector.store.port import Unavailable

Rows = list[tuple[Any, ...]]


class Statements(Protocol):
    """Statements of one transaction, with ``?`` where a value stands."""

    def ask(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        """Rows of a question."""
        ...

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Run a statement; how many rows it touched."""
        ...

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once a row."""
        ...


class Transactions(Protocol):
    """A database whose transactions follow one another: no two that may write overlap, in any process."""

    @property
    def shared(self) -> bool:
        """Whether several processes may use it at once."""
        ...

    def writing(self) -> "contextlib.AbstractContextManager[Statements]":
        """A transaction, committed at its end unless an error leaves it; alone among those that write.

        Raises:
            Unavailable: the database cannot be reached or written.
        """
        ...

    def reading(self) -> "contextlib.AbstractContextManager[Statements]":
        """Statements that only read; each is consistent by itself."""
        ...

    def now(self) -> float:
        """Epoch seconds by the clock that all its users share."""
        ...

    def close(self) -> None:
        """Let the database go."""
        ...


class _Sqlite:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def ask(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        return self._connection.execute(sql, values).fetchall()

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        return self._connection.execute(sql, values).rowcount

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._connection.executemany(sql, rows)


class SqliteTransactions:
    """One file, one process.

    Raises:
        sqlite3.DatabaseError: the file is not a database, or cannot be written.
    """

    shared = False

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._clock = clock
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10.0)
        try:
            for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL"):
                self._connection.execute(statement)
        except sqlite3.Error:
            self._connection.close()
            raise

    @contextlib.contextmanager
    def writing(self) -> Iterator[Statements]:
        """A durable transaction."""
        with self._lock, _translated():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield _Sqlite(self._connection)
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def reading(self) -> Iterator[Statements]:
        """Statements that only read."""
        with self._lock, _translated():
            yield _Sqlite(self._connection)

    def now(self) -> float:
        """Epoch seconds of this process's clock."""
        return self._clock()

    def close(self) -> None:
        """Let the file go."""
        with self._lock:
            self._connection.close()


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as problem:
        raise Unavailable(f"the control state cannot be used: {problem}") from problem
