"""What every Store does, asked of each engine."""

import numpy as np
import pytest
from tests.fixtures.memory_store import MemoryStore
from tests.integration.store.conftest import NOON

from flopwatch_collector.model import (
    EVENT_COLUMNS,
    GPU_COLUMNS,
    PHASE_COLUMNS,
    STEP_COLUMNS,
    BatchId,
    RawRows,
)
from flopwatch_collector.store.port import CAPABILITIES, NotSupported

NAN = float("nan")


def same(found, expected) -> None:
    assert list(found) == list(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], np.array(values, dtype=found[name].dtype), err_msg=name)


def test_a_new_store_answers_every_question_with_nothing(bench) -> None:
    store = bench.store
    for found, names in (
        (store.latest_gpus(), GPU_COLUMNS),
        (store.gpu_samples(0, 1e10, ("power_watts",)), ("ts", "gpu", "power_watts")),
        (store.steps(0, 1e10), STEP_COLUMNS),
        (store.phases(0, 1e10), PHASE_COLUMNS),
        (store.events(0, 1e10), EVENT_COLUMNS),
    ):
        assert tuple(found) == names
        assert all(len(values) == 0 for values in found.values())
    assert len(store.job_series(0, 1e10, 60)["samples"]) == 0
    assert len(store.node_series(0, 1e10, 60, [1])["transmit_bytes_per_second"]) == 0
    assert len(store.windows("ledger5m", 0, 1e10)["ts"]) == 0
    assert store.done_windows("job1h", 0, 1e10) == frozenset()
    assert store.first_sample_seconds() is None
    assert store.stats().rows["gpu"] == 0


def test_a_batch_counts_once_however_often_it_arrives(bench) -> None:
    rows = RawRows(event={"ts": np.array([NOON]), "kind": np.array(["xid"])})
    first = BatchId(node="n7", spool="a", sequence=5)
    assert bench.store.submit(first, rows).result(30).duplicate is False
    assert bench.store.submit(first, rows).result(30).duplicate is True
    bench.between()
    assert bench.store.submit(first, rows).result(30).duplicate is True
    earlier = BatchId(node="n7", spool="a", sequence=4)
    other_spool = BatchId(node="n7", spool="b", sequence=5)
    other_node = BatchId(node="n8", spool="a", sequence=5)
    for batch in (earlier, other_spool, other_node):
        assert bench.store.submit(batch, rows).result(30).duplicate is False
    assert len(bench.store.events(NOON, NOON + 1)["ts"]) == 4


def test_a_batch_without_rows_is_remembered_too(bench) -> None:
    batch = BatchId(node="n7", spool="a", sequence=1)
    assert bench.store.submit(batch, RawRows()).result(30).duplicate is False
    bench.between()
    assert bench.store.submit(batch, RawRows()).result(30).duplicate is True


def test_samples_come_sorted_by_gpu_and_time_and_unknown_stays_unknown(bench) -> None:
    bench.write(gpu={"ts": [NOON + 10, NOON], "gpu": [2, 2], "node": [1, 1], "power_watts": [612.37, NAN]})
    bench.between()
    bench.write(
        gpu={"ts": [NOON + 5.25], "gpu": [1], "node": [1], "job": [3], "memory_used_bytes": [2**36 + 1]}
    )
    same(
        bench.store.gpu_samples(NOON, NOON + 11, ("job", "power_watts", "memory_used_bytes")),
        {
            "ts": [NOON + 5.25, NOON, NOON + 10],
            "gpu": [1, 2, 2],
            "job": [3, 0, 0],
            "power_watts": [NAN, NAN, 612.37],
            "memory_used_bytes": [2**36 + 1, NAN, NAN],
        },
    )


def test_intervals_include_their_start_and_not_their_end(bench) -> None:
    bench.write(gpu={"ts": [NOON, NOON + 10, NOON + 20], "gpu": [1, 1, 1], "node": [1, 1, 1]})
    bench.between()
    assert bench.store.gpu_samples(NOON, NOON + 20, ())["ts"].tolist() == [NOON, NOON + 10]
    assert bench.store.gpu_samples(NOON + 0.5, NOON + 20.5, ())["ts"].tolist() == [NOON + 10, NOON + 20]


