"""Rollup files of one kind: which windows each holds, and which file has a window's newest rows."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

Order = tuple[int, int]
"""(revision, generation): of two files with the same window the greater one counts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RollupFile:
    """An append-only file of whole windows; times in microseconds, ``columns`` with their SQL types.

    A put has a new revision and generation 0. A merge has the greatest revision of what it merged and the next
    generation: it supersedes that, and a later put supersedes it.
    """

    order: Order
    windows: frozenset[int]
    columns: Mapping[str, str]
    path: Path
    rows: int

    @property
    def start(self) -> int:
        """The earliest window."""
        return min(self.windows)

    @property
    def end(self) -> int:
        """The latest window."""
        return max(self.windows)

    def __hash__(self) -> int:
        return hash(self.path)


def file_name(order: Order, windows: Iterable[int]) -> str:
    """The name of a rollup file, ``REVISION-GENERATION-TMIN-TMAX.parquet``."""
    revision, generation = order
    known = sorted(windows)
    return f"{revision:012d}-{generation:03d}-{known[0]}-{known[-1]}.parquet"


def is_named(path: Path) -> bool:
    """Whether a file has the name of a rollup file."""
    return _NAME.fullmatch(path.name) is not None


_NAME = re.compile(r"\d+-\d+-\d+-\d+\.parquet")


def parsed_order(path: Path) -> Order:
    """Revision and generation from a file's name.

    Raises:
        ValueError: the name is not of that form.
    """
    parts = path.stem.split("-")
    if len(parts) != 4:
        raise ValueError(f"{path} is not named REVISION-GENERATION-TMIN-TMAX.parquet")
    return int(parts[0]), int(parts[1])


def described(windows: Iterable[int], columns: Mapping[str, str]) -> str:
    """What a file says of itself in its metadata."""
    return json.dumps({"windows": sorted(windows), "columns": dict(columns)}, separators=(",", ":"))


def from_description(path: Path, description: str, rows: int) -> RollupFile:
    """The file behind a path and its own description."""
    said = json.loads(description)
    return RollupFile(
        order=parsed_order(path),
        windows=frozenset(said["windows"]),
        columns=said["columns"],
        path=path,
        rows=rows,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class RollupState:
    """All files of a kind; ``newest`` has the file of each window."""

    files: tuple[RollupFile, ...] = ()
    newest: Mapping[int, RollupFile]

    def with_file(self, file: RollupFile) -> "RollupState":
        """With one more file."""
        newest = dict(self.newest)
        for window in file.windows:
            known = newest.get(window)
            if known is None or known.order < file.order:
                newest[window] = file
        return RollupState(files=(*self.files, file), newest=newest)

    def without(self, gone: frozenset[RollupFile]) -> "RollupState":
        """Without these files and the windows only they have."""
        newest = {window: file for window, file in self.newest.items() if file not in gone}
        return RollupState(files=tuple(file for file in self.files if file not in gone), newest=newest)

    def live(self, file: RollupFile) -> frozenset[int]:
        """The windows that this file has the newest rows of."""
        return frozenset(window for window in file.windows if self.newest[window] is file)

    def dead_files(self) -> frozenset[RollupFile]:
        """Files that are wholly superseded."""
        used = {file.path for file in self.newest.values()}
        return frozenset(file for file in self.files if file.path not in used)

    def overlapping(self, start: int, end: int) -> list[RollupFile]:
        """Files with windows in [start, end)."""
        return [file for file in self.files if file.start < end and file.end >= start]

    def columns(self) -> dict[str, str]:
        """Columns of all files, in the order they came; of two types of one column the wider."""
        known: dict[str, str] = {}
        for file in self.files:
            for name, kind in file.columns.items():
                known[name] = wider(known.get(name, kind), kind)
        return known


def wider(first: str, second: str) -> str:
    """The type that holds values of both."""
    if first == second:
        return first
    return "VARCHAR" if "VARCHAR" in {first, second} else "DOUBLE"


NOTHING = RollupState(newest={})
