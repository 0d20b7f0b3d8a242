from dataclasses import replace

import pytest

from flopwatch_collector.compute.detection.lemons import Incident, lemons
from flopwatch_collector.compute.detection.peers import (
    GpuSignal,
    LinkSignal,
    missing_signals,
    suspect_of,
)

GPUS = tuple(
    GpuSignal(
        node=f"n{index // 4}",
        gpu=str(index % 4),
        rank=index,
        local_compute_seconds=10.0,
        sm_clock_hertz=1.98e9,
    )
    for index in range(16)
)


def changed(rank: int, **values: object) -> tuple[GpuSignal, ...]:
    return tuple(replace(gpu, **values) if gpu.rank == rank else gpu for gpu in GPUS)


def test_alike_gpus_have_no_suspect() -> None:
    assert suspect_of(GPUS) is None


def test_the_rank_that_computes_longest_is_named_with_its_hardware() -> None:
    found = suspect_of(changed(5, local_compute_seconds=13.5, sm_clock_hertz=1.4e9, throttle_share=0.8))

    assert found is not None
    assert (found.node, found.gpu, found.rank, found.hardware) == ("n1", "1", 5, "throttle")
    assert found.excess_ratio == pytest.approx(1 - 10 / 13.5)


def test_slow_ranks_on_several_nodes_name_nobody() -> None:
    two = tuple(replace(g, local_compute_seconds=13.0) if g.rank in (1, 9) else g for g in GPUS)

    found = suspect_of(two)

    assert found is not None
    assert (found.kind, found.node, found.gpu) == ("compute", None, None)


def test_a_slow_pipeline_stage_is_imbalance() -> None:
    staged = tuple(
        replace(g, stage=(g.rank or 0) // 4, local_compute_seconds=13.0 if (g.rank or 0) >= 12 else 10.0)
        for g in GPUS
    )

    found = suspect_of(staged)

    assert found is not None
    assert (found.kind, found.node) == ("imbalance", None)


def test_a_slow_clock_is_enough_to_name_a_gpu() -> None:
    bare = tuple(replace(g, local_compute_seconds=None) for g in changed(5, sm_clock_hertz=1.4e9))

    found = suspect_of(bare)

    assert found is not None
    assert (found.node, found.gpu, found.hardware) == ("n1", "1", "slow_clock")


def test_slow_clocks_on_two_nodes_name_the_first_and_tell_the_other() -> None:
    def clocks(first: float, second: float) -> tuple[GpuSignal, ...]:
        slow = {9: first, 13: second}
        return tuple(
            replace(gpu, local_compute_seconds=None, sm_clock_hertz=slow.get(gpu.rank or 0, 1.98e9))
            for gpu in GPUS
        )

    # Whichever is slower in a report, it is the same one that is named.
    for seen in (clocks(1.2e9, 1.4e9), clocks(1.4e9, 1.2e9)):
        found = suspect_of(seen)
        assert found is not None
        assert (found.node, found.gpu, found.rank, found.also) == ("n2", "1", 9, ("n3",))


def test_links_that_are_down_on_fewer_than_half_of_the_nodes_are_told_together() -> None:
    links = tuple(LinkSignal(node=f"n{index}", link_up=index not in (1, 3)) for index in range(5))

    found = suspect_of((), links)
    assert found is not None
    assert (found.node, found.hardware, found.also) == ("n1", "link_down", ("n3",))
    assert suspect_of((), links[:4]) is None


def test_a_spread_of_clocks_singles_nobody_out() -> None:
    spread = tuple(
        replace(g, local_compute_seconds=None, sm_clock_hertz=1.98e9 * (0.90 + 0.01 * (g.rank or 0)))
        for g in GPUS
    )

    assert suspect_of(spread) is None


def test_a_node_that_carries_less_while_all_compute_alike_is_a_slow_link() -> None:
    links = tuple(
        LinkSignal(node=f"n{i}", bytes_per_second=20e9 if i != 2 else 12e9, errors=3) for i in range(4)
    )

    found = suspect_of(GPUS, links)

    assert found is not None
    assert (found.kind, found.node, found.hardware) == ("link", "n2", "link_errors")


def test_longer_tensor_activity_alone_names_nobody() -> None:
    tensor = tuple(
        GpuSignal(node=g.node, gpu=g.gpu, tensor_active_ratio=0.5 if g.rank == 3 else 0.4) for g in GPUS
    )

    found = suspect_of(tensor)

    assert found is not None
    assert found.node is None


def test_low_power_counts_only_where_clocks_are_unknown() -> None:
    power = tuple(
        GpuSignal(node=g.node, gpu=g.gpu, power_watts=400.0 if g.rank == 3 else 650.0) for g in GPUS
    )

    found = suspect_of(power)

    assert found is not None
    assert (found.node, found.hardware) == ("n0", "low_power")
    assert suspect_of(tuple(replace(g, sm_clock_hertz=1.98e9) for g in power)) is None


def test_missing_signals_are_named() -> None:
    bare = tuple(GpuSignal(node=g.node, gpu=g.gpu) for g in GPUS)

    assert missing_signals(bare, ()) == ("local_compute_seconds", "sm_clock_hertz", "power_watts", "nic_rate")


def incident(node: str, job: str, days: float) -> Incident:
    return Incident(node=node, job_id=job, time_seconds=1e9 - days * 86_400.0, kind="straggler")


def test_a_node_that_keeps_appearing_is_a_lemon() -> None:
    seen = [incident("n7", f"j{i}", i) for i in range(4)] + [incident("n1", "j1", 2)]

    found = lemons(seen, nodes=100, now=1e9)

    assert [(one.node, one.incidents, one.jobs) for one in found] == [("n7", 4, 4)]


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param([incident("n7", "j1", i) for i in range(4)], id="one-job-only"),
        pytest.param([incident("n7", f"j{i}", 20 + i) for i in range(4)], id="long-ago"),
        pytest.param(
            [incident(f"n{n}", f"j{i}", i) for n in range(10) for i in range(3)], id="as-all-others"
        ),
    ],
)
def test_what_chance_explains_is_no_lemon(seen: list[Incident]) -> None:
    assert lemons(seen, nodes=100, now=1e9) == ()


def test_gpus_of_a_node_that_throttle_together_are_one_incident_and_no_lemon() -> None:
    eight = [Incident(node="n1", job_id=None, time_seconds=1e9 - 600.0, kind="HwThrottle") for _ in range(8)]
    later = [
        Incident(node="n1", job_id=job, time_seconds=1e9 - 90_000.0 * day, kind="Straggler")
        for day, job in ((1, "a"), (2, "b"))
    ]

    assert lemons(eight, nodes=100, now=1e9) == ()
    (found,) = lemons([*eight, *later], nodes=100, now=1e9)
    assert (found.node, found.incidents, found.jobs) == ("n1", 3, 3)
