"""What pushed events say of whole nodes: begun and not ended, of the node or of each of its GPUs."""

from typing import Any

import numpy as np
import pytest

from flopwatch_collector.model import EVENT_COLUMNS, Columns, FleetState, Gpu, Node, empty
from flopwatch_collector.views.told_standing import STANDINGS, told

Row = tuple[float, str, str, int, int]
"""Time, kind, value, node, GPU (0: the node)."""


def state() -> FleetState:
    """Node 1 with GPUs 11 and 12, and a card that was replaced; node 2 without GPUs."""
    nodes = {
        number: Node(
            number=number, cluster="a", name=f"n{number}", first_seen_seconds=0.0, last_seen_seconds=9.0
        )
        for number in (1, 2)
    }
    gpus = {
        number: Gpu(
            number=number, cluster="a", node=1, slot=str(number), uuid=f"g{number}", name="H100", from_seconds=0.0,
            memory_total_bytes=1, to_seconds=ended,
        )
        for number, ended in ((11, None), (12, None), (13, 5.0))
    }  # fmt: skip
    return FleetState(
        generation=1, nodes=nodes, gpus=gpus, jobs={}, launches={}, leases={}, latest=empty(("ts",))
    )


def events(*rows: Row) -> Columns:
    made: dict[str, Any] = {name: np.full(len(rows), np.nan) for name in EVENT_COLUMNS}
    times, kinds, values, nodes, gpus = zip(*rows, strict=True)
    made |= {"ts": np.array(times), "node": np.array(nodes, dtype=float), "gpu": np.array(gpus, dtype=float)}
    made |= {"kind": np.array(kinds, dtype=object), "value": np.array(values, dtype=object)}
    return made


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([(1.0, "drain", "begin", 1, 0)], {1: "drain"}),
        ([(1.0, "drain", "begin", 2, 0), (2.0, "drain", "end", 2, 0)], {}),
        ([(2.0, "drain", "end", 2, 0), (1.0, "drain", "begin", 2, 0)], {}),
        ([(1.0, "health", "faulty", 1, 0)], {1: "health"}),
        ([(1.0, "health", "faulty", 1, 0), (2.0, "health", "ok", 1, 0)], {}),
        ([(1.0, "drain", "begin", 1, 0), (2.0, "health", "ok", 1, 0)], {}),
        ([(1.0, "health", "faulty", 1, 11)], {}),
        ([(1.0, "health", "faulty", 1, 11), (1.0, "health", "faulty", 1, 12)], {1: "health"}),
        ([(1.0, "spare", "begin", 1, 0), (2.0, "maintenance", "begin", 1, 0)], {1: "maintenance"}),
        ([(1.0, "maintenance", "begin", 7, 0)], {}),
        ([(1.0, "xid", "", 1, 11)], {}),
    ],
)
def test_what_has_begun_and_not_ended_holds(rows: list[Row], found: dict[int, str]) -> None:
    assert told(events(*rows), state()) == found


def test_a_drain_and_maintenance_are_out_of_service_a_fault_is_news() -> None:
    assert {kind: STANDINGS[kind] for kind in ("drain", "maintenance", "health", "spare")} == {
        "drain": "out", "maintenance": "out", "health": "down", "spare": "spare",
    }  # fmt: skip
