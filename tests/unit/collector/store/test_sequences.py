from hypothesis import given
from hypothesis import strategies as st

from flopwatch_collector.model import BatchId
from flopwatch_collector.store.sequences import Sequences


def batch(sequence: int, node: str = "n", spool: str = "s") -> BatchId:
    return BatchId(node=node, spool=spool, sequence=sequence)


@given(st.lists(st.integers(0, 60)))
def test_exactly_what_was_added_is_known_whatever_the_order(added) -> None:
    sequences = Sequences()
    for sequence in added:
        sequences.add(batch(sequence))
    assert {at for at in range(-1, 70) if batch(at) in sequences} == set(added)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 10))))
def test_runs_join_like_the_sets_of_their_numbers(runs) -> None:
    sequences, expected = Sequences(), set()
    for first, length in runs:
        sequences.add_run("n", "s", first, first + length)
        expected |= set(range(first, first + length + 1))
    assert {at for at in range(-1, 70) if batch(at) in sequences} == expected


def test_an_ordered_spool_is_one_run() -> None:
    sequences = Sequences()
    for sequence in range(1000):
        sequences.add(batch(sequence))
    assert sequences._runs == {("n", "s"): [[0, 999]]}


def test_nodes_and_spools_count_apart() -> None:
    sequences = Sequences()
    sequences.add(batch(1))
    assert batch(1, node="m") not in sequences
    assert batch(1, spool="t") not in sequences
