"""An open file of which blocks are damaged: a start goes on with what can be read, and says what cannot."""

import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from tests.integration.store.conftest import NOON

from flopwatch_collector.model import BatchId, RawRows

ROWS = 60_000
BLOCK_BYTES = 262_144
FILE = "000000001.duckdb"


def batch(sequence: int) -> BatchId:
    return BatchId(node="n", spool="s", sequence=sequence)


@pytest.fixture
def left(store, settings):
    """A folder as a killed process leaves it, with its rows in the file itself."""
    random = np.random.default_rng(2)
    gpu = {
        "ts": np.full(ROWS, NOON),
        "gpu": np.arange(ROWS),
        "node": np.ones(ROWS),
        "power_watts": random.random(ROWS),
    }
    event = {"ts": np.array([NOON]), "kind": np.array(["xid"]), "code": np.array([7])}
    store.submit(batch(1), RawRows(gpu=gpu, event=event)).result(30)
    with store._ground.database.cursor() as cursor:
        cursor.execute("CHECKPOINT hot_000000001")
    copy = settings.folder.with_name("copy")
    shutil.copytree(settings.folder, copy)
    return replace(settings, folder=copy)


@pytest.mark.parametrize("share", [0.15, 0.4, 0.65, 0.9])
def test_a_damaged_block_costs_its_rows_and_not_the_start(left, opened, share) -> None:
    path = left.folder / "raw" / "hot" / FILE
    content = bytearray(path.read_bytes())
    at = int(len(content) * share) // BLOCK_BYTES * BLOCK_BYTES + 12_288 + 100
    content[at : at + 64] = bytes(byte ^ 0x5A for byte in content[at : at + 64])
    path.write_bytes(content)

    again = opened(left)
    found = len(again.gpu_samples(NOON, NOON + 1, ("power_watts",))["ts"])
    problems = " ".join(again.stats().problems)
    if found < ROWS:
        assert "is damaged" in problems or "could not be opened and was set aside" in problems
        if lost := re.search(r"(\d+) rows of gpu could not be read", problems):
            assert int(lost[1]) == ROWS - found
            assert again.events(NOON, NOON + 1)["code"].tolist() == [7]
            assert again.submit(batch(1), RawRows()).result(30).duplicate is True
        assert [each.code for each in again.check()] == ["set_aside"] * len(again.check())
        assert len(again.check()) >= 1
    assert again.submit(batch(2), RawRows()).result(30).duplicate is False
    again.close()

    third = opened(left)
    assert third.stats().problems == ()
    assert len(third.gpu_samples(NOON, NOON + 1, ("power_watts",))["ts"]) == found
    assert third.submit(batch(2), RawRows()).result(30).duplicate is True
