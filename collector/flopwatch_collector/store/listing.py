"""Lists of the files that each closed hour was made as: what goes or comes without the store's doing is noticed.

A list is written before its hour counts as closed, and shortened before retention removes files. A file that is not
listed is read all the same: a crash between the two leaves one until retention comes again.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from flopwatch_collector.store.layout import Folder, RawFile, complete, made, parsed, synced
from flopwatch_collector.store.port import Problem
from flopwatch_collector.store.schema import HOT_TABLES

Listed = dict[str, int]
"""Rows by ``TABLE/NAME`` of the file."""


def write(root: Path, number: int, files: Iterable[RawFile]) -> None:
    """Keep the list of an hour in the store at ``root``; without files there is none afterwards.

    Raises:
        OSError: it cannot be written.
    """
    _keep(root, number, {_name(file): file.rows for file in files})


def _keep(root: Path, number: int, listed: Listed) -> None:
    path = _path(root, number)
    if not listed:
        path.unlink(missing_ok=True)
        return
    made(path.parent)
    with complete(path) as temporary:
        temporary.write_bytes(msgspec.json.encode(listed))


def _path(root: Path, number: int) -> Path:
    return root / "raw" / "listed" / f"{number:09d}"


def _name(file: RawFile) -> str:
    return f"{file.table}/{file.path.name}"


def write_all(root: Path, files: Iterable[RawFile]) -> None:
    """Keep the lists of all hours that these files are of."""
    for number, hour in _by_hour(files).items():
        write(root, number, hour)


def _by_hour(files: Iterable[RawFile]) -> dict[int, list[RawFile]]:
    hours: dict[int, list[RawFile]] = {}
    for file in files:
        if file.table in _TABLES:
            hours.setdefault(file.number, []).append(file)
    return hours


def adopt(folder: Folder, files: Iterable[RawFile]) -> None:
    """List what a folder of an earlier version, which has no lists, holds now.

    Raises:
        OSError: they cannot be written.
    """
    final = _path(folder.root, 0).parent
    if final.exists():
        return
    new = made(final.with_name(final.name + ".new"))
    for number, hour in _by_hour(files).items():
        listed = {_name(file): file.rows for file in hour}
        (new / f"{number:09d}").write_bytes(msgspec.json.encode(listed))
    synced(new)
    new.rename(final)
    synced(final.parent)


def forget(root: Path, gone: Iterable[RawFile]) -> None:
    """Take files off their hours' lists.

    Raises:
        OSError: a list cannot be written.
    """
    for number, files in _by_hour(gone).items():
        listed = _read(_path(root, number))
        if listed:
            names = {_name(file) for file in files}
            _keep(root, number, {name: rows for name, rows in listed.items() if name not in names})


def _read(path: Path) -> Listed | None:
    """An hour's list; None where it cannot be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Listed)
    except (OSError, msgspec.DecodeError):
        return None


def rows_of(root: Path, file: RawFile) -> int:
    """The rows that a closed file was made with, as far as that is listed."""
    return (_read(_path(root, file.number)) or {}).get(_name(file), file.rows)


def differences(folder: Folder, unfinished: frozenset[int]) -> Iterator[Problem]:
    """Files that are gone, and files that no list has; hours that are ``unfinished`` have no list yet."""
    lists: dict[int, Listed] = {}
    for path in sorted(_path(folder.root, 0).parent.glob("[0-9]*[0-9]")):
        listed = _read(path)
        if listed is None:
            yield Problem(code="unreadable", text=f"{path}, the list of an hour's files, cannot be read")
        lists[int(path.name)] = listed or {}
    yield from _missing(folder, lists)
    yield from _strays(folder, lists, unfinished)


def _missing(folder: Folder, lists: Mapping[int, Listed]) -> Iterator[Problem]:
    for listed in lists.values():
        for name, rows in sorted(listed.items()):
            path = folder.root / "raw" / name
            if not path.exists() and not any(folder.aside.glob(f"{path.name}.{path.parent.name}.*")):
                yield Problem(code="missing_file", text=f"{path} is gone: it had {rows} rows")


def _strays(folder: Folder, lists: Mapping[int, Listed], unfinished: frozenset[int]) -> Iterator[Problem]:
    for table in _TABLES:
        for path in sorted(folder.raw(table).glob("*.parquet")):
            file = parsed(table, path)
            if file is None:
                yield stray(path)
            elif file.number not in unfinished and _name(file) not in lists.get(file.number, {}):
                text = f"{path} was not made by this store: its rows may be there twice"
                yield Problem(code="orphan", text=text)


def stray(path: Path) -> Problem:
    """A file whose name is none of the store's."""
    return Problem(code="orphan", text=f"{path} is no file of the store, and is not read")


_TABLES = tuple(table.name for table in HOT_TABLES)
