"""Closed files that can no longer be read are set aside while the store is in use: one of them costs only itself."""

import duckdb

from flopwatch_collector.store import attaching, reading
from flopwatch_collector.store.closing import SUMMARIES
from flopwatch_collector.store.database import literal
from flopwatch_collector.store.ground import Ground
from flopwatch_collector.store.layout import RawFile


def is_damage(problem: duckdb.Error) -> bool:
    """Whether an error may come from a damaged file, rather than from too little memory or too much time."""
    return not isinstance(problem, (duckdb.OutOfMemoryException, duckdb.InterruptException))


def without_unreadable(ground: Ground, statement: str) -> bool:
    """Set aside what the statement reads and cannot be read; whether asking again may help.

    Without a statement: of the summaries, from which one is made. The caller has given back the catalogue that the
    statement was made from.
    """
    with ground.healing:
        current = ground.catalogue.peek()
        names = SUMMARIES if not statement else tuple(current.files)
        files = [file for name in names for file in current.files.get(name, ())]
        read = [file for file in files if not statement or literal(file.path) in statement]
        damaged = frozenset(file for file in read if not _readable(ground, file))
        if not damaged:
            return False
        ground.catalogue.swap(lambda catalogue: catalogue.without(damaged))
        ground.catalogue.wait_for_readers()
        for file in damaged:
            kept = attaching.set_aside(ground.folder, file.path)
            ground.problems.add(f"{file.path} can no longer be read and was set aside as {kept}")
        return True


def _readable(ground: Ground, file: RawFile) -> bool:
    try:
        return reading.rows_of(ground.database, file.path) == file.rows
    except duckdb.Error:
        return False
