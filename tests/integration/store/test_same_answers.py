"""Every engine gives the answers of plain lists, for data of all kinds, spread over hours and arrivals."""

import numpy as np
import pytest
from tests.fixtures.memory_store import MemoryStore
from tests.integration.store.conftest import NOON

from flopwatch_collector.model import GPU_COLUMNS, GPU_METRICS, BatchId, RawRows
from flopwatch_collector.store.embedded import EmbeddedStore
from flopwatch_collector.store.schema import INTEGER, TABLES


def holes(rng, values):
    return np.where(rng.random(len(values)) < 0.2, np.nan, values)


def measures(rng, table, names, count):
    """Values of the table's columns, each a fifth unknown: whole numbers where it counts, else between 0 and 1."""
    return {
        name: holes(
            rng,
            rng.integers(0, 2**40, count) if TABLES[table].columns[name] == INTEGER else rng.random(count),
        )
        for name in names
    }


def others(table, *known):
    return [name for name in TABLES[table].columns if name not in known]


def gpu_rows(rng, count, own):
    moments = rng.permutation(80_000)[:count] / 10 - 3000 + own
    return {
        "ts": NOON + moments,
        "gpu": rng.integers(1, 30, count),
        "node": rng.integers(1, 5, count),
        "job": rng.integers(0, 6, count),
        "interval_seconds": np.full(count, 10.0),
        **measures(rng, "gpu", GPU_METRICS, count),
    }


def batch_rows(rng, own):
    """``own`` seconds make the times of this batch no other's, so that no order is left open."""
    count = int(rng.integers(1, 40))
    at = NOON + rng.permutation(8000)[:count] - 3000.0 + own
    ports = rng.choice(np.array(["mlx5_0/1", "mlx5_1/1", "eth0"]), count)
    return RawRows(
        gpu=gpu_rows(rng, count, own),
        node={
            "ts": at, "node": rng.integers(1, 4, count),
            **measures(rng, "node", others("node", "ts", "node"), count),
        },
        host={
            "ts": at, "node": rng.integers(1, 4, count), "job": rng.integers(1, 6, count),
            **measures(rng, "host", others("host", "ts", "node", "job"), count),
        },
        port={
            "ts": at,
            "node": rng.integers(1, 4, count),
            "port": ports,
            "role": np.where(ports == "eth0", "ethernet", "rdma"),
            "transmit_bytes": rng.integers(0, 10**12, count),
            "receive_bytes": rng.integers(0, 10**12, count),
            **measures(rng, "port", ("errors", "waits", "link_up", "link_rate_bits_per_second"), count),
        },
        step={
            "ts": at, "job": rng.integers(1, 6, count), "launch": rng.integers(1, 9, count),
            **measures(rng, "step", others("step", "ts", "job", "launch", "node", "step"), count),
        },
        phase={
            "ts": at, "end": holes(rng, at + rng.integers(1, 500, count)), "job": rng.integers(1, 6, count),
            "launch": rng.integers(1, 3, count), "kind": rng.integers(0, 5, count),
            **measures(rng, "phase", ("step", "blocking", "committed"), count),
        },
        event={
            "ts": at, "kind": rng.choice(np.array(["xid", "drain", "health"]), count), "code": at // 1 % 100,
            "node": rng.integers(1, 4, count), "gpu": rng.integers(0, 30, count),
            "value": rng.choice(np.array(["begin", None], dtype=object), count),
            "text": np.array([f"text {i}" for i in at], dtype=object),
        },
    )  # fmt: skip


def window_rows(rng, windows):
    pairs = [(window, job) for window in windows for job in range(int(rng.integers(0, 4)))]
    rows = {
        "ts": np.array([window for window, _ in pairs], dtype=float),
        "job": np.array([job for _, job in pairs], dtype=int),
    }
    for name in rng.choice(["a", "b", "c"], 2, replace=False):
        rows[name] = holes(rng, rng.random(len(pairs)))
    return rows


def filled(store, seed, after_batch):
    rng = np.random.default_rng(seed)
    for sequence in range(40):
        batch = BatchId(node=f"n{rng.integers(3)}", spool="s", sequence=int(rng.integers(30)))
        store.submit(batch, batch_rows(rng, sequence / 64)).result(30)
        windows = sorted({float(300 * at) for at in rng.integers(0, 40, 5)})
        store.put_windows("ledger5m", windows, window_rows(rng, windows))
        after_batch(sequence)
    store.settle()


def answers(store):
    yield store.latest_gpus()
    for start, end in ((NOON - 1e6, NOON + 1e6), (NOON, NOON + 1800), (NOON - 3000, NOON - 2990)):
        yield store.gpu_samples(start, end, GPU_COLUMNS)
        yield store.gpu_samples(start, end, ("job",), gpus=[1, 5, 7])
        yield store.job_series(start, end, 300)
        yield store.job_series(start, end, 60, jobs=[2, 3])
        yield store.gpu_series(start, end, 300, GPU_METRICS, [1, 5, 7])
        yield store.node_series(start, end, 600, [1, 2, 3])
        yield store.port_samples(start, end, [1, 3])
        yield store.host_samples("node", start, end, [1, 2])
        yield store.host_samples("job", start, end, [2, 4])
        yield store.steps(start, end)
        yield store.phases(start, end)
        yield store.phases(start, end, jobs=[1, 4])
        yield store.events(start, end)
        yield store.events(start, end, ["xid"])
    for start, end in ((0, 1e6), (600, 3000)):
        yield store.windows("ledger5m", start, end)
        yield store.windows("ledger5m", start, end, jobs=[1])


def assert_same_answers(store, expected):
    assert store.done_windows("ledger5m", 0, 1e6) == expected.done_windows("ledger5m", 0, 1e6)
    assert store.first_sample_seconds() == expected.first_sample_seconds()
    for at, (found, wanted) in enumerate(zip(answers(store), answers(expected), strict=True)):
        assert set(found) == set(wanted), at
        for name, values in wanted.items():
            if values.dtype == object:
                assert found[name].tolist() == values.tolist(), (at, name)
            else:
                np.testing.assert_allclose(found[name], values, rtol=1e-12, err_msg=f"{at} {name}")


@pytest.mark.parametrize("seed", [1])
@pytest.mark.parametrize("hour_every", [1000, 13, 3])
def test_answers_are_those_of_plain_lists(settings, clock, seed, hour_every) -> None:
    expected = MemoryStore(settings, clock)
    filled(expected, seed, lambda at: None)
    store = EmbeddedStore(settings, clock)
    try:

        def after_batch(at):
            if at % hour_every == hour_every - 1:
                clock.now += 3600

        filled(store, seed, after_batch)
        assert_same_answers(store, expected)
    finally:
        store.close()