def test_samples_of_chosen_gpus_only(bench) -> None:
    bench.write(gpu={"ts": [NOON] * 4, "gpu": [1, 2, 3, 4], "node": [1] * 4})
    bench.between()
    assert bench.store.gpu_samples(NOON, NOON + 1, (), gpus=[4, 2, 99])["gpu"].tolist() == [2, 4]
    assert bench.store.gpu_samples(NOON, NOON + 1, (), gpus=[])["gpu"].tolist() == []


def test_the_latest_sample_of_a_gpu_is_the_one_with_the_latest_time(bench) -> None:
    bench.write(gpu={"ts": [NOON + 10, NOON + 10], "gpu": [2, 1], "node": [1, 1], "power_watts": [200, 100]})
    bench.between()
    bench.write(gpu={"ts": [NOON, NOON + 20], "gpu": [2, 3], "node": [1, 1], "power_watts": [1, 300]})
    bench.between()
    latest = bench.store.latest_gpus()
    assert tuple(latest) == GPU_COLUMNS
    assert latest["gpu"].tolist() == [1, 2, 3]
    assert latest["ts"].tolist() == [NOON + 10, NOON + 10, NOON + 20]
    assert latest["power_watts"].tolist() == [100, 200, 300]
    assert np.isnan(latest["tensor_active_ratio"]).all()


def test_job_series_are_means_of_known_values_in_buckets(bench) -> None:
    bench.write(
        gpu={
            "ts": [NOON, NOON + 10, NOON + 50, NOON + 60, NOON + 5],
            "gpu": [1, 1, 2, 1, 3],
            "node": [1] * 5,
            "job": [7, 7, 7, 7, 0],
            "kernel_active_ratio": [0.5, 1.0, NAN, 0.25, 0.0],
        }
    )
    bench.between()
    found = bench.store.job_series(NOON, NOON + 120, 60)
    assert found["job"].tolist() == [0, 7, 7]
    assert found["ts"].tolist() == [NOON, NOON, NOON + 60]
    assert found["samples"].tolist() == [1, 3, 1]
    assert found["gpus"].tolist() == [1, 2, 1]
    assert found["kernel_active_ratio"].tolist() == [0.0, 0.75, 0.25]
    assert np.isnan(found["power_watts"]).all()
    assert bench.store.job_series(NOON, NOON + 120, 60, jobs=[7])["job"].tolist() == [7, 7]


def test_samples_of_gpus_come_in_buckets_as_means(bench) -> None:
    rows = {"ts": [NOON + 2, NOON + 12, NOON + 61, NOON + 3], "gpu": [4, 4, 4, 5], "node": [1, 1, 1, 1]}
    bench.write(gpu={**rows, "power_watts": [300.0, 500.0, 700.0, 100.0]})
    bench.between()
    found = bench.store.gpu_series(NOON, NOON + 120, 60, ("power_watts", "tensor_active_ratio"), [4])
    assert found["ts"].tolist() == [NOON, NOON + 60]
    assert found["gpu"].tolist() == [4, 4]
    assert found["power_watts"].tolist() == [400.0, 700.0]
    assert np.isnan(found["tensor_active_ratio"]).all()
    assert not bench.store.gpu_series(NOON, NOON + 120, 60, ("power_watts",), [9])["ts"].size
    with pytest.raises(ValueError, match="no such column 'watts'"):
        bench.store.gpu_series(NOON, NOON + 120, 60, ("watts",), [4])


def test_samples_of_ports_come_by_node_port_and_time(bench) -> None:
    bench.write(
        port=ports(2, [(NOON + 10, "b", "rdma", 5, 6), (NOON, "b", "rdma", 1, 2), (NOON, "a", "rdma", 3, 4)])
    )
    bench.write(port=ports(3, [(NOON, "c", "rdma", 7, 8)]))
    bench.between()
    found = bench.store.port_samples(NOON, NOON + 60, [2])
    assert found["port"].tolist() == ["a", "b", "b"]
    assert found["ts"].tolist() == [NOON, NOON, NOON + 10]
    assert found["transmit_bytes"].tolist() == [3, 1, 5]
    assert np.isnan(found["link_up"]).all()


