"""The SQL that reads the newest rows of windows out of rollup files."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from flopwatch_collector.store.database import literal
from flopwatch_collector.store.rollup_files import RollupFile, RollupState
from flopwatch_collector.store.schema import TIME, quoted

_FILE = "flopwatch_file"


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """Windows that start in [start, end), in microseconds; rows of these jobs only, where given."""

    start: int
    end: int
    jobs: Iterable[int] | None = None


def rows_query(state: RollupState, columns: Mapping[str, str], span: Span) -> str:
    """The newest rows of the windows, with exactly these columns; what a file lacks is NULL."""
    files = [
        (file, _superseded(state, file, span))
        for file in state.overlapping(span.start, span.end)
        if any(span.start <= window < span.end and state.newest[window] is file for window in file.windows)
    ]
    if not files:
        return f"SELECT {_nothing(columns)} WHERE false"
    known = {name for file, _ in files for name in file.columns}
    shown = ", ".join(
        f"{quoted(name) if name in known else 'NULL'}::{kind} AS {quoted(name)}"
        for name, kind in columns.items()
    )
    paths = ", ".join(literal(file.path) for file, _ in files)
    conditions = [f"ts >= make_timestamp({span.start}) AND ts < make_timestamp({span.end})"]
    conditions += [_without(file, windows) for file, windows in files if windows]
    if span.jobs is not None:
        conditions.append(among("job", span.jobs) if "job" in known else "false")
    source = f"read_parquet([{paths}], union_by_name = true, filename = '{_FILE}')"
    return f"SELECT {shown} FROM {source} WHERE {' AND '.join(conditions)}"


def among(column: str, numbers: Iterable[int]) -> str:
    """The condition that a column is one of these numbers."""
    listed = ", ".join(str(int(number)) for number in numbers)
    return f"{quoted(column)} IN ({listed})" if listed else "false"


def _nothing(columns: Mapping[str, str]) -> str:
    return ", ".join(f"NULL::{kind} AS {quoted(name)}" for name, kind in columns.items())


def _superseded(state: RollupState, file: RollupFile, span: Span) -> list[int]:
    return [
        window
        for window in file.windows
        if span.start <= window < span.end and state.newest[window] is not file
    ]


def _without(file: RollupFile, windows: list[int]) -> str:
    listed = ", ".join(str(window) for window in windows)
    return f"NOT ({_FILE} = {literal(file.path)} AND epoch_us(ts) IN ({listed}))"


def port_columns(columns: Mapping[str, str]) -> str:
    """The select list that turns stored columns into the port's."""
    return ", ".join(
        f"epoch_us({quoted(name)}) / 1e6 AS {quoted(name)}" if kind == TIME else quoted(name)
        for name, kind in columns.items()
    )
