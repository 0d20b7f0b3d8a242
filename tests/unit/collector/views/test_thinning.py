import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flopwatch_collector.views.thinning import known, thinned


def test_few_rows_stay_as_they_are() -> None:
    rows = {"ts": np.arange(5.0), "mfu": np.arange(5.0)}

    assert thinned(rows, "mfu", 5) is rows


def test_a_dip_and_a_peak_of_one_point_survive() -> None:
    values = np.full(10_000, 0.5)
    values[6_123], values[6_124] = 0.1, 0.9
    rows = {"ts": np.arange(10_000.0), "mfu": values}

    fewer = thinned(rows, "mfu", 200)

    assert fewer["ts"].size <= 202
    assert 6_123.0 in fewer["ts"]
    assert 6_124.0 in fewer["ts"]
    assert (fewer["ts"][0], fewer["ts"][-1]) == (0.0, 9_999.0)


@given(st.lists(st.one_of(st.none(), st.floats(-1, 1)), min_size=1, max_size=400), st.integers(4, 100))
def test_order_and_extremes_stay_and_every_row_is_one_of_the_given(
    values: list[float | None], points: int
) -> None:
    column = np.array([np.nan if value is None else value for value in values])
    rows = {"ts": np.arange(float(column.size)), "v": column}

    fewer = thinned(rows, "v", points)

    assert (np.diff(fewer["ts"]) > 0).all()
    assert fewer["ts"].size <= points + 2
    np.testing.assert_array_equal(fewer["v"], column[fewer["ts"].astype(int)])
    if np.isfinite(column).any():
        assert np.nanmin(fewer["v"]) == np.nanmin(column)
        assert np.nanmax(fewer["v"]) == np.nanmax(column)


def test_what_is_not_a_number_is_unknown() -> None:
    assert known(np.array([0.5, np.nan, 0.0, np.inf])) == (0.5, None, 0.0, None)
