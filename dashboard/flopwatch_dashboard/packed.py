"""The rows of a large table on their way to the browser: column by column, each text once.

``assets/packed.js`` makes rows of it again, so a table of thousands of rows is sent in a fraction of its bytes and
the browser goes on sorting, filtering and searching all of them by itself.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Rows = Sequence[Mapping[str, Any]]
SEPARATOR = " · "
"""Between the pieces of a text; pieces repeat where whole texts do not."""


def packed(rows: Rows) -> dict[str, Any]:
    """The rows as columns: ``count``, and ``columns`` by name.

    A column is a list of values, ``{"one": value}`` where all rows have the same, or ``{"words": pieces, "at":
    positions}``. A position is a number, or a list of numbers whose pieces are joined. What a row lacks is None.
    """
    names = dict.fromkeys(name for row in rows for name in row)
    return {"count": len(rows), "columns": {name: _column([row.get(name) for row in rows]) for name in names}}


def change(transaction: Mapping[str, Rows]) -> dict[str, Any]:
    """What turns the browser's rows into others: rows to add and to update, and the ids of those that go."""
    return {
        "add": packed(transaction["add"]),
        "update": packed(transaction["update"]),
        "remove": [row["id"] for row in transaction["remove"]],
    }


def _column(values: list[Any]) -> Any:
    first = values[0]
    if all(type(value) is type(first) and value == first for value in values):
        return {"one": first}
    if not any(isinstance(value, str) for value in values):
        return values
    numbers: dict[Any, int] = {}
    at = [_position(value, numbers) for value in values]
    return values if len(numbers) > len(values) // 2 else {"words": list(numbers), "at": at}


def _position(value: Any, numbers: dict[Any, int]) -> int | list[int]:
    if not isinstance(value, str):
        return numbers.setdefault(value, len(numbers))
    pieces = [numbers.setdefault(piece, len(numbers)) for piece in value.split(SEPARATOR)]
    return pieces[0] if len(pieces) == 1 else pieces
