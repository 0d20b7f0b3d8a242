"""What is said of whole nodes."""

from typing import Any

import numpy as np
import pytest

from flopwatch_collector.compute.buckets import CODE, REASON_CODE
from flopwatch_collector.model import FleetState, Gpu, Node
from flopwatch_collector.schedulers.declared import Standing, Window, standing_of
from flopwatch_collector.views.spending import spent
from flopwatch_collector.views.standing import standings

T0 = 1_000.0


def state() -> FleetState:
    """Node 1 has two GPUs, and had a third that was replaced; node 2 has the same name in another cluster."""
    gpus = [
        Gpu(
            number=n,
            cluster="a",
            node=1,
            slot=f"s{n % 2}",
            uuid=f"G{n}",
            name="",
            from_seconds=0.0,
            to_seconds=5.0 if n == 3 else None,
        )
        for n in (1, 2, 3)
    ]
    nodes = [
        Node(number=n, cluster=cluster, name="n1", first_seen_seconds=0.0, last_seen_seconds=T0)
        for n, cluster in ((1, "a"), (2, "b"))
    ]
    return FleetState(
        generation=1,
        nodes={one.number: one for one in nodes},
        gpus={one.number: one for one in gpus},
        jobs={},
        launches={},
        leases={},
        latest={},
    )


def says(source: str, declaration: Any, gpu: str | None = None, cluster: str = "a") -> Standing:
    return Standing(
        cluster=cluster, node="n1", gpu=gpu, declaration=declaration, since_seconds=T0, source=source
    )


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([], {}),
        ([says("operator", "drain")], {1: "out"}),
        ([says("slurm", "drain")], {1: "out"}),
        ([says("slurm", "maintenance", cluster="b")], {2: "out"}),
        ([says("operator", "faulty")], {1: "out"}),
        ([says("slurm", "faulty")], {1: "down"}),
        ([says("settings", "spare")], {1: "spare"}),
        ([says("slurm", "faulty"), says("operator", "drain")], {1: "out"}),
        ([says("settings", "spare"), says("slurm", "faulty")], {1: "down"}),
        ([says("operator", "drain", "G1")], {}),
        ([says("operator", "drain", "G1"), says("operator", "faulty", "G2")], {1: "out"}),
        ([says("operator", "drain", cluster="c")], {}),
    ],
)
def test_a_node_is_out_down_or_spare_as_the_strongest_word_about_all_of_it(
    said: list[Standing], expected: dict[int, str]
) -> None:
    assert standings(said, state()) == expected


def test_a_maintenance_window_holds_until_it_is_over() -> None:
    window = Window(
        window_id="w", declaration="maintenance", cluster="a", node="n1", from_seconds=T0, until_seconds=T0 + 60.0
    )  # fmt: skip

    found = [standings(standing_of([window], T0 + after), state()) for after in (-0.1, 0.0, 59.9, 60.0)]

    assert found == [{}, {1: "out"}, {1: "out"}, {}]


def test_what_a_job_held_and_what_of_it_was_without_work_is_counted_by_job() -> None:
    hour = 3_600_000
    rows = [  # (job, bucket, GPU milliseconds)
        (7, "STEP", 10 * hour), (7, "HELD_IDLE", 2 * hour), (7, "HELD_EMPTY", hour), (8, "STEP", hour),
        (0, "FREE", hour),
    ]  # fmt: skip
    columns = {
        "job": np.array([row[0] for row in rows]),
        "bucket": np.array([CODE[row[1]] for row in rows]),
        "reason": np.full(len(rows), REASON_CODE[""]),
        "gpu_milliseconds": np.array([row[2] for row in rows]),
    }

    assert spent(columns) == {7: (13.0, 3.0), 8: (1.0, 0.0)}
