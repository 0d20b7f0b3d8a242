"""Which ports and PCIe links are told of: against their own past and their peers."""

from types import MappingProxyType

import numpy as np
from tests.fixtures.memory_store import MemoryStore

from flopwatch_collector.alerting.rules_node import transfers
from flopwatch_collector.model import GPU_COLUMNS, BatchId, FleetState, Gpu, Node, RawRows, empty
from flopwatch_collector.store.port import StoreSettings
from flopwatch_collector.views.link_health import LinkBook, is_narrow, usual_pcie

NODES = 4
Told = tuple[bool | None, float | None, float | None]


def state() -> FleetState:
    nodes = {
        number: Node(
            number=number, cluster="a", name=f"n{number}", first_seen_seconds=0.0, last_seen_seconds=0.0
        )
        for number in range(1, NODES + 1)
    }
    nothing = MappingProxyType({})
    return FleetState(
        generation=1, nodes=nodes, gpus=nothing, jobs=nothing, launches=nothing, leases=nothing,
        latest=empty(GPU_COLUMNS),
    )  # fmt: skip


class Fabric:
    """Ports of four nodes, and what is told of them minute by minute."""

    def __init__(self, tmp_path) -> None:
        self.store = MemoryStore(StoreSettings(folder=tmp_path), lambda: 0.0)
        self.book, self.minute = LinkBook(), 0

    def look(self, rates: list[float], up: list[float], role: str = "rdma") -> dict[int, Told]:
        self.minute += 1
        now = 60.0 * self.minute
        rows = {
            "ts": np.full(NODES, now - 1.0), "node": np.arange(1.0, NODES + 1),
            "port": np.array(["mlx5_0/1"] * NODES, dtype=object),
            "role": np.array([role] * NODES, dtype=object), "link_up": np.array(up),
            "link_rate_bits_per_second": np.array(rates),
        }  # fmt: skip
        self.store.submit(BatchId(node="n", spool="s", sequence=self.minute), RawRows(port=rows))
        found = self.book.notable(self.store, state(), (), now)
        return {
            node: (port.link_up, port.rate_bits_per_second, port.best_rate_bits_per_second)
            for node, (port,) in found.items()
        }


def test_a_port_slower_than_its_peers_is_told_of_with_their_rate(tmp_path) -> None:
    assert Fabric(tmp_path).look([400e9, 400e9, 100e9, 400e9], [1.0] * 4) == {3: (True, 100e9, 400e9)}


def test_a_port_slower_than_it_was_is_told_of_whatever_its_peers_are(tmp_path) -> None:
    fabric = Fabric(tmp_path)
    assert fabric.look([800e9, 400e9, 400e9, 400e9], [1.0] * 4) == {}
    assert fabric.look([400e9] * 4, [1.0] * 4) == {1: (True, 400e9, 800e9)}


def test_a_port_that_is_down_counts_where_its_peers_or_it_were_up(tmp_path) -> None:
    fabric = Fabric(tmp_path)
    assert fabric.look([400e9] * 4, [1.0, 0.0, 1.0, 1.0])[2][0] is False
    assert set(fabric.look([400e9] * 4, [0.0] * 4)) == {1, 3, 4}


def test_ports_that_nobody_uses_and_those_of_management_are_not_told_of(tmp_path) -> None:
    assert Fabric(tmp_path / "a").look([float("nan")] * 4, [0.0] * 4) == {}
    assert Fabric(tmp_path / "b").look([1e9, 1e9, 1e8, 1e9], [1.0] * 4, role="management") == {}


def test_ports_are_read_once_a_minute(tmp_path) -> None:
    fabric = Fabric(tmp_path)
    told = fabric.look([400e9, 400e9, 100e9, 400e9], [1.0] * 4)
    empty_store = MemoryStore(StoreSettings(folder=tmp_path), lambda: 0.0)

    assert set(fabric.book.notable(empty_store, state(), (), 90.0)) == set(told) == {3}
    assert fabric.book.notable(empty_store, state(), (), 125.0) == {}


def gpu(number: int, width: int | None, generation: int | None = 5, name: str = "H100") -> Gpu:
    return Gpu(
        number=number, cluster="a", node=1, slot=f"{number}", uuid=f"GPU-{number}", name=name, from_seconds=0.0,
        pcie_width=width, pcie_width_maximum=16, pcie_generation=generation, pcie_generation_maximum=5,
    )  # fmt: skip


def narrow(one: Gpu, *others: Gpu) -> bool:
    return is_narrow(one, usual_pcie((one, *others)))


def test_a_pcie_link_is_held_against_most_of_its_peers_else_against_what_it_could_be() -> None:
    sixteen, eight = [gpu(n, 16) for n in range(2, 6)], [gpu(n, 8) for n in range(2, 6)]

    assert narrow(gpu(1, 8), *sixteen)
    assert not narrow(gpu(1, 8), *eight)
    assert narrow(gpu(1, 8))
    assert narrow(gpu(1, 16, generation=3), *sixteen)
    assert not narrow(gpu(1, None, generation=None), *sixteen)


def test_transfers_of_a_lane_double_from_the_third_generation_on() -> None:
    assert [transfers(generation) for generation in (1, 2, 3, 4, 5, 6, None, 0)] == [
        2.5e9, 5e9, 8e9, 16e9, 32e9, 64e9, None, None,
    ]  # fmt: skip
