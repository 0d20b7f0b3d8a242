"""The start: what an interrupted process left is put right, and what is there is found."""

from dataclasses import dataclass, replace

import duckdb

from flopwatch_collector.model import Columns
from flopwatch_collector.store import attaching, closing, columns, hot, listing, tally
from flopwatch_collector.store.catalogue import Catalogue
from flopwatch_collector.store.database import Cursor, Database, literal
from flopwatch_collector.store.ground import Ground
from flopwatch_collector.store.latest import Latest
from flopwatch_collector.store.layout import Folder, RawFile
from flopwatch_collector.store.problems import Problems
from flopwatch_collector.store.schema import BATCH, TABLES
from flopwatch_collector.store.sequences import Sequences
from flopwatch_collector.store.writer import Written


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """Open files, oldest first; all but the last are to be closed."""

    hot: tuple[int, ...]
    next_number: int


def recovered(folder: Folder, database: Database, problems: Problems) -> Found:
    """Finish or undo what was going on when the last process ended, and attach the open files.

    Raises:
        duckdb.Error: the folder cannot be written.
        OSError: likewise.
    """
    for left in folder.hot.glob("*.new*"):
        left.unlink()
    numbers = sorted(int(path.stem) for path in folder.hot.glob("*.duckdb"))
    used = [0, *numbers, *_numbers_in(folder)]
    opened = [number for number in numbers if _attached(folder, database, problems, number)]
    for path in folder.sealed.iterdir():
        path.unlink()
    return Found(hot=tuple(opened), next_number=max(used) + 1)


def _numbers_in(folder: Folder) -> list[int]:
    closed = [file.number for name in (*TABLES, BATCH.name) for file in folder.raw_files(name)]
    return closed + [int(path.name[:9]) for path in folder.aside.iterdir() if path.name[:9].isdigit()]


def _attached(folder: Folder, database: Database, problems: Problems, number: int) -> bool:
    if closing.marker(folder, number).exists():
        closing.finish(folder, number)
        return False
    closing.discard(folder, number)
    return attaching.attached(folder, database, problems, number)


def catalogue(folder: Folder, database: Database, problems: Problems, found: Found) -> Catalogue:
    """Everything that holds raw rows; closed files that cannot be read are set aside."""
    files: dict[str, tuple[RawFile, ...]] = {}
    with database.cursor() as cursor:
        for name in (*TABLES, BATCH.name):
            files[name] = tuple(_readable(cursor, folder, problems, folder.raw_files(name)))
            for path in folder.strays(name):
                problems.add(listing.stray(path).text)
        listing.adopt(folder, (file for closed in files.values() for file in closed))
        for name in closing.SUMMARIES:
            files[name] = _newest_summary(cursor, folder, problems, name)
    return Catalogue(hot=tuple(hot.alias(number) for number in found.hot), files=files)


def _newest_summary(cursor: Cursor, folder: Folder, problems: Problems, name: str) -> tuple[RawFile, ...]:
    """The newest file of a summary; older ones, which a crash left, are removed.

    Where the newest cannot be read, an older one stands in for the newest samples, which it has too early at worst; not
    for the phases without an end, of which some are over by now.
    """
    older = sorted(folder.raw_files(name), key=lambda file: file.number)
    found: list[RawFile] = []
    while older and not found:
        found = _readable(cursor, folder, problems, [older.pop()])
        if name != closing.LATEST:
            break
    for file in older:
        file.path.unlink()
    return tuple(found)


def _readable(cursor: Cursor, folder: Folder, problems: Problems, files: list[RawFile]) -> list[RawFile]:
    if not files:
        return []
    paths = ", ".join(literal(file.path) for file in files)
    try:
        rows = dict(
            cursor.execute(f"SELECT file_name, num_rows FROM parquet_file_metadata([{paths}])").fetchall()
        )
    except duckdb.Error as problem:
        if len(files) == 1:
            attaching.set_aside(folder, files[0].path)
            problems.add(f"{files[0].path} could not be read and was set aside in {folder.aside}: {problem}")
            return []
        half = len(files) // 2
        return _readable(cursor, folder, problems, files[:half]) + _readable(
            cursor, folder, problems, files[half:]
        )
    return [replace(file, rows=rows[str(file.path)]) for file in files]


def open_file(ground: Ground, found: Found) -> hot.HotFile:
    """The file to write to: the newest open one, or a new one."""
    if not found.hot:
        made = hot.made(ground.database, ground.folder, found.next_number, ground.hour())
        ground.catalogue.swap(lambda current: current.opened(made.alias))
        return made
    number = found.hot[-1]
    with ground.database.cursor() as cursor:
        counts = " + ".join(
            f"(SELECT count(*) FROM {hot.alias(number)}.{name})" for name in (*TABLES, BATCH.name)
        )
        rows, batches, arrival = cursor.execute(
            f"SELECT {counts}, count(*), epoch_us(min(ts)) FROM {hot.alias(number)}.batch"
        ).fetchall()[0]
    hour = int(arrival // 3_600_000_000) if arrival is not None else ground.hour()
    path = hot.path(ground.folder, number)
    tally.note(path, batches)
    return hot.HotFile(number=number, path=path, hour=hour, rows=rows, batches=batches)


def written(ground: Ground) -> Written:
    """What the writer has to know of earlier writing."""
    current = ground.catalogue.peek()
    with ground.database.cursor() as cursor:
        sequences = Sequences()
        runs = closing.RUNS.format(source=current.source(BATCH))
        for node, spool, first, last, _ in cursor.execute(runs).fetchall():
            sequences.add_run(node, spool, first, last)
        counts, oldest = _hot_counts(cursor, current)
        return Written(
            sequences=sequences, latest=Latest(_newest(cursor, current)), rows=counts, oldest=oldest
        )


def _hot_counts(cursor: Cursor, current: Catalogue) -> tuple[dict[str, int], dict[str, int]]:
    """Rows by table, and by open file's alias the earliest GPU sample."""
    counts = {name: sum(file.rows for file in current.files.get(name, ())) for name in TABLES}
    oldest: dict[str, int] = {}
    for alias in current.hot:
        for name in TABLES:
            rows, start = cursor.execute(
                f"SELECT count(*), epoch_us(min(ts)) FROM {alias}.{name}"
            ).fetchall()[0]
            counts[name] += rows
            if name == "gpu" and rows:
                oldest[alias] = start
    return counts, oldest


def _newest(cursor: Cursor, current: Catalogue) -> Columns:
    shown = ", ".join(columns.shown(name, kind) for name, kind in TABLES["gpu"].columns.items())
    query = f"SELECT {shown} FROM ({closing.newest_samples(current)})"
    return columns.plain(cursor.execute(query).fetchnumpy())
