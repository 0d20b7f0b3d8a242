"""Rows of several batches in one set of tables."""

import numpy as np

from flopwatch_collector.store.inbox import Shared

SHARED = Shared(
    rows={
        "gpu": {"ts": np.array([1.0, 2.0, 3.0]), "gpu": np.array([10.0, 20.0, 30.0])},
        "node": {"ts": np.array([5.0])},
    },
    owners={"gpu": np.array([0, 0, 2]), "node": np.array([1])},
    batches=3,
)


def test_each_batch_counts_its_own_rows_in_all_tables() -> None:
    assert SHARED.counts().tolist() == [2, 1, 1]


def test_the_rows_of_all_batches_are_the_tables_themselves() -> None:
    assert SHARED.of([0, 1, 2]) is SHARED.rows


def test_a_batch_that_came_before_leaves_its_rows_out() -> None:
    kept = SHARED.of([1, 2])

    assert kept["gpu"]["gpu"].tolist() == [30.0]
    assert kept["node"]["ts"].tolist() == [5.0]
    assert set(SHARED.of([0])) == {"gpu"}


def test_batches_without_rows_are_batches() -> None:
    assert Shared(rows={}, owners={}, batches=2).counts().tolist() == [0, 0]
