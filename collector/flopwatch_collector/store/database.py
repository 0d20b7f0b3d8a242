"""The DuckDB instance: its settings, the hot files attached to it, a small pool of cursors, reopening."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from flopwatch_collector.store.deadlines import Deadlines

T = TypeVar("T")
Cursor = Any
"""DuckDB's package has no types."""

READERS = 4
STORAGE_VERSION = "v1.5.0"
"""New files are made so that every DuckDB that is allowed can open them: one may go back to an older one."""
ATTEMPTS = 4


class Database:
    """One in-memory instance over attached files; dead instances are replaced by :meth:`reopen`."""

    def __init__(self, spill: Path, memory_limit: str, statement_seconds: float) -> None:
        self._config = {
            "memory_limit": memory_limit,
            "threads": min(4, os.cpu_count() or 1),
            "checkpoint_threshold": "64MB",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "temp_directory": str(spill),
            "preserve_insertion_order": "false",
        }
        self._attached: dict[str, Path] = {}
        self._condition = threading.Condition()
        self._reopening = False
        self._busy: set[Cursor] = set()
        self._idle: dict[bool, list[Cursor]] = {False: [], True: []}
        """By whether their statements are taken as they are."""
        self._slots = threading.BoundedSemaphore(READERS)
        self._deadlines = Deadlines(statement_seconds)
        self.reopened = 0
        self.reviving = threading.Lock()
        """Held by the one thread that finds out whether the instance is dead."""
        self._open()

    def _open(self) -> None:
        self._connection = duckdb.connect(":memory:", config=self._config)
        self._connection.execute("SET GLOBAL TimeZone = 'UTC'")
        self._connection.execute("SET GLOBAL parquet_metadata_cache = true")
        for alias, path in self._attached.items():
            self._attach(alias, path)

    def _attach(self, alias: str, path: Path) -> None:
        version = "" if path.exists() else f" (STORAGE_VERSION {literal(STORAGE_VERSION)})"
        with contextlib.closing(self._connection.cursor()) as cursor:
            cursor.execute(f"ATTACH {literal(path)} AS {alias}{version}")

    def attach(self, alias: str, path: Path) -> None:
        """Open a file under a name, replaying its WAL; a file that is not there is made.

        Raises:
            duckdb.Error: it cannot be opened.
        """
        with self._condition:
            self._attach(alias, path)
            self._attached[alias] = path

    def detach(self, alias: str) -> None:
        """Close a file, after writing its WAL into it where the disk has room for that.

        Raises:
            duckdb.Error: it could not be closed.
        """
        with self._condition, contextlib.closing(self._connection.cursor()) as cursor:
            try:
                cursor.execute(f"DETACH {alias}")
            except duckdb.Error:
                attached = cursor.execute("SELECT database_name FROM duckdb_databases()").fetchall()
                if (alias,) in attached:
                    raise
            self._attached.pop(alias, None)

    @contextlib.contextmanager
    def reader(self) -> Iterator[Cursor]:
        """A cursor of the pool for one question; waits while all are used.

        Raises:
            TooSlow: it got none, or did not answer in time.
        """
        if not self._slots.acquire(timeout=self._deadlines.seconds):
            raise self._deadlines.exceeded()
        try:
            with self.cursor() as cursor, self._deadlines.kept(cursor):
                yield cursor
        finally:
            self._slots.release()

    @contextlib.contextmanager
    def cursor(self, *, literally: bool = False) -> Iterator[Cursor]:
        """A cursor outside the pool's bound, for the writer and for upkeep.

        ``literally``: its statements are not optimised, which costs a small insert a seventh of its time.
        """
        cursor = self._borrow(literally=literally)
        try:
            yield cursor
        finally:
            self._give_back(cursor, literally=literally)

    def _borrow(self, *, literally: bool) -> Cursor:
        with self._condition:
            self._condition.wait_for(lambda: not self._reopening)
            idle = self._idle[literally]
            cursor = idle.pop() if idle else self._connection.cursor()
            if not idle and literally:
                cursor.execute("PRAGMA disable_optimizer")
            self._busy.add(cursor)
            return cursor

    def _give_back(self, cursor: Cursor, *, literally: bool) -> None:
        with self._condition:
            self._busy.discard(cursor)
            if self._reopening:
                cursor.close()
            else:
                self._idle[literally].append(cursor)
            self._condition.notify_all()

    def reopen(self) -> None:
        """Replace a dead instance; statements that run are interrupted.

        Raises:
            duckdb.Error: a file cannot be opened again.
        """
        with self._condition:
            self._reopening = True
            self.reopened += 1
            try:
                self._let_go()
                self._open()
            finally:
                self._reopening = False
                self._condition.notify_all()

    def answer(self, question: Callable[[], T]) -> T:
        """The question's answer; asked again when the instance was replaced under it.

        Raises:
            duckdb.Error: it cannot be answered.
        """
        for _ in range(ATTEMPTS - 1):
            opened = self.reopened
            try:
                return question()
            except duckdb.Error:
                if self.reopened == opened:
                    raise
        return question()

    def close(self) -> None:
        """Close every file; statements that run are interrupted."""
        with self._condition:
            self._reopening = True
            self._let_go()
        self._deadlines.close()

    def _let_go(self) -> None:
        for cursor in self._busy:
            cursor.interrupt()
        self._condition.wait_for(lambda: not self._busy)
        for idle in self._idle.values():
            for cursor in idle:
                cursor.close()
            idle.clear()
        self._connection.close()


def literal(value: object) -> str:
    """A path or text as an SQL string."""
    return "'" + str(value).replace("'", "''") + "'"
