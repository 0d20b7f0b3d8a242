"""A node eight hours ahead."""

from tests.integration.collector.batches import NOW, MemoryControl, batch, device, sample, slurm, step

from flopwatch import wire
from flopwatch_collector.ingest.directory import Directory

AHEAD = 8 * 3600.0


def resolved() -> tuple[Directory, object]:
    fleet = Directory(MemoryControl(), lambda: NOW)
    there = NOW + AHEAD
    sent = batch(
        at=there - 1,
        gpus=(device("A"),),
        gpu_samples=(sample("A", there - 1),),
        node_samples=(wire.NodeSample(time_seconds=there - 2),),
        jobs=(slurm(start_time_seconds=there - 500, submit_time_seconds=NOW - 600),),
        steps=(step(1, "slurm:77", there - 3),),
        phases=(wire.Phase(job="slurm:77", kind="eval", begin_seconds=there - 9, end_seconds=there - 4),),
        leases=(
            wire.Lease(lease_id="77", job="slurm:77", gpus=("A",), source="slurm", start_seconds=NOW - 550.5),
        ),
    )
    return fleet, fleet.resolve(sent, NOW, there).rows


def test_its_measurements_are_shifted_to_our_time() -> None:
    _, rows = resolved()

    assert rows.gpu["ts"].tolist() == [NOW - 1]  # type: ignore[attr-defined]
    assert rows.node["ts"].tolist() == [NOW - 2]  # type: ignore[attr-defined]
    assert rows.step["ts"].tolist() == [NOW - 3]  # type: ignore[attr-defined]
    assert (rows.phase["ts"].tolist(), rows.phase["end"].tolist()) == ([NOW - 9], [NOW - 4])  # type: ignore[attr-defined]


def test_the_offset_stands_at_the_node() -> None:
    fleet, _ = resolved()

    assert fleet.state().nodes[1].clock_offset_seconds == -AHEAD
    assert fleet.state().nodes[1].last_seen_seconds == NOW - 1


def test_process_times_are_shifted_and_the_schedulers_are_not() -> None:
    fleet, _ = resolved()
    (job,) = fleet.state().jobs.values()
    (lease,) = fleet.state().leases.values()

    assert job.start_seconds == NOW - 500
    assert lease.start_seconds == NOW - 551


def test_a_clock_that_is_set_right_again_is_no_longer_marked() -> None:
    fleet, _ = resolved()

    fleet.resolve(batch(at=NOW + 10, sequence=2), NOW + 10.5, NOW + 10.4)

    assert fleet.state().nodes[1].clock_offset_seconds == 0.0
