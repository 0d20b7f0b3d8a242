"""Declared facts beat every other, and only what they speak of."""

from typing import Any

import numpy as np
import pytest
from tests.unit.collector.compute.mfu_scene import SHAPE, facts

from flopwatch.wire import RunFacts
from flopwatch_collector.compute.mfu import tokens_of
from flopwatch_collector.compute.runs import join

LOG = facts(global_batch_size=64, sequence_length=128, tokens_per_step=8192, world_size=8, dtype="bf16")


def declared(**more: Any) -> RunFacts:
    return RunFacts(source="declared", origin="declared", **more)


def rows(*tokens: float) -> dict[str, np.ndarray]:
    return {
        "ts": np.arange(len(tokens), dtype=float),
        "tokens": np.array(tokens),
        "steps_covered": np.full(len(tokens), 2.0),
    }


def test_each_declared_fact_wins_and_the_others_stay() -> None:
    run = join([LOG, facts(source="sdk", world_size=16), declared(world_size=32)])

    assert (run.world_size, run.dtype, run.shape) == (32, "bf16", SHAPE)
    assert run.worlds == {}


def test_the_first_of_two_declarations_counts() -> None:
    assert join([declared(world_size=32), LOG, declared(world_size=4)]).world_size == 32


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"global_batch_size": 128}, 128 * 128 * 2, id="batch with the log's length"),
        pytest.param({"sequence_length": 256}, 64 * 256 * 2, id="length with the log's batch"),
        pytest.param({"tokens_per_step": 1000}, 1000 * 2, id="tokens"),
        pytest.param({"tokens_per_step": 1000, "global_batch_size": 5}, 1000 * 2, id="tokens before batch"),
    ],
)
def test_tokens_of_a_step_follow_what_is_declared_whatever_the_steps_say(
    given: dict[str, int], expected: float
) -> None:
    run = join([LOG, declared(**given)])

    assert tokens_of(rows(777.0, np.nan), run).tolist() == [expected, expected]


def test_a_length_alone_says_nothing_of_the_tokens_of_a_step() -> None:
    log = facts(tokens_per_step=8192)
    run = join([log, declared(sequence_length=256)])

    assert (run.sequence_length, run.step_tokens) == (256, 8192.0)
    assert tokens_of(rows(777.0, np.nan), run).tolist() == [777.0, 16384.0]
