"""The control state in SQLite: JSON documents by kind and key."""

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from flopwatch_collector.store.documents import is_still
from flopwatch_collector.store.port import Unavailable

T = TypeVar("T")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (
  kind TEXT NOT NULL, key TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (kind, key)
) WITHOUT ROWID
"""


_LEASES = (
    "CREATE TABLE IF NOT EXISTS leases (name TEXT PRIMARY KEY, holder TEXT NOT NULL, until REAL NOT NULL)"
)
_TAKE_LEASE = """
INSERT INTO leases VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
WHERE leases.holder = ? OR leases.until <= ?
"""


class SqliteControl:
    """One database file; every save is one durable transaction, from any thread.

    Raises:
        sqlite3.DatabaseError: the file is not a database, or cannot be written.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10.0)
        try:
            for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", _SCHEMA, _LEASES):
                self._connection.execute(statement)
        except sqlite3.Error:
            self._connection.close()
            raise

    def load(self, kind: str, type_: type[T]) -> dict[str, T]:
        """All documents of a kind, by key.

        Raises:
            ValueError: a document does not fit the type; kind and key are named.
        """
        with self._lock:
            rows = self._connection.execute(
                "SELECT key, body FROM documents WHERE kind = ? ORDER BY key", (kind,)
            ).fetchall()
        decoder = msgspec.json.Decoder(type_)
        return {key: _decoded(decoder, kind, key, body) for key, body in rows}

    def save(self, kind: str, documents: Mapping[str, Any]) -> None:
        """Insert or replace documents in one transaction.

        Raises:
            Unavailable: the database cannot be written (a full disk).
        """
        self.save_all({kind: documents})

    def save_all(self, kinds: Mapping[str, Mapping[str, Any]]) -> None:
        """Insert or replace documents of several kinds in one transaction."""
        encode = msgspec.json.Encoder().encode
        rows = [
            (kind, key, encode(document))
            for kind, documents in kinds.items()
            for key, document in documents.items()
        ]
        self._change("INSERT OR REPLACE INTO documents VALUES (?, ?, ?)", rows)

    def delete(self, kind: str, keys: Iterable[str]) -> None:
        """Remove documents; keys that are not there are ignored."""
        self._change("DELETE FROM documents WHERE kind = ? AND key = ?", [(kind, key) for key in keys])

    def replace(self, kind: str, key: str, expected: Any | None, document: Any) -> bool:
        """Save a document if it is still the expected one (None: if there is none); whether it was saved.

        Raises:
            Unavailable: the database cannot be written.
        """
        body = msgspec.json.encode(document)
        try:
            with self._lock, self._transaction():
                found = self._connection.execute(
                    "SELECT body FROM documents WHERE kind = ? AND key = ?", (kind, key)
                ).fetchone()
                if not is_still(None if found is None else found[0], expected):
                    return False
                self._connection.execute(
                    "INSERT OR REPLACE INTO documents VALUES (?, ?, ?)", (kind, key, body)
                )
                return True
        except sqlite3.OperationalError as problem:
            raise Unavailable(f"the control state cannot be written: {problem}") from problem

    def take_lease(self, name: str, holder: str, seconds: float) -> bool:
        """Become or stay the one holder of a lease until ``seconds`` from now; False while another holds it.

        Raises:
            Unavailable: the database cannot be written.
        """
        now = self._clock()
        return bool(self._changed(_TAKE_LEASE, (name, holder, now + seconds, holder, now)))

    def drop_lease(self, name: str, holder: str) -> None:
        """Let a lease go before its time; nothing happens where another holds it."""
        self._changed("DELETE FROM leases WHERE name = ? AND holder = ?", (name, holder))

    def copy_to(self, path: Path) -> None:
        """A consistent copy of the database as a new file, while it is in use.

        Raises:
            Unavailable: it cannot be written.
        """
        try:
            with self._lock, contextlib.closing(sqlite3.connect(path)) as target:
                self._connection.backup(target)
        except sqlite3.Error as problem:
            raise Unavailable(f"the control state cannot be copied to {path}: {problem}") from problem

    def _changed(self, statement: str, values: tuple[Any, ...]) -> int:
        """Rows that one statement changed."""
        try:
            with self._lock:
                return self._connection.execute(statement, values).rowcount
        except sqlite3.OperationalError as problem:
            raise Unavailable(f"the control state cannot be written: {problem}") from problem

    def _change(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        if not rows:
            return
        try:
            self._commit(statement, rows)
        except sqlite3.OperationalError as problem:
            raise Unavailable(f"the control state cannot be written: {problem}") from problem

    def _commit(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        with self._lock, self._transaction():
            self._connection.executemany(statement, rows)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Let the database go."""
        with self._lock:
            self._connection.close()


def _decoded(decoder: "msgspec.json.Decoder[T]", kind: str, key: str, body: bytes) -> T:
    try:
        return decoder.decode(body)
    except msgspec.DecodeError as problem:
        raise ValueError(f"control state {kind}/{key}: {problem}") from problem
