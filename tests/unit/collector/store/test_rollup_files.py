from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flopwatch_collector.store.rollup_files import (
    NOTHING,
    RollupFile,
    described,
    file_name,
    from_description,
    parsed_order,
    wider,
)


def file(order, windows, columns=None) -> RollupFile:
    return RollupFile(
        order=order,
        windows=frozenset(windows),
        columns=columns or {"ts": "TIMESTAMP"},
        path=Path(file_name(order, windows)),
        rows=0,
    )


puts = st.lists(st.sets(st.integers(0, 9), min_size=1), max_size=8)


@given(puts, st.randoms(use_true_random=False))
def test_the_newest_revision_of_a_window_counts_in_whatever_order_files_are_found(puts, shuffle) -> None:
    files = [file((revision, 0), windows) for revision, windows in enumerate(puts)]
    expected = {window: revision for revision, windows in enumerate(puts) for window in windows}
    shuffle.shuffle(files)
    state = NOTHING
    for found in files:
        state = state.with_file(found)
    assert {window: newest.order[0] for window, newest in state.newest.items()} == expected
    dead = {found.order[0] for found in state.dead_files()}
    assert dead == set(range(len(puts))) - set(expected.values())


def test_a_merge_supersedes_what_it_merged_and_not_what_came_later() -> None:
    first, second = file((1, 0), {0, 300}), file((2, 0), {300, 600})
    merged, later = file((2, 1), {0, 300, 600}), file((3, 0), {300})
    state = NOTHING
    for found in (later, first, merged, second):
        state = state.with_file(found)
    assert state.dead_files() == {first, second}
    assert state.newest[300] is later
    assert state.newest[600] is merged


def test_a_file_says_of_itself_what_it_holds() -> None:
    known = file((12, 3), {600, 0}, {"ts": "TIMESTAMP", "job": "BIGINT"})
    assert known.path.name == "000000000012-003-0-600.parquet"
    assert from_description(known.path, described(known.windows, known.columns), 0) == known


def test_a_strange_name_is_refused() -> None:
    with pytest.raises(ValueError, match="REVISION-GENERATION-TMIN-TMAX"):
        parsed_order(Path("notes.parquet"))


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        ("BIGINT", "BIGINT", "BIGINT"),
        ("BIGINT", "DOUBLE", "DOUBLE"),
        ("VARCHAR", "DOUBLE", "VARCHAR"),
    ],
)
def test_a_column_of_two_types_has_the_wider(first, second, both) -> None:
    assert wider(first, second) == both
    assert wider(second, first) == both