def test_host_samples_come_by_node_or_by_job_and_time(bench) -> None:
    bench.write(node={"ts": [NOON + 10, NOON], "node": [2, 2], "io_pressure_ratio": [0.5, 0.25]})
    rows = {"ts": [NOON + 10, NOON, NOON], "node": [2, 2, 3], "job": [7, 7, 8]}
    bench.write(host={**rows, "main_thread_ratio": [0.75, 0.5, 0.1], "disk_read_bytes": [9, 4, 1]})
    bench.between()
    nodes = bench.store.host_samples("node", NOON, NOON + 60, [2])
    jobs = bench.store.host_samples("job", NOON, NOON + 60, [7])
    assert (nodes["ts"].tolist(), nodes["io_pressure_ratio"].tolist()) == ([NOON, NOON + 10], [0.25, 0.5])
    assert (jobs["node"].tolist(), jobs["main_thread_ratio"].tolist()) == ([2, 2], [0.5, 0.75])
    assert jobs["disk_read_bytes"].tolist() == [4, 9]
    assert np.isnan(jobs["io_wait_ratio"]).all()
    assert not bench.store.host_samples("job", NOON, NOON + 10, [9])["ts"].size


def ports(node, rows):
    columns = ("ts", "port", "role", "transmit_bytes", "receive_bytes")
    table = {name: [row[at] for row in rows] for at, name in enumerate(columns)}
    return {**table, "node": [node] * len(rows)}


def test_node_throughput_sums_rdma_ports_and_skips_a_reset(bench) -> None:
    bench.write(
        port=ports(
            1,
            [
                (NOON - 10, "a", "rdma", 1000, 0),
                (NOON, "a", "rdma", 2000, 50),
                (NOON + 10, "a", "rdma", 100, 100),  # a reset: neither its bytes nor its time count
                (NOON + 20, "a", "rdma", 700, 200),
                (NOON + 10, "b", "rdma", 0, 0),
                (NOON + 20, "b", "rdma", 300, 40),
                (NOON, "eth0", "ethernet", 0, 0),
                (NOON + 20, "eth0", "ethernet", 10**9, 10**9),
            ],
        )
    )
    bench.between()
    found = bench.store.node_series(NOON, NOON + 60, 60, [1, 2])
    assert found["ts"].tolist() == [NOON]
    assert found["node"].tolist() == [1]
    # a: (1000 + 600) bytes in the 20 s without the reset, b: 300 bytes in 10 s
    assert found["transmit_bytes_per_second"].tolist() == [80 + 30]
    # a: 50 + 50 + 100 bytes in 30 s, b: 40 bytes in 10 s
    np.testing.assert_allclose(found["receive_bytes_per_second"], [200 / 30 + 4])


def test_node_throughput_is_ethernet_where_there_is_no_rdma(bench) -> None:
    bench.write(port=ports(3, [(NOON, "eth0", "ethernet", 0, 0), (NOON + 10, "eth0", "ethernet", 5000, 100)]))
    bench.write(
        port=ports(4, [(NOON, "bmc", "management", 0, 0), (NOON + 10, "bmc", "management", 5000, 100)])
    )
    found = bench.store.node_series(NOON, NOON + 60, 60, [3, 4])
    assert found["node"].tolist() == [3]
    assert found["transmit_bytes_per_second"].tolist() == [500]
    assert found["receive_bytes_per_second"].tolist() == [10]


def test_steps_come_as_sent_sorted_by_job_and_time(bench) -> None:
    bench.write(step={"ts": [NOON + 2, NOON + 1], "job": [8, 8], "rank": [-1, 0], "seconds": [1.5, 1.25]})
    bench.between()
    bench.write(step={"ts": [NOON, NOON], "job": [9, 6], "loss": [2.5, NAN], "step": [10**12, 3]})
    found = bench.store.steps(NOON, NOON + 3)
    assert found["job"].tolist() == [6, 8, 8, 9]
    assert found["ts"].tolist() == [NOON, NOON + 1, NOON + 2, NOON]
    np.testing.assert_array_equal(found["seconds"], [NAN, 1.25, 1.5, NAN])
    np.testing.assert_array_equal(found["rank"], [NAN, 0, -1, NAN])
    np.testing.assert_array_equal(found["step"], [3, NAN, NAN, 10**12])
    assert bench.store.steps(NOON, NOON + 3, jobs=[9])["loss"].tolist() == [2.5]


