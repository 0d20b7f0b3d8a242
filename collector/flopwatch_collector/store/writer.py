"""The one thread that writes raw rows: group commit, exactly once, a new file every hour."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np

from flopwatch_collector.model import GPU_COLUMNS, Columns
from flopwatch_collector.store import hot, tally
from flopwatch_collector.store.columns import concatenated, microseconds
from flopwatch_collector.store.ground import Ground
from flopwatch_collector.store.inbox import Inbox, Shared, Waiting
from flopwatch_collector.store.latest import Latest
from flopwatch_collector.store.port import Unavailable, WriteResult
from flopwatch_collector.store.sequences import Sequences

HOT_ROWS = 6_000_000
"""An open file is closed early beyond this, so that sorting it stays within the memory limit."""
ROTATE_RETRY_SECONDS = 30.0


@dataclass(kw_only=True, slots=True)
class Written:
    """What the open files hold and what was done so far; the writer's to change, anyone's to read."""

    sequences: Sequences
    latest: Latest
    rows: dict[str, int]
    oldest: dict[str, int]
    """By open file's alias, the earliest time of its GPU samples, in microseconds."""
    commits: int = 0
    last_commit_seconds: float | None = None


class Writer:
    """Commits what waits in the inbox, group by group, into the open file."""

    def __init__(
        self,
        ground: Ground,
        inbox: Inbox,
        written: Written,
        opened: hot.HotFile,
        filled: Callable[[int], None],
    ) -> None:
        self._ground = ground
        self._inbox = inbox
        self._written = written
        self._hot = opened
        self._filled = filled
        self._rotate_not_before = 0.0
        self._thread = threading.Thread(target=self._run, name="flopwatch-store-writer", daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Return when everything that waited is written."""
        self._thread.join()

    def _run(self) -> None:
        group: list[Waiting] = []
        try:
            while group := self._inbox.take():
                self._rotate_if_due()
                self._commit(group)
        finally:
            self._inbox.close()
            while group:
                _refuse(group, "the writer of the store has stopped")
                group = self._inbox.take()

    def rotate(self) -> None:
        """Continue in a new open file; the old one is ready to be closed.

        Raises:
            duckdb.Error: the new file cannot be made.
            OSError: likewise.
        """
        ground, old = self._ground, self._hot
        self._hot = hot.made(ground.database, ground.folder, old.number + 1, ground.hour())
        ground.catalogue.swap(lambda catalogue: catalogue.opened(self._hot.alias))
        self._filled(old.number)

    def rotate_if_filled(self) -> None:
        """The same where the open file has rows, while nothing is submitted.

        Raises:
            duckdb.Error: the new file cannot be made.
            OSError: likewise.
        """
        if self._hot.rows:
            self.rotate()

    def _rotate_if_due(self) -> None:
        due = self._hot.rows > HOT_ROWS or (self._hot.rows and self._hot.hour != self._ground.hour())
        if not due or time.monotonic() < self._rotate_not_before:
            return
        try:
            self.rotate()
        except (duckdb.Error, OSError) as problem:
            self._rotate_not_before = time.monotonic() + ROTATE_RETRY_SECONDS
            self._ground.problems.add(
                f"no new hot file could be opened, the old one is kept in use: {problem}"
            )

    def _commit(self, group: list[Waiting]) -> None:
        fresh, repeated = self._sorted_out(group)
        opened = self._ground.database.reopened
        try:
            rows = self._insert(fresh)
        except duckdb.Error as problem:
            self._after_failure(fresh, problem, opened)
        else:
            self._landed(fresh, rows)
        for waiting in repeated:
            _answer(waiting, self._written.sequences)

    def _sorted_out(self, group: Iterable[Waiting]) -> tuple[list[Waiting], list[Waiting]]:
        """Batches seen for the first time, and those that came before or twice in the group."""
        fresh: list[Waiting] = []
        repeated: list[Waiting] = []
        seen = set()
        for waiting in group:
            if waiting.batch in seen or waiting.batch in self._written.sequences:
                repeated.append(waiting)
            else:
                seen.add(waiting.batch)
                fresh.append(waiting)
        return fresh, repeated

    def _insert(self, fresh: Sequence[Waiting]) -> dict[str, Columns]:
        """The rows of the batches, once they are durable."""
        if not fresh:
            return {}
        rows = _joined(fresh)
        with self._ground.database.cursor(literally=True) as cursor:
            batches = [waiting.batch for waiting in fresh]
            hot.insert(cursor, self._hot.alias, rows, batches, self._ground.clock())
        return rows

    def _landed(self, fresh: Sequence[Waiting], rows: dict[str, Columns]) -> None:
        """The batches are durable: remember them, then say so."""
        if not fresh:
            return
        written = self._written
        for waiting in fresh:
            written.sequences.add(waiting.batch)
        for name, table in rows.items():
            count = len(table["ts"])
            written.rows[name] = written.rows.get(name, 0) + count
            self._hot.rows += count
            if name == "gpu" and count:
                self._note_samples(_as_samples(table))
        written.commits += 1
        written.last_commit_seconds = self._ground.clock()
        self._hot.rows += len(fresh)
        self._hot.batches += len(fresh)
        self._keep_count()
        for waiting in fresh:
            waiting.future.set_result(WriteResult(duplicate=False))

    def _keep_count(self) -> None:
        try:
            tally.note(self._hot.path, self._hot.batches)
        except OSError as problem:
            self._ground.problems.add(f"the number of batches in {self._hot.path} cannot be kept: {problem}")

    def _note_samples(self, samples: Columns) -> None:
        written, alias = self._written, self._hot.alias
        written.latest.update(samples)
        earliest = microseconds(float(samples["ts"].min()))
        written.oldest[alias] = min(written.oldest.get(alias, earliest), earliest)

    def _after_failure(self, fresh: list[Waiting], problem: duckdb.Error, opened: int) -> None:
        """Find out what is durable nevertheless; with the database reopened, try once more."""
        self._ground.problems.add(f"a commit failed: {problem}")
        try:
            reopened = self._ground.revive() or self._ground.database.reopened != opened
            missing = self._missing(fresh)
            if reopened and missing:
                self._insert(missing)
                missing = []
        except duckdb.Error as again:
            self._ground.problems.add(f"a commit failed again: {again}")
            _refuse(fresh, f"the store cannot write: {again}")
            return
        landed = [waiting for waiting in fresh if waiting not in missing]
        self._landed(landed, _joined(landed))
        _refuse(missing, f"the store cannot write: {problem}")

    def _missing(self, fresh: list[Waiting]) -> list[Waiting]:
        with self._ground.database.cursor() as cursor:
            there = hot.written(cursor, self._hot.alias, [waiting.batch for waiting in fresh])
        return [waiting for waiting in fresh if waiting.batch not in there]


def _joined(group: Sequence[Waiting]) -> dict[str, Columns]:
    parts = [waiting.rows for waiting in group if waiting.shared is None]
    together: dict[Shared, list[int]] = {}
    for waiting in group:
        if waiting.shared is not None:
            together.setdefault(waiting.shared, []).append(waiting.position)
    parts += [shared.of(positions) for shared, positions in together.items()]
    names = dict.fromkeys(name for rows in parts for name in rows)
    return {name: concatenated([rows[name] for rows in parts if name in rows]) for name in names}


def _as_samples(table: Columns) -> Columns:
    samples = {name: table[name] for name in GPU_COLUMNS}
    samples["ts"] = table["ts"].view(np.int64) / 1e6
    return samples


def _answer(waiting: Waiting, sequences: Sequences) -> None:
    if waiting.batch in sequences:
        waiting.future.set_result(WriteResult(duplicate=True))
    else:
        waiting.future.set_exception(Unavailable("the batch's first arrival could not be written"))


def _refuse(group: Iterable[Waiting], reason: str) -> None:
    for waiting in group:
        if not waiting.future.done():
            waiting.future.set_exception(Unavailable(reason))
