"""Moves the history of an embedded store to ClickHouse: in pieces, each once, so that an interrupted copy goes on."""

import contextlib
import hashlib
import sqlite3
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from flopwatch_collector.config import CONTROL_FILE
from flopwatch_collector.model import BatchId, Columns, Node
from flopwatch_collector.store import columns
from flopwatch_collector.store.catalogue import Catalogue, overlaps, parquet
from flopwatch_collector.store.clickhouse.arrivals import Arrivals
from flopwatch_collector.store.clickhouse.http import Client
from flopwatch_collector.store.clickhouse.store import ClickHouseStore
from flopwatch_collector.store.clickhouse.tables import name, raw_types
from flopwatch_collector.store.clickhouse.writer import as_inserted
from flopwatch_collector.store.embedded import EmbeddedStore
from flopwatch_collector.store.ground import Ground
from flopwatch_collector.store.layout import RawFile
from flopwatch_collector.store.port import ROLLUP_KINDS, Control, Progress, RollupKind, Unavailable
from flopwatch_collector.store.schema import BATCH, TABLES, Table, quoted

PIECE_SECONDS = 600
BLOCK_ROWS = 100_000
WINDOWS_AT_ONCE = 288


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """Where a history goes."""

    store: ClickHouseStore
    client: Client
    arrivals: Arrivals
    control: Control
    own_control: bool
    """Whether the control state is another than the source's."""
    oldest_seconds: float = 0.0
    """Older raw rows are not copied: the target would drop them at once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Copied:
    """What the source has and what the target has of it now: rows by raw table, windows by kind of rollup."""

    source: dict[str, int]
    target: dict[str, int]
    documents: int
    """Documents of the control state that were copied."""

    @property
    def whole(self) -> bool:
        """Whether nothing of the source is missing in the target."""
        return all(self.target[each] >= count for each, count in self.source.items())


class _Share:
    """Progress of one part of the work, as a share of the whole."""

    def __init__(self, progress: Progress, part: int, parts: int) -> None:
        self._progress = progress
        self._part, self._parts = part, parts

    def __call__(self, doing: str, done_ratio: float) -> None:
        self._progress(doing, (self._part + done_ratio) / self._parts)


def copy(source: EmbeddedStore, folder: Path, target: Target, progress: Progress) -> Copied:
    """Copy everything that is not in the target yet, and count both sides.

    The open hour is closed first: closed hours do not change, so that what was copied of one is all of it.

    Raises:
        ValueError: the target's control state is of another fleet: its numbers mean other nodes.
        Unavailable: the target cannot be reached, or another process copies the same folder.
    """
    source.close_hour()
    documents = _documents(folder, target)
    parts = len(TABLES) + len(ROLLUP_KINDS)
    rows: dict[str, int] = {}
    for at, table in enumerate(TABLES.values()):
        rows[table.name] = _table(source.ground, table, target, _Share(progress, at, parts))
    _arrived(source.ground, target)
    for at, kind in enumerate(ROLLUP_KINDS):
        _windows(source, kind, target, _Share(progress, len(TABLES) + at, parts))
    progress("counted", 1.0)
    windows: dict[str, int] = {kind: len(source.done_windows(kind, 0.0, 1e11)) for kind in ROLLUP_KINDS}
    return Copied(source={**rows, **windows}, target=_counted(target), documents=documents)


def _table(ground: Ground, table: Table, target: Target, progress: Progress) -> int:
    """Copy the pieces of a raw table that are not there; how many rows the source has of it."""
    total = 0
    pieces = _pieces(ground, table, target.oldest_seconds)
    for at, piece in enumerate(pieces):
        progress(f"{table.name} {piece.stretch * PIECE_SECONDS}", at / len(pieces))
        total += piece.rows
        spool = f"{table.name}/{piece.hour}"
        batch = BatchId(node=_copy_name(ground), spool=spool, sequence=piece.stretch)
        begun = target.arrivals.begin([batch])
        if begun.elsewhere:
            raise Unavailable("another process is copying this folder at present")
        if begun.flush is not None:
            _insert(target, table, _rows(ground, table, piece), begun.flush)
    return total


def _copy_name(ground: Ground) -> str:
    """What pieces of this folder are known by; no node can have such a name."""
    return "copy\x1f" + hashlib.sha256(str(ground.folder.root.resolve()).encode()).hexdigest()[:16]


def _insert(target: Target, table: Table, rows: Columns, flush: int) -> None:
    prepared = as_inserted(columns.checked(table, rows), flush)
    types = raw_types(table)
    try:
        for at in range(0, len(rows["ts"]), BLOCK_ROWS):
            block = {each: values[at : at + BLOCK_ROWS] for each, values in prepared.items()}
            target.client.insert(name(table.name), block, types, f"{flush}-{table.name}-{at}")
    except BaseException:
        target.arrivals.abandon(flush)
        raise
    if not target.arrivals.commit(flush):
        raise Unavailable("another process took this piece over")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Piece:
    """Rows of one table, of one closed hour and one stretch of their own time: what is copied once."""

    hour: int
    stretch: int
    rows: int
    files: tuple[RawFile, ...]


def _pieces(ground: Ground, table: Table, oldest_seconds: float) -> list[_Piece]:
    """The pieces that have rows, in order of time."""
    first = columns.microseconds(oldest_seconds)
    hours: dict[int, list[RawFile]] = {}
    for file in ground.catalogue.peek().files.get(table.name, ()):
        if overlaps(file, first, None):
            hours.setdefault(file.number, []).append(file)
    found = []
    with ground.database.cursor() as cursor:
        for hour, files in hours.items():
            stretches = cursor.execute(
                f"SELECT epoch_us(ts) // {PIECE_SECONDS * 1_000_000} AS stretch, count(*) FROM {parquet(files)} "
                f"WHERE ts >= make_timestamp({first}) GROUP BY stretch"
            ).fetchall()
            found += [
                _Piece(hour=hour, stretch=int(stretch), rows=int(rows), files=tuple(files))
                for stretch, rows in stretches
            ]
    return sorted(found, key=lambda piece: (piece.stretch, piece.hour))


def _rows(ground: Ground, table: Table, piece: _Piece) -> Columns:
    start, end = (number * PIECE_SECONDS * 1_000_000 for number in (piece.stretch, piece.stretch + 1))
    source = Catalogue(hot=(), files={table.name: piece.files}).source(table)
    select = ", ".join(columns.shown(each, kind) for each, kind in table.columns.items())
    order = ", ".join(f"t.{quoted(each)}" for each in table.order)
    with ground.database.cursor() as cursor:
        return columns.plain(
            cursor.execute(
                f"SELECT {select} FROM {source} AS t "
                f"WHERE ts >= make_timestamp({start}) AND ts < make_timestamp({end}) ORDER BY {order}"
            ).fetchnumpy()
        )


def _arrived(ground: Ground, target: Target) -> None:
    """Have the target know which batches have arrived, so that an agent's repetition is none."""
    spools: dict[tuple[str, str], list[list[int]]] = {}
    with ground.catalogue.borrowed() as catalogue, ground.database.cursor() as cursor:
        for node, spool, first, last in cursor.execute(
            f'SELECT node, spool, "first", "last" FROM {catalogue.source(BATCH)}'
        ).fetchall():
            spools.setdefault((node, spool), []).append([int(first), int(last)])
    target.arrivals.take_over(((*key, runs) for key, runs in spools.items()), ground.clock())