def test_a_phase_sent_twice_is_one_phase_with_its_end(bench) -> None:
    key = {"job": [5], "launch": [1], "kind": [3], "step": [400]}
    bench.write(phase={"ts": [NOON], "end": [NAN], "committed": [NAN], **key})
    bench.between()
    assert np.isnan(bench.store.phases(NOON, NOON + 1)["end"]).all()
    bench.write(phase={"ts": [NOON], "end": [NOON + 30], "committed": [1], **key})
    bench.between()
    found = bench.store.phases(NOON + 29, NOON + 40)
    assert tuple(found) == PHASE_COLUMNS
    assert found["end"].tolist() == [NOON + 30]
    assert found["committed"].tolist() == [1]
    assert len(bench.store.phases(NOON + 30, NOON + 40)["ts"]) == 0
    assert len(bench.store.phases(NOON - 10, NOON)["ts"]) == 0


def test_an_open_phase_overlaps_all_that_follows(bench) -> None:
    bench.write(
        phase={"ts": [NOON, NOON], "end": [NAN, NAN], "job": [5, 6], "launch": [1, 2], "kind": [2, 2]}
    )
    bench.between()
    assert bench.store.phases(NOON + 1e6, NOON + 2e6)["job"].tolist() == [5, 6]
    assert bench.store.phases(NOON + 1e6, NOON + 2e6, jobs=[6])["job"].tolist() == [6]


def test_phases_are_found_however_their_rows_arrive_and_whatever_stands_between(bench) -> None:
    def say(job: int, begin: float, end: float) -> None:
        bench.write(
            phase={"ts": [NOON + begin], "end": [NOON + end], "job": [job], "launch": [1], "kind": [2]}
        )

    def found(start: float, end: float) -> list[tuple[int, float]]:
        rows = bench.store.phases(NOON + start, NOON + end)
        return [(int(job), float(end - NOON)) for job, end in zip(rows["job"], rows["end"], strict=True)]

    say(1, 0, NAN)  # ends two moments later
    say(2, 0, NAN)  # never ends
    say(3, 0, 50)  # its begin comes late
    say(4, 10, 9000)  # lasts longer than anything around it
    bench.between()
    say(5, 4000, 4060)
    say(1, 0, NAN)
    bench.between()
    say(3, 0, NAN)
    say(1, 0, 7000)
    for _ in range(2):
        np.testing.assert_equal(found(0, 100), [(1, 7000), (2, NAN), (3, 50), (4, 9000)])
        np.testing.assert_equal(found(50, 60), [(1, 7000), (2, NAN), (4, 9000)])
        np.testing.assert_equal(found(4030, 4031), [(1, 7000), (2, NAN), (4, 9000), (5, 4060)])
        np.testing.assert_equal(found(7000, 9000), [(2, NAN), (4, 9000)])
        np.testing.assert_equal(found(20_000, 30_000), [(2, NAN)])
        np.testing.assert_equal(found(-10, 0), [])
        bench.between()
    say(2, 0, 25_000)
    np.testing.assert_equal(found(20_000, 30_000), [(2, 25_000)])
    bench.between()
    np.testing.assert_equal(found(25_000, 30_000), [])


