"""ClickHouse's Native format, byte for byte, and the tables' definitions."""

import numpy as np
import pytest

from flopwatch_collector.store.clickhouse import native
from flopwatch_collector.store.clickhouse.arrivals import Snapshot
from flopwatch_collector.store.clickhouse.http import literal
from flopwatch_collector.store.clickhouse.tables import Layout, statements

TYPES = {
    "at": "DateTime64(6, 'UTC')", "n": "UInt32", "x": "Nullable(Float64)", "i": "Nullable(Int64)",
    "text": "Nullable(String)",
}  # fmt: skip


def test_a_block_is_the_bytes_that_the_format_says() -> None:
    block = native.encode({"n": np.array([1.0, 258.0]), "text": np.array(["é", None], dtype=object)}, TYPES)
    assert block == (
        b"\x02\x02"  # columns, rows
        b"\x01n\x06UInt32\x01\0\0\0\x02\x01\0\0"
        b"\x04text\x10Nullable(String)\0\x01\x02\xc3\xa9\0"
    )


def test_what_is_encoded_is_decoded_with_unknown_as_nan_and_none() -> None:
    columns = {
        "at": np.array(["2025-11-30T12:00:00.250001", "1970-01-01"], dtype="datetime64[us]"),
        "n": np.array([0.0, 2**32 - 1]),
        "x": np.array([np.nan, np.inf]),
        "i": np.array([-(2.0**40), np.nan]),
        "text": np.array([None, "x" * 300], dtype=object),
    }
    body = native.encode(columns, TYPES)
    found = native.decode(body + body)
    assert found["at"].tolist() == [1764504000.250001, 0.0] * 2
    assert found["n"].tolist() == [0, 2**32 - 1] * 2
    np.testing.assert_array_equal(found["x"], [np.nan, np.inf] * 2)
    np.testing.assert_array_equal(found["i"], [-(2.0**40), np.nan] * 2)
    assert found["text"].tolist() == [None, "x" * 300] * 2


def test_whole_numbers_without_unknown_stay_whole() -> None:
    found = native.decode(native.encode({"i": np.array([2**53 + 1])}, TYPES))
    assert found["i"].dtype == np.int64
    assert found["i"].tolist() == [2**53 + 1]


def test_an_unknown_value_where_none_may_be_is_refused() -> None:
    with pytest.raises(ValueError, match="n: a value is unknown; allowed: UInt32"):
        native.encode({"n": np.array([np.nan])}, TYPES)


@pytest.mark.parametrize("body", [b"\x01\x01\x01n\x06UInt32\x01", b"\x01", b"\x01\x01\x01n\x04Enum"])
def test_a_body_that_is_cut_short_or_strange_is_refused(body) -> None:
    with pytest.raises(ValueError, match=r"cut short|of type Enum"):
        native.decode(body)


def test_texts_are_quoted() -> None:
    assert literal("it's \\ here") == "'it\\'s \\\\ here'"


def test_a_snapshot_hides_what_is_begun_or_abandoned_and_waits_for_what_is_begun() -> None:
    snapshot = Snapshot(newest=9, begun=(7,), abandoned=(3,))
    assert snapshot.condition == "flush <= 9 AND flush NOT IN (3, 7)"
    assert snapshot.settled == 6
    assert Snapshot(newest=9, abandoned=(3,)).settled == 9
    assert Snapshot(newest=0).condition == "flush <= 0"


def test_a_cluster_has_replicated_shards_of_raw_rows_and_full_copies_of_rollups() -> None:
    made = list(statements(Layout(database="fw", cluster="site", raw_days=14)))
    assert made[0] == "CREATE DATABASE IF NOT EXISTS `fw` ON CLUSTER `site`"
    (shard,) = [each for each in made if "`gpu_shard` ON CLUSTER" in each]
    assert "ReplicatedMergeTree('/clickhouse/fw/{shard}/gpu', '{replica}')" in shard
    assert (
        "PARTITION BY toDate(ts)\nORDER BY (gpu, ts)\nTTL toDateTime(ts) + toIntervalSecond(1209600)" in shard
    )
    (spread,) = [each for each in made if "`fw`.`gpu` ON CLUSTER" in each]
    assert "ENGINE = Distributed(`site`, `fw`, `gpu_shard`, intHash64(node))" in spread
    (ledger,) = [each for each in made if "`ledger5m`" in each]
    assert "ReplicatedMergeTree('/clickhouse/fw/all/ledger5m', '{shard}-{replica}')" in ledger


def test_a_single_server_has_plain_tables_and_very_long_times_have_no_ttl() -> None:
    made = "\n".join(statements(Layout(database="fw", raw_days=36_500)))
    assert "Replicated" not in made
    assert "Distributed" not in made
    assert "TTL" not in made
    assert "`ts` DateTime64(6, 'UTC') CODEC(DoubleDelta, ZSTD(1))" in made