def _windows(source: EmbeddedStore, kind: RollupKind, target: Target, progress: Progress) -> None:
    missing = sorted(source.done_windows(kind, 0.0, 1e11) - target.store.done_windows(kind, 0.0, 1e11))
    for at in range(0, len(missing), WINDOWS_AT_ONCE):
        progress(f"windows of {kind}", at / len(missing))
        some = missing[at : at + WINDOWS_AT_ONCE]
        rows = source.windows(kind, some[0], some[-1] + 1.0)
        mine = np.isin(rows["ts"], np.array(some))
        target.store.put_windows(kind, some, {each: values[mine] for each, values in rows.items()})


def _counted(target: Target) -> dict[str, int]:
    """Rows that count and windows that the target has."""
    condition = target.arrivals.snapshot().condition
    counts = {}
    for table in TABLES:
        found = target.client.ask(f"SELECT toInt64(count()) AS rows FROM {name(table)} WHERE {condition}")
        counts[table] = int(found["rows"][0])
    windows: dict[str, int] = {kind: len(target.store.done_windows(kind, 0.0, 1e11)) for kind in ROLLUP_KINDS}
    return {**counts, **windows}


def _documents(folder: Path, target: Target) -> int:
    """Copy the control state, where the target's is another one; the target's own documents stay."""
    if not target.own_control:
        return 0
    kinds = _kept(folder / CONTROL_FILE)
    _require_same_fleet(kinds.get("node", {}), target.control)
    count = 0
    for kind, documents in kinds.items():
        there = target.control.load(kind, msgspec.Raw).keys()
        new = {key: body for key, body in documents.items() if key not in there}
        target.control.save(kind, new)
        count += len(new)
    return count


def _kept(path: Path) -> dict[str, dict[str, msgspec.Raw]]:
    kinds: dict[str, dict[str, msgspec.Raw]] = {}
    with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        for kind, key, body in connection.execute("SELECT kind, key, body FROM documents"):
            kinds.setdefault(kind, {})[key] = msgspec.Raw(body)
    return kinds


def _require_same_fleet(nodes: dict[str, msgspec.Raw], control: Control) -> None:
    for key, known in control.load("node", Node).items():
        if key not in nodes:
            continue
        own = msgspec.json.decode(nodes[key], type=Node)
        if (own.cluster, own.name) != (known.cluster, known.name):
            raise ValueError(
                f"the target's control state is of another fleet: node {key} is {known.name} there and "
                f"{own.name} here; copy before the first collector starts on it, or use an empty one"
            )