def test_every_engine_says_what_it_can_and_finds_nothing_wrong_with_whole_data(bench, tmp_path) -> None:
    store = bench.store
    bench.write(event={"ts": [NOON], "kind": ["xid"]})
    assert store.capabilities <= CAPABILITIES
    assert {"write", "gpu_samples", "windows"} <= store.capabilities
    told = []
    assert store.check(lambda doing, ratio: told.append(ratio)) == ()
    assert all(0 <= ratio <= 1 for ratio in told)
    assert store.compact() >= 0
    if "backup" not in store.capabilities:
        with pytest.raises(NotSupported):
            store.backup(tmp_path / "backup")
        return
    saved = store.backup(tmp_path / "backup", lambda folder: (folder / "beside").touch())
    assert (saved.rows["event"], saved.folder) == (1, tmp_path / "backup")
    assert (tmp_path / "backup" / "beside").exists()
    with pytest.raises(FileExistsError, match="is there and not empty"):
        store.backup(tmp_path / "backup")


def test_events_keep_their_words(bench) -> None:
    bench.write(
        event={
            "ts": [NOON + 1, NOON],
            "kind": ["drain", "xid"],
            "node": [4, 4],
            "gpu": [0, 31],
            "code": [NAN, 79],
            "value": np.array(["begin", None], dtype=object),
            "text": ['it\'s "planned"; 维护', ""],
        }
    )
    bench.between()
    same(
        bench.store.events(NOON, NOON + 2),
        {
            "ts": [NOON, NOON + 1],
            "kind": ["xid", "drain"],
            "node": [4, 4],
            "gpu": [31, 0],
            "code": [79, NAN],
            "value": [None, "begin"],
            "text": ["", 'it\'s "planned"; 维护'],
        },
    )
    assert bench.store.events(NOON, NOON + 2, ["xid", "spare"])["code"].tolist() == [79]
    assert len(bench.store.events(NOON, NOON + 2, [])["ts"]) == 0


def test_late_rows_are_found_by_their_own_time(bench) -> None:
    bench.write(gpu={"ts": [NOON], "gpu": [1], "node": [1]})
    bench.between()
    weeks_ago = NOON - 20 * 86_400
    bench.write(
        gpu={"ts": [weeks_ago, weeks_ago + 86_400], "gpu": [1, 1], "node": [1, 1], "power_watts": [350, 360]}
    )
    bench.between()
    found = bench.store.gpu_samples(weeks_ago, weeks_ago + 60, ("power_watts",))
    assert found["power_watts"].tolist() == [350]
    assert bench.store.first_sample_seconds() == weeks_ago
    assert bench.store.latest_gpus()["ts"].tolist() == [NOON]


def test_windows_come_back_with_the_columns_they_were_put_with(bench) -> None:
    bench.store.put_windows(
        "ledger5m",
        [0.0, 300.0, 600.0],
        {
            "ts": np.array([300.0, 0.0, 0.0]),
            "job": np.array([1, 2, 1]),
            "seconds": np.array([3.5, NAN, 1.0]),
            "state": np.array(["STEP", None, "HANG"], dtype=object),
        },
    )
    bench.between()
    same(
        bench.store.windows("ledger5m", 0, 900),
        {
            "ts": [0, 0, 300],
            "job": [1, 2, 1],
            "seconds": [1.0, NAN, 3.5],
            "state": ["HANG", None, "STEP"],
        },
    )
    assert bench.store.windows("ledger5m", 0, 300, jobs=[1])["state"].tolist() == ["HANG"]
    assert bench.store.done_windows("ledger5m", 0, 600) == {0.0, 300.0}
    assert bench.store.done_windows("ledger5m", 600, 900) == {600.0}
    assert bench.store.done_windows("job5m", 0, 900) == frozenset()


def test_a_window_put_again_replaces_all_its_rows_and_no_other(bench) -> None:
    put = bench.store.put_windows
    put("job5m", [0.0, 300.0], {"ts": np.array([0.0, 0.0, 300.0]), "job": np.array([1, 2, 1])})
    bench.between()
    bench.store.put_windows("job5m", [0.0], {"ts": np.array([0.0]), "job": np.array([9])})
    assert bench.store.windows("job5m", 0, 600)["job"].tolist() == [9, 1]
    bench.between()
    bench.store.put_windows("job5m", [300.0], {})
    bench.between()
    found = bench.store.windows("job5m", 0, 600)
    assert found["job"].tolist() == [9]
    assert bench.store.done_windows("job5m", 0, 600) == {0.0, 300.0}


