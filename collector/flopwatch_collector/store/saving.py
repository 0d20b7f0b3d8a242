"""Backups: a folder that opens as a store, of one moment, copied while the store is written and read."""

import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import duckdb
import msgspec

from flopwatch_collector.store import closing, listing
from flopwatch_collector.store.catalogue import Catalogue
from flopwatch_collector.store.closing import NotWhole
from flopwatch_collector.store.ground import Ground
from flopwatch_collector.store.layout import RawFile, complete, made, synced
from flopwatch_collector.store.port import DATA_FORMAT, Progress, Saved, Unavailable
from flopwatch_collector.store.rollup import Rollups
from flopwatch_collector.store.rollup_files import RollupState
from flopwatch_collector.store.schema import TABLES

MANIFEST = "backup.json"
"""Written last: a folder without it is no complete backup."""
CHUNK_BYTES = 1 << 20
ATTEMPTS = 5

Beside = Callable[[Path], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sources:
    """What is copied: raw rows, and rollups by kind."""

    ground: Ground
    rollups: Mapping[str, Rollups]


def backup(sources: Sources, destination: Path, beside: Beside | None, progress: Progress) -> Saved:
    """Copy everything as of one moment into a new folder.

    Raises:
        FileExistsError: the destination is there and not empty.
        Unavailable: it cannot be written.
    """
    require_empty(destination)
    try:
        destination.mkdir(parents=True, exist_ok=True)
        return _Backup(sources, destination, progress).made(beside)
    except (duckdb.Error, OSError, NotWhole) as problem:
        _emptied(destination)
        raise Unavailable(f"no backup could be written to {destination}: {problem}") from problem
    except BaseException:
        _emptied(destination)
        raise


def require_empty(folder: Path) -> None:
    """Refuse a folder with something in it.

    Raises:
        FileExistsError: it is a file, or not empty.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(f"{folder} is there and not empty; give a new or empty folder")


def _emptied(folder: Path) -> None:
    """Remove what an interrupted copy left in a folder that was empty before."""
    if folder.is_dir():
        for left in folder.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Manifest:
    """What a backup says of itself; ``files`` with their SHA-256."""

    taken_seconds: float
    rows: dict[str, int]
    files: dict[str, str]


class _Backup:
    """One copy on its way."""

    def __init__(self, sources: Sources, destination: Path, progress: Progress) -> None:
        self._ground = sources.ground
        self._rollups = sources.rollups
        self._to = destination
        self._progress = progress

    def made(self, beside: Beside | None) -> Saved:
        """Raw rows first, then what stands beside them, then rollups, which the files beside must not be older than."""
        taken = self._ground.clock()
        with ExitStack() as held:
            catalogue = held.enter_context(self._ground.catalogue.borrowed())
            self._progress("writing the open hour", 0.0)
            raw = self._open_hour(catalogue)
            states = self._with_rollups(held, beside)
            # Summaries were written with the open hour; the older ones would count beside them.
            kept = [files for name, files in catalogue.files.items() if name not in closing.SUMMARIES]
            closed = [file for files in kept for file in files]
            put = [file for state in states.values() for file in state.files]
            self._copy([*(file.path for file in closed), *(file.path for file in put)])
        raw += closed
        listing.write_all(self._to, raw)
        rows = {name: sum(file.rows for file in raw if file.table == name) for name in TABLES}
        rows |= {kind: sum(file.rows for file in state.files) for kind, state in states.items()}
        return self._sealed(taken, rows)

    def _open_hour(self, catalogue: Catalogue) -> list[RawFile]:
        """The open files' rows as closed hours in the copy."""
        with self._ground.database.cursor() as cursor:
            cursor.execute("BEGIN TRANSACTION")
            try:
                return closing.written_elsewhere(cursor, catalogue, self._to)
            finally:
                cursor.execute("ROLLBACK")

    def _with_rollups(self, held: ExitStack, beside: Beside | None) -> dict[str, RollupState]:
        """The files beside, and rollups as they were all the while these were copied."""
        for _ in range(ATTEMPTS):
            states = {kind: rollup.state.peek() for kind, rollup in self._rollups.items()}
            if beside is not None:
                beside(self._to)
            borrowed = {
                kind: held.enter_context(rollup.state.borrowed()) for kind, rollup in self._rollups.items()
            }
            if all(borrowed[kind] is state for kind, state in states.items()):
                break
        return borrowed

    def _copy(self, files: Sequence[Path]) -> None:
        root = self._ground.folder.root
        total = sum(path.stat().st_size for path in files) or 1
        done = 0
        for path in files:
            where = path.relative_to(root)
            self._progress(f"copying {where}", done / total)
            copied(path, self._to / where)
            done += path.stat().st_size

    def _sealed(self, taken: float, rows: dict[str, int]) -> Saved:
        with complete(self._to / "format") as temporary:
            temporary.write_text(f"{DATA_FORMAT}\n")
        self._progress("reading the copy once more", 1.0)
        files = {
            str(path.relative_to(self._to)): digest(path)
            for path in sorted(self._to.rglob("*"))
            if path.is_file()
        }
        with complete(self._to / MANIFEST) as temporary:
            manifest = _Manifest(taken_seconds=taken, rows=rows, files=files)
            temporary.write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=1))
        size = sum((self._to / name).stat().st_size for name in files)
        return Saved(folder=self._to, taken_seconds=taken, files=len(files), bytes=size, rows=rows)


def copied(source: Path, target: Path) -> None:
    """Copy a file durably.

    Raises:
        OSError: it cannot be read or written.
    """
    made(target.parent)
    shutil.copyfile(source, target)
    synced(target)
    synced(target.parent)


def digest(path: Path) -> str:
    """SHA-256 of a file, as hexadecimal digits."""
    taken = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            taken.update(chunk)
    return taken.hexdigest()


def restore(backup_folder: Path, target: Path, progress: Progress) -> Saved:
    """Make a store of a backup in a new folder, after comparing every file with what the backup says of it.

    Raises:
        FileExistsError: the target is there and not empty.
        ValueError: the folder is no complete backup, or a file of it is damaged.
        OSError: it cannot be read or written.
    """
    require_empty(target)
    manifest = _manifest(backup_folder)
    files = manifest.files
    outside = next((name for name in files if Path(name).is_absolute() or ".." in Path(name).parts), None)
    if outside is not None:
        raise ValueError(f"{backup_folder / MANIFEST} is damaged: {outside!r} is no file of a backup")
    # The format comes last: without it the target is no store.
    names = sorted(files, key=lambda name: (name == "format", name))
    try:
        for at, name in enumerate(names):
            progress(f"restoring {name}", at / len(names))
            _restore_file(backup_folder / name, target / name, files[name])
    except BaseException:
        _emptied(target)
        raise
    size = sum((target / name).stat().st_size for name in names)
    return Saved(
        folder=target,
        taken_seconds=manifest.taken_seconds,
        files=len(names),
        bytes=size,
        rows=manifest.rows,
    )


def _restore_file(source: Path, target: Path, expected: str) -> None:
    if not source.is_file() or digest(source) != expected:
        raise ValueError(f"{source} is missing or damaged: the backup cannot be restored whole")
    copied(source, target)
    target.chmod(0o600)


def _manifest(folder: Path) -> _Manifest:
    path = folder / MANIFEST
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Manifest)
    except FileNotFoundError:
        raise ValueError(f"{folder} is no complete backup: it has no {MANIFEST}") from None
    except msgspec.DecodeError as problem:
        raise ValueError(f"{path} is damaged: {problem}") from None
