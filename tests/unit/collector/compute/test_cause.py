"""A job's likely cause: the largest explanation, or none."""

import numpy as np
import pytest

from flopwatch_collector.compute.buckets import CODE, INTEGER_COLUMNS
from flopwatch_collector.compute.cause import NodeSignal, Signals, likely_cause, slow_node

HOUR = 3_600_000


def rows(**hours):
    count = len(hours)
    table = {name: np.zeros(count, dtype=np.int64) for name in INTEGER_COLUMNS}
    table["bucket"] = np.array([CODE[name] for name in hours], dtype=np.int64)
    table["gpu_milliseconds"] = np.array([round(value * HOUR) for value in hours.values()], dtype=np.int64)
    return {"ts": np.zeros(count), **table}


@pytest.mark.parametrize(
    ("hours", "code"),
    [
        pytest.param({"STEP": 80, "HANG": 8, "LOST": 12}, "hang", id="a-hang-comes-first"),
        pytest.param({"STEP": 80, "CKPT": 8, "LOST": 12}, "lost", id="the-larger-one"),
        pytest.param({"BUSY_OPAQUE": 4, "HELD_IDLE": 96}, "held_idle", id="held-idle"),
        pytest.param({"HELD_EMPTY": 8}, "held_empty", id="held-empty"),
        pytest.param({"STEP": 85, "DATA_WAIT": 15}, "data_wait", id="data"),
        pytest.param({"STEP": 90, "GAP": 10}, "gap", id="gap"),
    ],
)
def test_the_bucket_that_explains_most_names_the_cause(hours, code):
    assert likely_cause(rows(**hours), Signals(gpus=8)).code == code


def test_a_cause_says_how_long_it_lasted_on_the_wall():
    found = likely_cause(rows(STEP=56, HELD_IDLE=24), Signals(gpus=8))

    assert found.values == {"ratio": 0.3, "hours": 3.0}


@pytest.mark.parametrize(
    "hours", [{"STEP": 97, "GAP": 3}, {"STEP": 91, "DATA_WAIT": 9}, {"STEP": 0.05, "GAP": 0.01}, {}]
)
def test_thin_evidence_gives_no_cause(hours):
    assert likely_cause(rows(**hours), Signals(gpus=8)) is None


def nodes(*clocks):
    return tuple(NodeSignal(node=f"n{n}", sm_clock_hertz=clock) for n, clock in enumerate(clocks))


def test_one_node_with_a_clearly_slower_clock_is_the_straggler():
    assert slow_node(nodes(1.98e9, 1.97e9, 1.41e9, 1.98e9)) == "n2"


@pytest.mark.parametrize(
    "clocks",
    [
        pytest.param((1.98e9, 1.4e9), id="too-few-nodes"),
        pytest.param((1.98e9, 1.97e9, 1.9e9, 1.98e9), id="a-little-slower"),
        pytest.param((1.98e9, 1.4e9, 1.4e9, 1.98e9), id="two-of-them"),
        pytest.param((None, None, None), id="clocks-unknown"),
    ],
)
def test_without_clear_evidence_no_node_is_named(clocks):
    assert slow_node(nodes(*clocks)) is None


def test_throttling_of_one_slow_node_is_a_straggler_by_name():
    signals = Signals(gpus=8, nodes=nodes(1.75e9, 1.75e9, 1.14e9, 1.75e9))

    found = likely_cause(rows(STEP=65, THROTTLE=35), signals)

    assert (found.code, found.values["node"]) == ("straggler", "n2")
