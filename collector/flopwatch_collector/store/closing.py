"""Closing an hour: an open file becomes sorted Parquet, and a crash at any moment loses and doubles nothing."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from flopwatch_collector.store import hot, listing
from flopwatch_collector.store.catalogue import Catalogue, parquet
from flopwatch_collector.store.database import Cursor, literal
from flopwatch_collector.store.ground import Ground
from flopwatch_collector.store.layout import Folder, RawFile, complete, made, synced
from flopwatch_collector.store.schema import BATCH, TABLES, Table, quoted

LATEST = "latest"
"""Beside each closed hour, the newest sample of every GPU so far: what a start reads."""

OPEN_PHASES = "open_phase"
"""Beside each closed hour, the phases without an end so far: what a question need not look for in every file."""
SUMMARIES = (LATEST, OPEN_PHASES)
"""Files of which only the newest counts."""

MOST_DAYS = 64
"""Late rows get a file for their day, so that queries of other days skip them; not beyond this many."""

DAY_MICROSECONDS = 86_400_000_000
COPY_OPTIONS = "FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2"

RUNS = """
SELECT node, spool, min(first) AS first, max(last) AS last, max(ts) AS ts FROM (
  SELECT *, sum(fresh) OVER (PARTITION BY node, spool ORDER BY first, last) AS run FROM (
    SELECT *, CASE WHEN first <= 1 + max(last) OVER (
      PARTITION BY node, spool ORDER BY first, last ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) THEN 0 ELSE 1 END AS fresh FROM {source}))
GROUP BY node, spool, run
"""
"""Batch rows with touching runs joined."""

OPEN_PHASES_QUERY = """
SELECT * FROM {source} AS p
QUALIFY row_number() OVER (PARTITION BY job, launch, kind, ts ORDER BY "end" DESC NULLS LAST) = 1
  AND "end" IS NULL
"""


class NotWhole(Exception):
    """A closed file does not hold the rows that it was made from."""


def close(ground: Ground, number: int) -> None:
    """Turn an open file that is no longer written into Parquet files, and remove it; may be repeated.

    Raises:
        duckdb.Error: a file cannot be written or let go; no row is lost, and the open file is still there.
        OSError: likewise.
        NotWhole: what was written cannot be trusted; the open file is as it was.
    """
    alias = hot.alias(number)
    if not marker(ground.folder, number).exists():
        files = _exported(ground, number)
        with complete(marker(ground.folder, number)) as temporary:
            temporary.touch()
        current = ground.catalogue.peek().files
        older = frozenset(file for name in SUMMARIES for file in current.get(name, ()))
        ground.catalogue.swap(lambda catalogue: catalogue.closed(alias, files).without(older))
    ground.catalogue.wait_for_readers()
    ground.database.detach(alias)
    finish(ground.folder, number)
    for name in SUMMARIES:
        used = {file.path for file in ground.catalogue.peek().files.get(name, ())}
        for file in ground.folder.raw_files(name):
            if file.path not in used:
                file.path.unlink()


def marker(folder: Folder, number: int) -> Path:
    """What says that an hour's Parquet is complete, while its open file is removed."""
    return folder.sealed / f"{number:09d}"


def finish(folder: Folder, number: int) -> None:
    """Remove an open file whose Parquet is complete, then its marker."""
    hot.remove(hot.path(folder, number))
    synced(folder.hot)
    marker(folder, number).unlink()
    synced(folder.sealed)


def discard(folder: Folder, number: int) -> None:
    """Remove Parquet files of an hour whose closing did not end."""
    listing.write(folder.root, number, ())
    for name in (*TABLES, BATCH.name, *SUMMARIES):
        for path in folder.raw(name).glob(f"{number:09d}-*"):
            path.unlink()


def _latest_source(catalogue: Catalogue) -> str | None:
    """The newest samples as of the last closed hour, as a table expression."""
    files = catalogue.files.get(LATEST, ())
    return parquet([max(files, key=lambda file: file.number)]) if files else None


def _exported(ground: Ground, number: int) -> list[RawFile]:
    discard(ground.folder, number)
    with ground.database.cursor() as cursor:
        export = _Export(raw=ground.folder.raw, cursor=cursor, number=number)
        files = export.hour(hot.alias(number))
        listing.write(ground.folder.root, number, files)
        return [*files, *export.summaries(ground.catalogue.peek())]


