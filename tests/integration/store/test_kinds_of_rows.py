"""Every column of every kind of row comes back from every engine as it was written, and every question is asked."""

import inspect
from pathlib import Path

import numpy as np
import pytest
from tests.integration.store.conftest import NOON

from flopwatch_collector.store.port import CAPABILITIES
from flopwatch_collector.store.schema import INTEGER, NUMBER, REAL, TABLES, TEXT, TIME

ASK = {
    "gpu": lambda store: store.gpu_samples(NOON, NOON + 60, tuple(TABLES["gpu"].columns)),
    "node": lambda store: store.host_samples("node", NOON, NOON + 60, [5, 6]),
    "host": lambda store: store.host_samples("job", NOON, NOON + 60, [5, 6]),
    "port": lambda store: store.port_samples(NOON, NOON + 60, [5, 6]),
    "step": lambda store: store.steps(NOON, NOON + 60),
    "phase": lambda store: store.phases(NOON, NOON + 60),
    "event": lambda store: store.events(NOON, NOON + 60),
}
"""The question that shows all columns of a table."""


def full_row(table: str) -> dict:
    """A value for each column that no other column of the row has."""
    made = {
        TIME: lambda at: NOON + 0.125 * (at + 1),
        NUMBER: lambda _: 5,
        INTEGER: lambda at: 2**40 + at,
        REAL: lambda at: at + 0.1,
        TEXT: lambda at: f'{at}: it\'s "so"; 维护\\\n',
    }
    return {name: [made[kind](at)] for at, (name, kind) in enumerate(TABLES[table].columns.items())}


def bare_row(table: str) -> dict:
    """What a row must have: its time and whose it is."""
    named = {"ts": NOON + 30, "port": "b"}
    return {
        name: [named.get(name, 6)] for name in TABLES[table].required | {"job"} & TABLES[table].columns.keys()
    }


def values(table: str, row: dict) -> dict:
    """The row as it comes back: what was not written is unknown."""
    unknown = {name: None if kind == TEXT else np.nan for name, kind in TABLES[table].columns.items()}
    return unknown | {name: value for name, (value,) in row.items()}


@pytest.mark.parametrize("table", TABLES)
def test_every_column_comes_back_as_it_was_written_and_unknown_stays_unknown(bench, table) -> None:
    full, bare = full_row(table), bare_row(table)
    bench.write(**{table: full})
    bench.between()
    bench.write(**{table: bare})
    found = ASK[table](bench.store)
    expected = [values(table, full), values(table, bare)]
    assert set(found) == set(TABLES[table].columns)
    for name, column in found.items():
        np.testing.assert_array_equal(
            column, np.array([row[name] for row in expected], dtype=column.dtype), err_msg=name
        )


def test_the_contract_asks_every_question_there_is() -> None:
    folder = Path(__file__).parent
    text = (folder / "test_contract.py").read_text() + inspect.getsource(inspect.getmodule(full_row))
    asked = {name for name in CAPABILITIES if f"store.{name}(" in text}
    assert asked == CAPABILITIES - {"write"}
