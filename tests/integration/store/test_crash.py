"""SIGKILL of a real process at any moment: what it said was durable is there, once and whole."""

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.integration.store.ingesting_process import GPUS, START

from flopwatch_collector.store.embedded import EmbeddedStore
from flopwatch_collector.store.port import StoreSettings

PROCESS = Path(__file__).with_name("ingesting_process.py")


def killed_run(folder: Path, first: int, per_hour: int, seconds: float) -> list[list[str]]:
    """What a process said until it was killed."""
    command = [sys.executable, str(PROCESS), str(folder), str(first), str(per_hour)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "open\n"
        time.sleep(seconds)
        process.kill()
        return [line.split() for line in process.stdout if line.endswith("\n")]


def counts(values) -> Counter:
    return Counter(int(value) for value in values)


@pytest.mark.parametrize("per_hour", [4, 1000], ids=["closing hours", "open hour"])
def test_killed_at_any_moment_nothing_said_durable_is_lost_or_doubled(tmp_path, per_hour) -> None:
    moments = np.random.default_rng(per_hour)
    said, windows, first = set(), {}, 0
    for _ in range(5):
        for words in killed_run(tmp_path, first, per_hour, moments.uniform(0.05, 0.5)):
            if words[0] == "window":
                windows[float(words[1])] = int(words[2])
            else:
                said.add(int(words[0]))
        first = max(0, max(said, default=0) - 3)  # some that are durable are sent again

    store = EmbeddedStore(StoreSettings(folder=tmp_path))
    try:
        store.settle()
        assert (store.stats().problems, store.check()) == ((), ())
        end = START + 1e6
        samples = store.gpu_samples(START, end, ("energy_joules",))
        batches = counts(samples["energy_joules"])
        assert said <= batches.keys()
        assert set(batches.values()) == {GPUS}
        once = dict.fromkeys(batches, 1)
        assert counts(store.steps(START, end)["step"]) == once
        assert counts(store.events(START, end)["code"]) == once
        assert store.latest_gpus()["energy_joules"].tolist() == [max(batches)] * GPUS
        found = store.windows("ledger5m", 0, 1e6)
        put = dict(zip(found["ts"].tolist(), found["put"].tolist(), strict=True))
        assert len(put) == len(found["ts"])
        for window, sequence in windows.items():
            assert put[window] >= sequence
        assert len(said) >= 5
        np.testing.assert_array_less(samples["gpu"][:-1], samples["gpu"][1:] + 0.5)
    finally:
        store.close()
