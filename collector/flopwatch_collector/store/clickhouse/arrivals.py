"""Which batches have arrived, and which inserts count: decided in the control database, once, for all collectors.

An insert into several tables is a *flush* with a number that each of its rows carries. It counts from the moment
it is committed here; until then, and for ever if it is abandoned, every question leaves its rows out. So a process
that dies between two tables leaves nothing that is seen, and no batch is lost or counted twice.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from flopwatch_collector.model import BatchId
from flopwatch_collector.store.sequences import Sequences
from flopwatch_collector.store.transactions import Statements, Transactions

AREA = 2
SCHEMA = (
    """CREATE TABLE IF NOT EXISTS flopwatch_spool (node TEXT NOT NULL, spool TEXT NOT NULL, runs TEXT NOT NULL,
  seen DOUBLE PRECISION NOT NULL, PRIMARY KEY (node, spool))""",
    """CREATE TABLE IF NOT EXISTS flopwatch_flush (id BIGINT PRIMARY KEY, state TEXT NOT NULL, owner TEXT NOT NULL,
  since DOUBLE PRECISION NOT NULL, batches TEXT NOT NULL)""",
    "CREATE TABLE IF NOT EXISTS flopwatch_number (name TEXT PRIMARY KEY, value BIGINT NOT NULL)",
)
TAKE_OVER_SECONDS = 60.0
"""A flush that another collector began so long ago and neither committed nor abandoned may be set aside."""
CLEAN_SECONDS = 3600.0
"""Rows of an abandoned flush are removed after so long: by then no request of its collector is still under way."""
Key = tuple[str, str]
Runs = list[list[int]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Begun:
    """What a flush may insert."""

    flush: int | None
    """None where nothing is fresh."""
    fresh: frozenset[BatchId]
    repeated: frozenset[BatchId]
    """Counted already."""
    elsewhere: frozenset[BatchId]
    """Another collector is inserting them at this moment."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """The flushes whose rows count now: up to ``newest``, without the hidden ones."""

    newest: int
    begun: tuple[int, ...] = ()
    abandoned: tuple[int, ...] = ()

    @property
    def hidden(self) -> tuple[int, ...]:
        """Flushes whose rows are left out."""
        return tuple(sorted((*self.begun, *self.abandoned)))

    @property
    def condition(self) -> str:
        """As an SQL condition."""
        if not self.hidden:
            return f"flush <= {self.newest}"
        return f"flush <= {self.newest} AND flush NOT IN ({', '.join(map(str, self.hidden))})"

    @property
    def settled(self) -> int:
        """All flushes up to this one are decided for good."""
        return min(self.begun, default=self.newest + 1) - 1


class Arrivals:
    """The record of one collector's or of several collectors' arrivals. Safe for threads.

    Raises:
        Unavailable: the control database cannot be reached.
    """

    def __init__(self, database: Transactions, owner: str) -> None:
        self._database = database
        self._owner = owner
        with database.writing() as statements:
            for statement in SCHEMA:
                statements.run(statement)
            if not database.shared:
                _set_aside(statements, [row[0] for row in _open(statements)], database.now())

    @property
    def shared(self) -> bool:
        """Whether other collectors write too."""
        return self._database.shared

    def begin(self, batches: Sequence[BatchId]) -> Begun:
        """A new flush for those of the batches that neither count nor are being inserted by another collector."""
        with self._database.writing() as statements:
            known = _sequences(statements, {(batch.node, batch.spool) for batch in batches})
            busy = self._busy(statements, frozenset(batches))
            repeated = frozenset(batch for batch in batches if batch in known)
            elsewhere = frozenset(batch for batch in batches if batch in busy) - repeated
            fresh = frozenset(batches) - repeated - elsewhere
            flush = self._opened(statements, fresh) if fresh else None
        return Begun(flush=flush, fresh=fresh, repeated=repeated, elsewhere=elsewhere)

    def _busy(self, statements: Statements, wanted: frozenset[BatchId]) -> frozenset[BatchId]:
        """Batches that are being inserted; flushes of ours or of a collector that is gone are set aside."""
        now = self._database.now()
        busy: set[BatchId] = set()
        stale = []
        for flush, owner, since, text in _open(statements):
            theirs = frozenset(BatchId(node=n, spool=s, sequence=q) for n, s, q in json.loads(text))
            if not theirs & wanted:
                continue
            if owner == self._owner or now - since > TAKE_OVER_SECONDS:
                stale.append(flush)
            else:
                busy |= theirs
        _set_aside(statements, stale, now)
        return frozenset(busy)

    def _opened(self, statements: Statements, batches: Iterable[BatchId]) -> int:
        flush = _next(statements, "flush")
        text = json.dumps([[batch.node, batch.spool, batch.sequence] for batch in batches])
        statements.run(
            "INSERT INTO flopwatch_flush (id, state, owner, since, batches) VALUES (?, 'begun', ?, ?, ?)",
            (flush, self._owner, self._database.now(), text),
        )
        return flush

    def commit(self, flush: int) -> bool:
        """Have the flush count from now on; False when it was set aside before. May be repeated after any doubt."""
        with self._database.writing() as statements:
            found = statements.ask("SELECT state, batches FROM flopwatch_flush WHERE id = ?", (flush,))
            if not found:
                return True
            state, text = found[0]
            if state != "begun":
                return False
            batches = [BatchId(node=n, spool=s, sequence=q) for n, s, q in json.loads(text)]
            _remember(statements, batches, self._database.now())
            statements.run("DELETE FROM flopwatch_flush WHERE id = ?", (flush,))
            return True

    def abandon(self, flush: int) -> None:
        """Have the flush never count."""
        with self._database.writing() as statements:
            _set_aside(statements, [flush], self._database.now())

    def snapshot(self) -> Snapshot:
        """Which flushes count now."""
        with self._database.reading() as statements:
            rows = statements.ask(
                "SELECT 'newest', value FROM flopwatch_number WHERE name = 'flush' "
                "UNION ALL SELECT state, id FROM flopwatch_flush"
            )
        known: dict[str, list[int]] = {"newest": [], "begun": [], "abandoned": []}
        for state, value in rows:
            known[state].append(value)
        return Snapshot(
            newest=max(known["newest"], default=0),
            begun=tuple(known["begun"]),
            abandoned=tuple(known["abandoned"]),
        )

    def next_number(self, name: str) -> int:
        """A number greater than all given under that name before, to any collector."""
        with self._database.writing() as statements:
            return _next(statements, name)

    def take_over(self, spools: Iterable[tuple[str, str, Runs]], now: float) -> None:
        """Know batches that were counted by another store, as runs of sequences."""
        with self._database.writing() as statements:
            for node, spool, runs in spools:
                known = _sequences(statements, {(node, spool)})
                for first, last in runs:
                    known.add_run(node, spool, first, last)
                _save(statements, known, {(node, spool)}, now)

    def to_clean(self, older_than_seconds: float = CLEAN_SECONDS) -> list[int]:
        """Abandoned flushes whose rows may be removed; begun ones of collectors that are long gone are among them."""
        now = self._database.now()
        with self._database.writing() as statements:
            lost = [flush for flush, _, since, _ in _open(statements) if now - since > CLEAN_SECONDS]
            _set_aside(statements, lost, now)
            rows = statements.ask(
                "SELECT id FROM flopwatch_flush WHERE state = 'abandoned' AND since <= ? ORDER BY id",
                (now - older_than_seconds,),
            )
        return [row[0] for row in rows]

    def cleaned(self, flushes: Iterable[int]) -> None:
        """The rows of these are gone."""
        with self._database.writing() as statements:
            statements.run_many(
                "DELETE FROM flopwatch_flush WHERE id = ? AND state = 'abandoned'", [(f,) for f in flushes]
            )

    def forget(self, before: float) -> None:
        """Forget spools of which nothing has come since."""
        with self._database.writing() as statements:
            statements.run("DELETE FROM flopwatch_spool WHERE seen < ?", (before,))

    def close(self) -> None:
        """Let the database go."""
        self._database.close()


def _open(statements: Statements) -> list[tuple[int, str, float, str]]:
    rows = statements.ask("SELECT id, owner, since, batches FROM flopwatch_flush WHERE state = 'begun'")
    return [(row[0], row[1], row[2], row[3]) for row in rows]


def _set_aside(statements: Statements, flushes: list[int], now: float) -> None:
    if flushes:
        statements.run_many(
            "UPDATE flopwatch_flush SET state = 'abandoned', since = ?, batches = '[]' "
            "WHERE id = ? AND state = 'begun'",
            [(now, flush) for flush in flushes],
        )


def _next(statements: Statements, name: str) -> int:
    statements.run(
        "INSERT INTO flopwatch_number VALUES (?, 1) "
        "ON CONFLICT (name) DO UPDATE SET value = flopwatch_number.value + 1",
        (name,),
    )
    return int(statements.ask("SELECT value FROM flopwatch_number WHERE name = ?", (name,))[0][0])


def _sequences(statements: Statements, keys: set[Key]) -> Sequences:
    known = Sequences()
    ordered = sorted(keys)
    for at in range(0, len(ordered), 500):
        part = ordered[at : at + 500]
        marks = " OR ".join("(node = ? AND spool = ?)" for _ in part)
        values = [text for key in part for text in key]
        for node, spool, runs in statements.ask(
            f"SELECT node, spool, runs FROM flopwatch_spool WHERE {marks}", values
        ):
            for first, last in json.loads(runs):
                known.add_run(node, spool, first, last)
    return known


def _remember(statements: Statements, batches: Iterable[BatchId], now: float) -> None:
    batches = list(batches)
    keys = {(batch.node, batch.spool) for batch in batches}
    known = _sequences(statements, keys)
    for batch in batches:
        known.add(batch)
    _save(statements, known, keys, now)


def _save(statements: Statements, known: Sequences, keys: Iterable[Key], now: float) -> None:
    rows = [(node, spool, json.dumps(known.runs(node, spool)), now) for node, spool in keys]
    statements.run_many(
        "INSERT INTO flopwatch_spool VALUES (?, ?, ?, ?) "
        "ON CONFLICT (node, spool) DO UPDATE SET runs = excluded.runs, seen = excluded.seen",
        rows,
    )
