"""A process to be killed: writes batches and windows, and says of each when it is durable.

Usage: ingesting_process.py FOLDER FIRST_SEQUENCE BATCHES_PER_HOUR
"""

import itertools
import sys
from pathlib import Path

import numpy as np

from flopwatch_collector.model import BatchId, RawRows
from flopwatch_collector.store.embedded import EmbeddedStore
from flopwatch_collector.store.port import StoreSettings

GPUS = 40
START = 1_764_504_000.0


def rows(sequence: int) -> RawRows:
    at = START + sequence
    return RawRows(
        gpu={
            "ts": np.full(GPUS, at),
            "gpu": np.arange(1, GPUS + 1),
            "node": np.ones(GPUS),
            "energy_joules": np.full(GPUS, float(sequence)),
        },
        step={"ts": np.array([at]), "job": np.array([1]), "step": np.array([sequence])},
        event={"ts": np.array([at]), "kind": np.array(["xid"]), "code": np.array([sequence])},
    )


def main() -> None:
    folder, first, per_hour = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    now = START + first // per_hour * 3600
    settings = StoreSettings(folder=folder, flush_seconds=0.001, free_disk_ratio=0.0)
    store = EmbeddedStore(settings, lambda: now)
    print("open", flush=True)
    for sequence in itertools.count(first):
        now = START + sequence // per_hour * 3600
        store.submit(BatchId(node="n", spool="s", sequence=sequence), rows(sequence)).result(60)
        print(sequence, flush=True)
        window = 300.0 * (sequence % 7)
        store.put_windows("ledger5m", [window], {"ts": np.array([window]), "put": np.array([sequence])})
        print("window", window, sequence, flush=True)


if __name__ == "__main__":
    main()
