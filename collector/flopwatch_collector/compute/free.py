"""Free time of the ledger by its reason: what waited in the queue of its cluster."""

import numpy as np
import numpy.typing as npt

from flopwatch_collector.compute import demand
from flopwatch_collector.compute.buckets import CODE, WINDOW_MILLISECONDS
from flopwatch_collector.compute.inputs import LedgerInputs
from flopwatch_collector.compute.job_state import KINDS
from flopwatch_collector.compute.segments import Segments, TrackTable

Integers = npt.NDArray[np.int64]
Column = npt.NDArray[np.int64] | npt.NDArray[np.float64]


def free_rows(
    inputs: LedgerInputs, table: TrackTable, found: Segments, free: npt.NDArray[np.bool_]
) -> list[tuple[Column, ...]]:
    """Columns (window, node, job, kind, milliseconds, useful milliseconds) of the free segments, by cluster."""
    if not free.any():
        return []
    clusters = {number: node.cluster for number, node in inputs.nodes.items()}
    waiting = demand.waiting_of(inputs.queues, clusters)
    node = table.node[found.track]
    numbers, counts = np.unique(table.node[table.gpu > 0], return_counts=True)
    sizes = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
    place = np.array([clusters.get(number, "") for number in node.tolist()], dtype=object)
    parts: list[tuple[Column, ...]] = []
    for cluster in sorted(set(place[free].tolist())):
        rows = np.flatnonzero(free & (place == cluster))
        own = demand.FreeTime(
            node=node[rows],
            start=found.start[rows],
            end=found.end[rows],
            amount=found.amount[rows],
            size=sizes,
        )
        amounts = demand.explained(own, waiting.get(cluster, []))
        row, column = np.nonzero(amounts)
        kind = CODE["FREE"] * KINDS + demand.CODES[column]
        nothing = np.zeros(row.size)
        window = own.start[row] // WINDOW_MILLISECONDS
        parts.append((window, own.node[row], nothing, kind, amounts[row, column], nothing))
    return parts
