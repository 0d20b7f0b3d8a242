"""Figures of a window, each worked out by hand."""

import numpy as np
import pytest

from flopwatch_collector.compute.diagnosis import nvlink, ports, window
from flopwatch_collector.compute.diagnosis.window import RankTime

NAN = float("nan")


def columns(**values):
    return {
        name: np.array(each, dtype=object if name in ("port", "role") else float)
        for name, each in values.items()
    }


def test_a_rate_leaves_out_gaps_in_which_the_counter_fell_and_unknown_values() -> None:
    rows = columns(gpu=[3] * 5 + [4], ts=[0, 10, 20, 30, 40, 0], bytes=[100, 300, NAN, 50, 250, 5])

    found = window.growth(rows, "bytes")

    # 200 in 10 s, then a reset, then 200 in 10 s; of one value nothing grew.
    assert {number: each.rate for number, each in found.items()} == {3: 20.0}


def test_the_95th_percentile_lies_between_two_samples_and_needs_nine_in_ten() -> None:
    # Of 1 to 21 the 20th; of 1 to 11 half way between the 10th and the 11th.
    assert window.percentile_95(np.arange(21.0, 0.0, -1.0)) == 20.0
    assert window.percentile_95(np.arange(1.0, 12.0)) == pytest.approx(10.5)
    assert window.percentile_95(np.array([1.0] * 8 + [NAN])) is None
    assert window.percentile_95(np.empty(0)) is None


def test_a_mean_over_gpus_is_unknown_when_one_of_them_is() -> None:
    assert window.mean_over({1: 2.0, 2: 4.0}, {1: None, 2: None}) == 3.0
    assert window.mean_over({1: 2.0}, {1: None, 2: None}) is None
    assert window.mean_over({}, {}) is None


def test_the_spread_is_between_gpus_of_one_node_over_two_minutes() -> None:
    times = list(range(0, 301, 30))
    devices = {
        number: columns(ts=times, node=[node] * 11, kernel_active_ratio=shares)
        for number, node, shares in (
            (1, 1, [0.9] * 11), (2, 1, [0.1] * 6 + [0.7] * 5), (3, 2, [0.2] * 11),
        )
    }  # fmt: skip

    # Of the last 120 s: 0.9 and 0.7 on node 1; node 2 has one GPU.
    assert window.spread(devices, 300.0) == pytest.approx(0.2)
    assert window.spread({3: devices[3]}, 300.0) is None
    assert window.spread(devices, 390.0) is None


def test_shares_of_samples_by_clock_reason() -> None:
    reasons = np.array([0x0, 0x40, 0x08, 0x4, NAN])

    assert window.throttle_share(reasons) == 0.5
    assert window.power_cap_share(reasons) == 0.25
    assert window.throttle_share(np.array([NAN])) is None


def test_a_rank_computes_when_it_neither_waits_for_the_network_nor_for_data() -> None:
    steps = columns(
        ts=[10, 20, 10, 20], launch=[1, 1, 2, 2], node=[7, 7, 8, 8], rank=[0, 0, 1, 1], seconds=[10] * 4,
        steps_covered=[1] * 4, data_wait_seconds=[1, 1, NAN, NAN],
    )  # fmt: skip
    waits = columns(ts=[7, 18], end=[10, NAN], launch=[1, 1])

    # 20 s less 3 s, less 2 s of a wait that still lasts at the last step's end, less 2 s of data: 13 over two steps.
    # Of 20 s, 5 were waits: a quarter of its steps.
    times = window.rank_times(steps, waits, 0.0, 20.0)
    assert times == (RankTime(node=7, rank=0, seconds=6.5, waiting_ratio=0.25),)
    assert window.exposed_communication(times) == 0.25
    assert window.exposed_communication(()) is None


def port(name, values, *, role="rdma", up=1.0, rate=400e9, errors=0.0):
    count = len(values)
    return columns(
        ts=range(count), node=[1] * count, port=[name] * count, role=[role] * count, transmit_bytes=values,
        receive_bytes=[0.0] * count, errors=[errors * at for at in range(count)], waits=[0.0] * count,
        link_up=[up] * count, link_rate_bits_per_second=[rate] * count,
    )  # fmt: skip


