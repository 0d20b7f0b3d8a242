"""Questions that take too long are interrupted; the store goes on."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from tests.integration.store.conftest import NOON

from flopwatch_collector.model import BatchId, RawRows
from flopwatch_collector.store.port import TooSlow

ENDLESS = "SELECT count(*) FROM range(10000000) a, range(10000000) b"


@pytest.fixture
def hurried(settings, opened):
    store = opened(replace(settings, statement_seconds=0.3))
    rows = RawRows(gpu={"ts": np.array([NOON]), "gpu": np.array([1]), "node": np.array([1])})
    store.submit(BatchId(node="n", spool="s", sequence=1), rows).result(30)
    return store


def endless(store) -> float:
    """Seconds until an endless question was given up."""
    began = time.monotonic()
    with pytest.raises(TooSlow, match=r"longer than 0\.3 s; ask for a shorter range"):
        store._questions._fetched(ENDLESS)
    return time.monotonic() - began


def test_a_question_that_takes_too_long_is_interrupted_and_the_next_is_answered(hurried) -> None:
    assert 0.25 <= endless(hurried) < 10.0
    assert hurried.gpu_samples(NOON, NOON + 1, ())["gpu"].tolist() == [1]
    assert (hurried.stats().reopened, hurried.stats().problems) == (0, ())


def test_whoever_gets_no_turn_is_told_so_and_all_turns_come_back(hurried) -> None:
    over = []
    askers = [threading.Thread(target=lambda: over.append(endless(hurried))) for _ in range(9)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join(30)
    assert len(over) == 9
    for _ in range(9):
        assert hurried.latest_gpus()["gpu"].tolist() == [1]
        assert hurried.gpu_samples(NOON, NOON + 1, ())["gpu"].tolist() == [1]


def test_short_questions_one_after_the_other_may_together_take_longer(hurried) -> None:
    began = time.monotonic()
    while time.monotonic() - began < 0.7:
        assert hurried.gpu_samples(NOON, NOON + 1, ())["gpu"].tolist() == [1]
