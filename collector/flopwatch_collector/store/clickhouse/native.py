"""ClickHouse's Native format: blocks of columns, from arrays to bytes and back."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from flopwatch_collector.model import Columns

Array = npt.NDArray[Any]

_NUMBERS = {
    "UInt8": "<u1", "UInt32": "<u4", "UInt64": "<u8", "Int64": "<i8", "Float64": "<f8",
    "DateTime64(6, 'UTC')": "<i8",
}  # fmt: skip
"""Types that are one array of fixed width, as they lie on the wire; instants are microseconds."""
_NULLABLE = "Nullable("
_INSTANT = "DateTime64(6, 'UTC')"


def encode(columns: Columns, types: Mapping[str, str]) -> bytes:
    """One block of rows. NaN, NaT and None are NULL, and are allowed in ``Nullable`` columns only.

    Raises:
        ValueError: a column that may not be NULL has an unknown value.
    """
    length = len(next(iter(columns.values())))
    parts = [_varint(len(columns)), _varint(length)]
    for name, values in columns.items():
        parts += [_text(name), _text(types[name]), *_encoded(name, values, types[name])]
    return b"".join(parts)


def _encoded(name: str, values: Array, type_: str) -> list[bytes]:
    inner = type_.removeprefix(_NULLABLE)[:-1] if type_.startswith(_NULLABLE) else type_
    unknown = _unknown(values)
    if inner != type_:
        return [unknown.astype("<u1").tobytes(), _filled(values, unknown, inner)]
    if unknown.any():
        raise ValueError(f"{name}: a value is unknown; allowed: {type_}")
    return [_filled(values, unknown, inner)]


def _unknown(values: Array) -> npt.NDArray[np.bool_]:
    if values.dtype.kind == "O":
        return np.fromiter((value is None for value in values), np.bool_, len(values))
    if values.dtype.kind == "M":
        return np.isnat(values)
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), np.bool_)


def _filled(values: Array, unknown: npt.NDArray[np.bool_], type_: str) -> bytes:
    if type_ == "String":
        return b"".join(_text("" if value is None else value) for value in values)
    if values.dtype.kind == "M":
        values = values.astype("datetime64[us]").view(np.int64)
    if unknown.any():
        values = np.where(unknown, 0, values)
    return values.astype(_NUMBERS[type_]).tobytes()


def decode(body: bytes) -> Columns:
    """All blocks as one table: numbers as float64 with NaN where NULL, instants as epoch seconds, texts as objects.

    Whole numbers stay ``int64`` where none is NULL.

    Raises:
        ValueError: the body is cut short, or has a type this does not know.
    """
    reader = _Reader(body)
    blocks: dict[str, list[Array]] = {}
    while not reader.at_end():
        columns, rows = reader.varint(), reader.varint()
        for _ in range(columns):
            name, type_ = reader.text(), reader.text()
            blocks.setdefault(name, []).append(reader.column(type_, rows))
    return {name: parts[0] if len(parts) == 1 else _joined(parts) for name, parts in blocks.items()}


def _joined(parts: list[Array]) -> Array:
    return np.concatenate([part for part in parts if len(part)] or parts[:1])


class _Reader:
    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def at_end(self) -> bool:
        return self._at >= len(self._body)

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._bytes(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def text(self) -> str:
        return self._bytes(self.varint()).decode("utf-8", "surrogateescape")

    def column(self, type_: str, rows: int) -> Array:
        if not type_.startswith(_NULLABLE):
            return _shown(self._values(type_, rows), type_)
        unknown = np.frombuffer(self._bytes(rows), np.bool_)
        inner = type_.removeprefix(_NULLABLE)[:-1]
        values = self._values(inner, rows)
        if not unknown.any():
            return _shown(values, inner)
        if values.dtype.kind == "O":
            values[unknown] = None
            return values
        shown = _shown(values, inner).astype(np.float64)
        shown[unknown] = np.nan
        return shown

    def _values(self, type_: str, rows: int) -> Array:
        if type_ == "String":
            return np.array([self.text() for _ in range(rows)], dtype=object)
        if type_ not in _NUMBERS:
            raise ValueError(f"the answer has a column of type {type_}; known: {', '.join(_NUMBERS)}, String")
        kind = np.dtype(_NUMBERS[type_])
        return np.frombuffer(self._bytes(rows * kind.itemsize), kind)

    def _bytes(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._body):
            raise ValueError(f"the answer is cut short at byte {len(self._body)}")
        taken = self._body[self._at : end]
        self._at = end
        return taken


def _shown(values: Array, type_: str) -> Array:
    if type_ == _INSTANT:
        return values.astype(np.float64) / 1e6
    if values.dtype.kind in "iu":
        return values.astype(np.int64)
    return values.copy() if values.dtype.kind == "f" else values


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _text(text: str) -> bytes:
    body = text.encode("utf-8", "surrogateescape")
    return _varint(len(body)) + body
