"""Money of GPU time: fixed and variable part, by node, unknown where there is no price."""

import numpy as np
import pytest
from tests.unit.collector.compute.worked_day import worked_day

from flopwatch.query import LEDGER_CLASSES
from flopwatch_collector.compute import money
from flopwatch_collector.compute.buckets import BUCKETS, CODE
from flopwatch_collector.compute.classes import to_answer
from flopwatch_collector.compute.money import Rates

COST = Rates(fixed_per_gpu_hour=1.872904, variable_per_gpu_hour=0.104)


def rows(*entries):
    """(bucket, node, GPU-hours) as ledger rows."""
    return {
        "bucket": np.array([CODE[name] for name, _, _ in entries], dtype=np.int64),
        "reason": np.zeros(len(entries), dtype=np.int64),
        "node": np.array([node for _, node, _ in entries], dtype=np.int64),
        "job": np.zeros(len(entries), dtype=np.int64),
        "gpu_milliseconds": np.array([round(hours * 3.6e6) for _, _, hours in entries], dtype=np.int64),
        "ts": np.zeros(len(entries)),
    }


@pytest.mark.parametrize(
    ("bucket", "dollars"), [("FREE", 381.26), ("HELD_IDLE", 13.11), ("HELD_EMPTY", 14.98), ("LOST", 8.79)]
)
def test_the_worked_day_in_dollars(bucket, dollars):
    ledger = worked_day().rows()
    own = {name: values[ledger["bucket"] == CODE[bucket]] for name, values in ledger.items()}

    assert round(money.total(own, COST), 2) == dollars


def test_the_money_of_the_classes_adds_up_to_that_of_all_hours():
    ledger = worked_day().rows()
    answer = to_answer(ledger, COST, 0.0, 86_400.0, None)

    # 384 GPU-hours of capacity; 431,760 s of them in buckets 8 to 17.
    whole = 384 * 1.872904 + 431_760 / 3_600 * 0.104
    assert [amount.name for amount in answer.classes] == list(LEDGER_CLASSES)
    assert sum(amount.money for amount in answer.classes) == pytest.approx(whole)


@pytest.mark.parametrize("bucket", BUCKETS)
def test_busy_are_the_buckets_in_which_a_job_works_or_waits(bucket):
    idle = {"MAINT", "FAULT", "UNKNOWN", "SPARE", "FREE", "HELD_EMPTY", "HELD_IDLE"}

    assert money.total(rows((bucket, 1, 1.0)), Rates(fixed_per_gpu_hour=2.0, variable_per_gpu_hour=0.5)) == (
        2.0 if bucket in idle else 2.5
    )


def test_a_node_of_a_group_has_its_own_price():
    rates = Rates(fixed_per_gpu_hour=1.0, by_node={7: (3.0, 0.5)})

    assert money.total(rows(("STEP", 7, 2.0), ("STEP", 8, 2.0), ("FREE", 7, 1.0)), rates) == pytest.approx(
        12.0
    )


def test_a_node_without_a_price_makes_the_sum_unknown():
    rates = Rates(by_node={7: (3.0, 0.0)})

    assert money.total(rows(("STEP", 7, 2.0)), rates) == pytest.approx(6.0)
    assert money.total(rows(("STEP", 7, 2.0), ("STEP", 8, 2.0)), rates) is None
    assert money.by_key(rows(("STEP", 7, 2.0), ("STEP", 8, 2.0)), rates, np.array([0, 1]), 3) == [
        6.0,
        None,
        0.0,
    ]


def test_without_any_price_there_is_no_money():
    assert money.total(rows(("STEP", 7, 2.0)), Rates()) is None
    assert money.by_key(rows(("STEP", 7, 2.0)), Rates(), np.array([0]), 2) == [None, None]