def test_windows_of_different_columns_are_joined_by_name(bench) -> None:
    bench.store.put_windows(
        "job1h", [0.0], {"ts": np.array([0.0]), "job": np.array([1]), "old": np.array([5])}
    )
    bench.store.put_windows(
        "job1h", [3600.0], {"ts": np.array([3600.0]), "job": np.array([1]), "name": np.array(["a"])}
    )
    bench.between()
    found = bench.store.windows("job1h", 0, 7200)
    np.testing.assert_array_equal(found["old"], [5, NAN])
    assert found["name"].tolist() == [None, "a"]


def test_many_puts_of_one_day_read_as_one(bench) -> None:
    for at in range(60):
        window = at * 300.0
        rows = {"ts": np.array([window, 0.0][: 1 + (at > 0)])}
        rows["job"] = np.arange(len(rows["ts"])) + at
        bench.store.put_windows("ledger5m", {window, 0.0}, rows)
    bench.between()
    found = bench.store.windows("ledger5m", 0, 1e6)
    assert found["ts"].tolist() == [at * 300.0 for at in range(60)]
    assert found["job"].tolist() == [60, *range(1, 60)]


def test_the_first_sample_may_be_a_rollup(bench) -> None:
    bench.write(gpu={"ts": [NOON], "gpu": [1], "node": [1]})
    bench.store.put_windows("ledger1d", [NOON - 43_200.0], {})
    bench.between()
    assert bench.store.first_sample_seconds() == NOON - 43_200


def test_stats_count_rows(bench) -> None:
    bench.write(gpu={"ts": [NOON, NOON], "gpu": [1, 2], "node": [1, 1]}, step={"ts": [NOON], "job": [1]})
    bench.store.put_windows("job5m", [0.0], {"ts": np.array([0.0, 0.0]), "job": np.array([1, 2])})
    bench.between()
    stats = bench.store.stats()
    assert (stats.rows["gpu"], stats.rows["step"], stats.rows["event"], stats.rows["job5m"]) == (2, 1, 0, 2)
    assert stats.pending_batches == 0
    assert stats.problems == ()


def test_what_is_older_than_the_settings_say_goes_and_what_is_younger_stays(bench) -> None:
    day, keeps = 86_400.0, bench.settings
    old, young = NOON - (keeps.raw_days + 2) * day, NOON - (keeps.raw_days - 2) * day
    for at in (old, young):
        bench.write(
            gpu={"ts": [at], "gpu": [1], "node": [1]},
            host={"ts": [at], "job": [1], "node": [1]},
            phase={"ts": [at], "end": [at + 60], "job": [1], "launch": [1], "kind": [1]},
        )
        bench.between()
    ends = {"ledger5m": NOON - keeps.rollup_days * day, "ledger1d": NOON - keeps.hourly_days * day}
    for kind, end in ends.items():
        for window in (end - 2 * day, end + 2 * day):
            bench.store.put_windows(kind, [window], {"ts": np.array([window])})
    assert bench.store.retain(NOON) >= 0
    bench.between()
    if bench.closes or bench.make is MemoryStore:  # an open hour goes as a whole, once it is closed
        assert bench.store.gpu_samples(0, NOON + 1, ())["ts"].tolist() == [young]
        assert bench.store.host_samples("job", 0, NOON + 1, [1])["ts"].tolist() == [young]
        assert bench.store.phases(0, NOON + 1)["ts"].tolist() == [young]
    assert young in bench.store.gpu_samples(0, NOON + 1, ())["ts"].tolist()
    for kind, end in ends.items():
        assert bench.store.done_windows(kind, 0, NOON) == {end + 2 * day}
        assert bench.store.windows(kind, 0, NOON)["ts"].tolist() == [end + 2 * day]


@pytest.mark.parametrize("jobs", [[], [0], [1, 2]])
def test_iterables_may_be_generators(bench, jobs) -> None:
    bench.write(step={"ts": [NOON] * 3, "job": [0, 1, 2]})
    bench.between()
    assert bench.store.steps(NOON, NOON + 1, jobs=(job for job in jobs))["job"].tolist() == jobs