def written_elsewhere(cursor: Cursor, catalogue: Catalogue, root: Path) -> list[RawFile]:
    """Write the open files' rows below another root, as the hours they will be; returns files with their rows.

    Raises:
        duckdb.Error: a file cannot be written.
        OSError: likewise.
        NotWhole: what was written cannot be trusted.
    """
    files: list[RawFile] = []
    for alias in catalogue.hot:
        export = _Export(
            raw=lambda table: made(root / "raw" / table), cursor=cursor, number=hot.number_of(alias)
        )
        files += export.hour(alias)
        if alias == catalogue.hot[-1]:
            files += export.summaries(catalogue)
    return files


def newest_samples(catalogue: Catalogue) -> str:
    """The query for the newest sample of every GPU: of all open files, and of what was closed before."""
    source = replace(catalogue, files={}).source(TABLES["gpu"])
    before = _latest_source(catalogue)
    if before:
        source = f"({source} UNION ALL BY NAME SELECT * FROM {before})"
    return f"SELECT * FROM {source} QUALIFY row_number() OVER (PARTITION BY gpu ORDER BY ts DESC) = 1"


class _Export:
    """Writes rows as the Parquet files of one closed hour."""

    def __init__(self, *, raw: Callable[[str], Path], cursor: Cursor, number: int) -> None:
        self._raw = raw
        self._cursor = cursor
        self._number = number

    def hour(self, alias: str) -> list[RawFile]:
        """The files of an open file's rows, and of the batches they came with."""
        files = [file for table in TABLES.values() for file in self.by_day(table, f"{alias}.{table.name}")]
        return [*files, *self.write(BATCH, RUNS.format(source=f"{alias}.batch"))]

    def summaries(self, catalogue: Catalogue) -> list[RawFile]:
        """The file of the newest samples, and that of the phases without an end, which is there without rows too."""
        latest = Table(name=LATEST, columns=TABLES["gpu"].columns, order=("gpu",))
        phases = Table(name=OPEN_PHASES, columns=TABLES["phase"].columns, order=TABLES["phase"].order)
        query = OPEN_PHASES_QUERY.format(source=catalogue.source(TABLES["phase"]))
        return [
            self._copied(latest, newest_samples(catalogue), (0, 0)),
            self._copied(phases, query, (0, 0)),
        ]

    def by_day(self, table: Table, source: str) -> list[RawFile]:
        """A file for each day that the rows are of."""
        day = f"epoch_us(ts) // {DAY_MICROSECONDS}"
        days = [found for (found,) in self._cursor.execute(f"SELECT DISTINCT {day} FROM {source}").fetchall()]
        if len(days) <= 1 or len(days) > MOST_DAYS or table.end != "ts":
            return self.write(table, f"SELECT * FROM {source}")
        return [
            file
            for chosen in sorted(days)
            for file in self.write(table, f"SELECT * FROM {source} WHERE {day} = {chosen}")
        ]

    def write(self, table: Table, query: str) -> list[RawFile]:
        """The file of these rows; none when there are none."""
        last = f"greatest(max(ts), max({quoted(table.end)}))"
        rows, start, end = self._cursor.execute(
            f"SELECT count(*), epoch_us(min(ts)), epoch_us({last}) FROM ({query})"
        ).fetchall()[0]
        if not rows:
            return []
        file = self._copied(table, query, (start, end))
        if file.rows != rows:
            file.path.unlink()
            raise NotWhole(f"{file.path} has {file.rows} rows instead of {rows}")
        return [file]

    def _copied(self, table: Table, query: str, times: tuple[int, int]) -> RawFile:
        """The file of these rows; the open files may grow meanwhile, so that only the copy itself knows how many."""
        start, end = times
        path = self._raw(table.name) / f"{self._number:09d}-{start}-{end}.parquet"
        order = ", ".join(quoted(name) for name in table.order)
        with complete(path) as temporary:
            target = literal(temporary)
            (rows,) = self._cursor.execute(
                f"COPY (SELECT * FROM ({query}) ORDER BY {order}) TO {target} ({COPY_OPTIONS})"
            ).fetchall()[0]
            (found,) = self._cursor.execute(f"SELECT count(*) FROM read_parquet({target})").fetchall()[0]
            if found != rows:
                raise NotWhole(f"{path} has {found} rows instead of {rows}")
        return RawFile(table=table.name, number=self._number, start=start, end=end, path=path, rows=rows)