def joined(*tables):
    return {name: np.concatenate([each[name] for each in tables]) for name in tables[0]}


def test_a_nodes_share_of_line_rate_is_over_its_rdma_ports_that_are_up() -> None:
    rows = joined(
        port("mlx5_0/1", [0, 40e9, 80e9], errors=2.0),
        port("mlx5_1/1", [0, 10e9, 20e9]),
        port("mlx5_2/1", [0, 0, 0], up=0.0, rate=NAN),
        port("eth0", [0, 9e9, 18e9], role="ethernet", rate=100e9),
    )

    links = ports.of_nodes(ports.windows(rows))[1]

    assert links.bytes_per_second == 50e9
    assert links.line_ratio == pytest.approx(0.5)
    assert (links.errors, links.link_up) == (4, True)


def test_each_port_of_each_node_has_its_own_course_in_whatever_order_rows_come() -> None:
    other = port("mlx5_0/1", [7, 6, 11], up=0.0, rate=100e9)
    rows = joined(port("mlx5_0/1", [0, 40, 80], errors=2.0), other | {"node": other["node"] + 1})
    rows["link_up"][4], rows["link_rate_bits_per_second"][5] = 1.0, NAN
    shuffled = {name: values[[5, 2, 0, 3, 1, 4]] for name, values in rows.items()}

    first, second = sorted(ports.windows(shuffled), key=lambda one: one.node)

    assert (first.node, first.transmit_bytes_per_second, first.new_errors) == (1, 40.0, 4)
    assert (first.link_up, first.was_up, first.best_bits_per_second) == (True, True, 400e9)
    # The counter fell by 1 in the first gap and grew by 5 in the second; the link was up in between.
    assert (second.node, second.transmit_bytes_per_second, second.new_errors) == (2, 5.0, 0)
    assert (second.link_up, second.was_up, second.line_bytes_per_second) == (False, True, 12.5e9)


def test_a_port_whose_rate_is_not_known_leaves_the_share_unknown() -> None:
    assert ports.of_nodes(ports.windows(port("mlx5_0/1", [0, 5], rate=NAN)))[1].line_ratio is None


@pytest.mark.parametrize(
    ("model", "rate"),
    [
        ("NVIDIA H100 80GB HBM3", 900e9),
        ("NVIDIA A100-SXM4-80GB", 600e9),
        ("NVIDIA B200", 1.8e12),
        ("NVIDIA H20", 900e9),
        ("NVIDIA H100 PCIe", None),
        ("NVIDIA A100 80GB PCIe", None),
        ("NVIDIA L40S", None),
    ],
)
def test_nvlink_rates_are_known_of_boards_that_have_all_their_links(model: str, rate: float | None) -> None:
    assert nvlink.line_rate(model) == rate


def ranks(held_up):
    """Four ranks' steps of 10 s, 4 s of them waiting; the held-up rank of a step waits for none of its 13 s."""
    steps, waits, end = [], [], 0.0
    for number, slow in enumerate(held_up):
        seconds = 10.0 if slow is None else 13.0
        end += seconds
        for rank in range(4):
            steps.append((end, rank, 0, rank, number, seconds, 1, NAN))
            wait = 0.0 if rank == slow else seconds - 6.0
            waits.append((end - wait, end, rank))
    names = ("ts", "launch", "node", "rank", "step", "seconds", "steps_covered", "data_wait_seconds")
    made = dict(zip(names, np.array(steps).T, strict=True))
    return made, dict(zip(("ts", "end", "launch"), np.array(waits).T, strict=True))


def test_pauses_are_at_random_where_another_rank_is_held_up_each_time() -> None:
    assert window.on_random_ranks(*ranks([None, 0, None, 2, 1, None, 3])) is True


def test_one_rank_that_is_held_up_in_half_of_the_long_steps_is_a_slow_rank() -> None:
    assert window.on_random_ranks(*ranks([2, None, 2, 1, None, 0, 2, 2])) is False


def test_two_long_steps_or_ranks_without_their_waits_say_nothing_of_pauses() -> None:
    assert window.on_random_ranks(*ranks([None, 0, None, 2])) is None
    steps, waits = ranks([0, 1, 2, 3])
    assert window.on_random_ranks(steps, {name: values[:0] for name, values in waits.items()}) is None
