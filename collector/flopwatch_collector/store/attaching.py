"""Attaching an open file at the start: its log is replayed, and what the log has lost is noticed and counted."""

import contextlib
import re
import shutil
import time
from pathlib import Path

import duckdb

from flopwatch_collector.store import hot, tally
from flopwatch_collector.store.database import Database
from flopwatch_collector.store.layout import Folder
from flopwatch_collector.store.problems import Problems
from flopwatch_collector.store.schema import BATCH

_DAMAGED = re.compile(r"entry at byte position (\d+)")
"""How DuckDB names the first record of a log that it cannot read."""
_NEWER = "newer version of DuckDB"


def attached(folder: Folder, database: Database, problems: Problems, number: int) -> bool:
    """Attach an open file, if need be with less than its whole log; whether it can be used.

    Raises:
        OSError: the folder cannot be written.
        ValueError: a newer DuckDB wrote the file.
    """
    path = hot.path(folder, number)
    copy = _copied_log(path)
    try:
        count = _attach(database, number, path)
    except duckdb.Error as problem:
        if _NEWER in str(problem):
            raise ValueError(
                f"{path} was written by a newer DuckDB; install that again: {problem}"
            ) from problem
        problems.add(f"{path}: {problem}")
        if copy is not None:
            copy.unlink()
        return _without_damage(folder, database, problems, number, str(problem))
    missing = missing_batches(path, count)
    if missing:
        lost(folder, problems, number, missing, copy)
    if copy is not None:
        copy.unlink(missing_ok=True)
    return True


def _without_damage(folder: Folder, database: Database, problems: Problems, number: int, said: str) -> bool:
    """Attach an open file with the beginning of its log, or with none of it."""
    path = hot.path(folder, number)
    aside = [set_aside(folder, log) for log in sorted(path.parent.glob(path.name + ".wal*"))]
    count = _attached_with_beginning(database, number, path, _beginning(aside, said))
    if count is None:
        _give_up(folder, problems, path)
        return False
    missing = missing_batches(path, count)
    problems.add(
        f"the write-ahead log of {path} could not be replayed whole and was set aside in {folder.aside}: "
        f"{_said(missing)} missing"
    )
    _name_missing(aside, missing)
    tally.note(path, count)
    return True


def _beginning(aside: list[Path], said: str) -> bytes:
    """What stands in a log before the place that DuckDB names as damaged."""
    place = _DAMAGED.search(said)
    if place is None or not aside:
        return b""
    with aside[0].open("rb") as log:
        return log.read(int(place[1]))


def _attached_with_beginning(database: Database, number: int, path: Path, beginning: bytes) -> int | None:
    """The number of batches; with an empty log where the beginning is of no use; None when nothing helps."""
    log = hot.wal(path)
    for content in dict.fromkeys((beginning, b"")):
        if content:
            log.write_bytes(content)
        else:
            log.unlink(missing_ok=True)
        with contextlib.suppress(duckdb.Error):
            return _attach(database, number, path)
    return None


def missing_batches(path: Path, count: int) -> int | None:
    """Batches that were acknowledged and are not in the file; None when their number was not kept."""
    expected = tally.noted(path)
    return None if expected is None else max(0, expected - count)


def lost(folder: Folder, problems: Problems, number: int, missing: int, log: Path | None) -> None:
    """Report batches that a file no longer has, and keep the log they were in, where there is a copy.

    Raises:
        OSError: the folder cannot be written.
    """
    path = hot.path(folder, number)
    kept = folder.aside / f"{path.name}.wal.{int(time.time())}.missing-{missing}"
    if log is None:
        kept.touch()
    else:
        shutil.move(log, kept)
    problems.add(
        f"the write-ahead log of {path} is damaged or cut: {_said(missing)} missing; "
        f"the log as it was is {kept}"
    )
    tally.note(path, (tally.noted(path) or missing) - missing)


def set_aside(folder: Folder, path: Path) -> Path:
    """Move a file to where a person can look at it; returns where.

    Raises:
        OSError: it cannot be moved.
    """
    target = folder.aside / f"{path.name}.{path.parent.name}.{int(time.time())}"
    while target.exists():
        target = target.with_name(target.name + "-again")
    return path.rename(target)


def _said(missing: int | None) -> str:
    if missing is None:
        return "an unknown number of batches is"
    return "1 acknowledged batch is" if missing == 1 else f"{missing} acknowledged batches are"


def _name_missing(aside: list[Path], missing: int | None) -> None:
    """Keep the number with the log, which is the last one: what was set aside before it is its beginning."""
    if aside and missing:
        aside[-1].rename(aside[-1].with_name(f"{aside[-1].name}.missing-{missing}"))


def _give_up(folder: Folder, problems: Problems, path: Path) -> None:
    missing = tally.noted(path)
    kept = set_aside(folder, path)
    _name_missing([kept], missing)
    tally.path(path).unlink(missing_ok=True)
    problems.add(f"{path} could not be opened and was set aside in {folder.aside}: {_said(missing)} missing")


def _copied_log(path: Path) -> Path | None:
    """The log as it is now: replaying a damaged one cuts it off."""
    log = hot.wal(path)
    if not log.exists() or tally.noted(path) is None:
        return None
    copy = log.with_name(log.name + ".start")
    with contextlib.suppress(
        OSError
    ):  # a full disk is no reason not to start; what is missing is counted all the same
        shutil.copyfile(log, copy)
        return copy
    copy.unlink(missing_ok=True)
    return None


def _attach(database: Database, number: int, path: Path) -> int:
    """The number of batches in the file, which is attached.

    Raises:
        duckdb.Error: it or its log is damaged.
    """
    database.attach(hot.alias(number), path)
    hot.complete(database, hot.alias(number))
    with database.cursor() as cursor:
        (count,) = cursor.execute(batch_count(hot.alias(number))).fetchall()[0]
        return int(count)


def batch_count(alias: str) -> str:
    """The query for the number of batches in an open file."""
    return f"SELECT count(*) FROM {alias}.{BATCH.name}"
