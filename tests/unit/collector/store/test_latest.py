import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flopwatch_collector.model import GPU_COLUMNS
from flopwatch_collector.store.latest import Latest


def samples(rows):
    table = {name: np.full(len(rows), np.nan) for name in GPU_COLUMNS}
    for at, name in enumerate(("gpu", "ts", "power_watts")):
        table[name] = np.array([float(row[at]) for row in rows])
    return table


rows = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9), st.integers(0, 99)), max_size=12)


@given(st.lists(rows, max_size=5))
def test_of_each_gpu_the_latest_sample_stays_and_of_equal_times_the_last_given(batches) -> None:
    latest = Latest(samples([]))
    expected = {}
    for batch in batches:
        latest.update(samples(batch))
        for gpu, ts, watts in batch:
            if gpu not in expected or ts >= expected[gpu][0]:
                expected[gpu] = (ts, watts)
    table = latest.table()
    found = dict(zip(table["gpu"], zip(table["ts"], table["power_watts"], strict=True), strict=True))
    assert found == expected
    assert table["gpu"].tolist() == sorted(expected)


def test_a_table_that_was_handed_out_does_not_change() -> None:
    latest = Latest(samples([(1, 1, 100)]))
    before = latest.table()
    latest.update(samples([(1, 2, 200)]))
    assert before["power_watts"].tolist() == [100]
    assert latest.table()["power_watts"].tolist() == [200]
