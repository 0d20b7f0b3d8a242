import numpy as np
import pytest

from flopwatch_collector.store import columns
from flopwatch_collector.store.schema import TABLES


def test_absent_columns_are_unknown_and_an_absent_job_is_no_job() -> None:
    found = columns.checked(TABLES["gpu"], {"ts": np.array([1.5]), "gpu": np.array([7])})
    assert list(found) == list(TABLES["gpu"].columns)
    assert found["job"].tolist() == [0]
    assert np.isnan(found["power_watts"]).all()
    assert found["ts"].view(np.int64).tolist() == [1_500_000]


def test_a_table_of_no_columns_has_no_rows() -> None:
    assert columns.checked(TABLES["gpu"], {}) == {}


def test_an_unknown_time_is_not_a_time() -> None:
    assert np.isnat(columns.times(np.array([np.nan]))).all()


def test_masked_numbers_become_nan_and_masked_texts_none() -> None:
    mask = [False, True]
    found = columns.plain(
        {
            "counts": np.ma.MaskedArray(np.array([1, 2]), mask),
            "words": np.ma.MaskedArray(np.array(["a", "?"], dtype=object), mask),
            "whole": np.ma.MaskedArray(np.array([1, 2]), [False, False]),
        }
    )
    np.testing.assert_array_equal(found["counts"], [1.0, np.nan])
    assert found["words"].tolist() == ["a", None]
    assert found["whole"].tolist() == [1, 2]
    assert not any(isinstance(values, np.ma.MaskedArray) for values in found.values())


@pytest.mark.parametrize("values", [[1.0], [b"a"]])
def test_only_strings_are_texts(values) -> None:
    with pytest.raises(ValueError, match=r"event.text: .* is not a string"):
        columns.texts("event.text", np.array(values, dtype=object))
