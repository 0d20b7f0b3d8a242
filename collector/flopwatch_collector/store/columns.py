"""From the port's arrays to what DuckDB takes, and back: NaN is NULL, epoch seconds are timestamps."""

from typing import Any

import numpy as np
import numpy.typing as npt

from flopwatch_collector.model import NO_JOB, Columns
from flopwatch_collector.store.schema import INTEGER, NUMBER, TEXT, TIME, Table, quoted

Array = npt.NDArray[Any]

_LATEST_SECONDS = 253_402_300_800.0  # the year 10000
_LIMITS = {NUMBER: (0.0, float(2**32 - 1)), INTEGER: (-float(2**62), float(2**62))}
_NOT_A_TIME = np.int64(-(2**63))


def microseconds(seconds: float) -> int:
    """Epoch seconds as whole microseconds."""
    return round(seconds * 1e6)


def checked(table: Table, columns: Columns) -> Columns:
    """The rows of one table, each column as it is inserted; an absent column is unknown (job: no job).

    Raises:
        ValueError: a column is not of the table, is missing, has another length, or a value out of range.
    """
    if not columns:
        return {}
    unknown = columns.keys() - table.columns.keys()
    if unknown:
        raise ValueError(f"{table.name}: no such column {min(unknown)!r}; known: {', '.join(table.columns)}")
    missing = table.required - columns.keys()
    if missing:
        raise ValueError(f"{table.name}: the column {min(missing)!r} is missing")
    length = len(columns["ts"])
    return {name: _checked_column(table, name, columns.get(name), length) for name in table.columns}


def _checked_column(table: Table, name: str, values: Array | None, length: int) -> Array:
    kind = table.columns[name]
    if values is None:
        return _absent(name, kind, length)
    if len(values) != length:
        raise ValueError(f"{table.name}.{name}: {len(values)} values for {length} rows")
    if kind == TEXT:
        return texts(f"{table.name}.{name}", values)
    numbers = np.asarray(values, dtype=np.float64)
    _check_range(f"{table.name}.{name}", kind, numbers, required=name in table.required)
    return times(numbers) if kind == TIME else numbers


def _absent(name: str, kind: str, length: int) -> Array:
    if kind == TEXT:
        return np.full(length, None, dtype=object)
    if kind == TIME:
        return times(np.full(length, np.nan))
    return np.full(length, NO_JOB if name == "job" else np.nan, dtype=np.float64)


def _check_range(where: str, kind: str, values: Array, *, required: bool) -> None:
    known = values[~np.isnan(values)]
    if required and len(known) != len(values):
        raise ValueError(f"{where}: a value is missing")
    low, high = _LIMITS.get(kind, (-np.inf, np.inf)) if kind != TIME else (0.0, _LATEST_SECONDS)
    if len(known) and not (known.min() >= low and known.max() <= high):
        wrong = known.min() if known.min() < low else known.max()
        raise ValueError(f"{where} is {wrong:g}; allowed: {low:g} to {high:g}")


def texts(where: str, values: Array) -> Array:
    """Strings or None as an object array.

    Raises:
        ValueError: a value is neither.
    """
    if values.dtype.kind == "U":
        return values.astype(object)
    taken = np.asarray(values, dtype=object)
    for value in taken:
        if value is not None and not isinstance(value, str):
            raise ValueError(f"{where}: {value!r} is not a string")
    return taken


def times(seconds: Array) -> Array:
    """Epoch seconds as ``datetime64[us]``; NaN is not a time."""
    known = ~np.isnan(seconds)
    micros = np.full(len(seconds), _NOT_A_TIME, dtype=np.int64)
    micros[known] = np.round(seconds[known] * 1e6).astype(np.int64)
    return micros.view("datetime64[us]")


def stored(name: str, kind: str) -> str:
    """The SQL expression that turns an incoming column into the stored one."""
    column = quoted(name)
    if kind == TIME:
        return column
    if kind == TEXT:
        return f"{column}::VARCHAR"
    return f"nullif({column}, 'NaN'::DOUBLE)::{kind}"


def shown(name: str, kind: str) -> str:
    """The SQL expression that turns a stored column into the port's."""
    column = quoted(name)
    if kind == TIME:
        return f"epoch_us({column}) / 1e6 AS {column}"
    return column if kind == TEXT else f"{column}::DOUBLE AS {column}"


def plain(fetched: dict[str, Array]) -> Columns:
    """What DuckDB fetched, with NaN or None where a value is unknown."""
    return {name: _plain_column(values) for name, values in fetched.items()}


def _plain_column(values: Array) -> Array:
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if values.dtype.kind == "O":
        known: Array = np.array(values.data, dtype=object)
        known[np.ma.getmaskarray(values)] = None
        return known
    if not np.ma.getmaskarray(values).any():
        return np.asarray(values.data)
    return np.where(np.ma.getmaskarray(values), np.nan, values.data.astype(np.float64))


def concatenated(parts: list[Columns]) -> Columns:
    """Tables of the same columns, one below the other."""
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
