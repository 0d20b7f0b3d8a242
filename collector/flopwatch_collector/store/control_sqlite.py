"""The control state in SQLite: JSON documents by kind and key."""

import sqlite3
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from flopwatch_collector.store.port import Unavailable

T = TypeVar("T")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (
  kind TEXT NOT NULL, key TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (kind, key)
) WITHOUT ROWID
"""


class SqliteControl:
    """One database file; every save is one durable transaction, from any thread.

    Raises:
        sqlite3.DatabaseError: the file is not a database, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10.0)
        try:
            for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", _SCHEMA):
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

    def _change(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        if not rows:
            return
        try:
            self._commit(statement, rows)
        except sqlite3.OperationalError as problem:
            raise Unavailable(f"the control state cannot be written: {problem}") from problem

    def _commit(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.executemany(statement, rows)
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
