"""A node whose NICs and host are read from its node_exporter."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fixtures.exporter import Exporter
from tests.integration.agent.agent_process import FakeCollector, eventually

from flopwatch.wire import NodeSample, PortSample
from flopwatch_agent.endpoint_stream import EndpointError
from flopwatch_agent.sources.node_exporter import NodeExporterSource, is_whole_disk

PAGE = (Path(__file__).parents[2] / "fixtures" / "node_exporter" / "page.prom").read_text()
LATER = (
    ('cpu="0",mode="idle"} 1000', 'cpu="0",mode="idle"} 1006'),
    ('cpu="0",mode="user"} 300', 'cpu="0",mode="user"} 302'),
    ('cpu="1",mode="iowait"} 9.25', 'cpu="1",mode="iowait"} 11.25'),
    ("node_pressure_io_waiting_seconds_total 50", "node_pressure_io_waiting_seconds_total 54"),
)


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    made = Exporter(lambda: PAGE)
    yield made
    made.stop()


def test_ports_are_read_in_bytes_with_state_rate_and_errors_and_virtual_ones_are_left_out(
    exporter: Exporter,
) -> None:
    samples = {item.port: item for item in NodeExporterSource(exporter.url).read(100.0).port_samples}

    assert samples == {
        "mlx5_0/1": PortSample(
            time_seconds=100.0, port="mlx5_0/1", role="rdma", transmit_bytes=1_500_000_000_000,
            receive_bytes=2_000_000_000_000, errors=1 + 5 + 2, waits=4711, link_up=True,
            link_rate_bits_per_second=400e9,
        ),
        "mlx5_1/1": PortSample(
            time_seconds=100.0, port="mlx5_1/1", role="rdma", transmit_bytes=0, receive_bytes=0, link_up=False,
            link_rate_bits_per_second=40e9,
        ),
        "eth0": PortSample(
            time_seconds=100.0, port="eth0", role="ethernet", transmit_bytes=3000, receive_bytes=4000, errors=7,
            link_up=True, link_rate_bits_per_second=25e9,
        ),
        "eth1": PortSample(
            time_seconds=100.0, port="eth1", role="ethernet", transmit_bytes=0, receive_bytes=0, link_up=False,
        ),
    }  # fmt: skip


def test_shares_of_the_host_are_of_the_time_between_two_pages(exporter: Exporter) -> None:
    source = NodeExporterSource(exporter.url)
    first = source.read(100.0).node_samples
    page = PAGE
    for before, after in LATER:
        page = page.replace(before, after)
    exporter.text = lambda: page
    second = source.read(110.0).node_samples

    known = NodeSample(
        time_seconds=100.0, memory_available_bytes=2_000_000_000_000, memory_total_bytes=2_164_000_000_000,
        disk_read_bytes=5_000_000_000, disk_write_bytes=10_000_000_000, major_faults=1234,
    )  # fmt: skip
    assert first == (known,)
    (later,) = second
    # Of ten seconds of all cores six were idle, two waited for I/O; tasks waited for I/O four of ten seconds.
    assert later.cpu_busy_ratio == pytest.approx(0.2)
    assert later.io_wait_ratio == pytest.approx(0.2)
    assert later.io_pressure_ratio == pytest.approx(0.4)
    assert (later.memory_pressure_ratio, later.cpu_pressure_ratio) == (None, None)


def test_counters_that_began_anew_give_no_share(exporter: Exporter) -> None:
    source = NodeExporterSource(exporter.url)
    source.read(100.0)
    page = PAGE.replace(
        "node_pressure_io_waiting_seconds_total 50", "node_pressure_io_waiting_seconds_total 1"
    ).replace('cpu="0",mode="idle"} 1000', 'cpu="0",mode="idle"} 2')
    exporter.text = lambda: page
    (sample,) = source.read(110.0).node_samples

    assert (sample.cpu_busy_ratio, sample.io_wait_ratio, sample.io_pressure_ratio) == (None, None, None)


def test_a_page_that_cannot_be_had_is_an_error(exporter: Exporter) -> None:
    exporter.status = 500

    with pytest.raises(EndpointError, match="it answers 500"):
        NodeExporterSource(exporter.url).read(1.0)


@pytest.mark.parametrize(
    ("device", "whole"),
    [("nvme0n1", True), ("nvme0n1p2", False), ("nvme10n1", True), ("sda", True), ("sda3", False), ("sdaa", True),
     ("vdb", True), ("mmcblk0", True), ("mmcblk0p1", False), ("dm-0", False), ("loop1", False), ("md127", False)],
)  # fmt: skip
def test_only_whole_disks_are_counted(device: str, whole: bool) -> None:
    assert is_whole_disk(device) is whole


def test_an_agent_reads_the_exporter_instead_of_the_kernels_files(
    new_agent, collector: FakeCollector, exporter: Exporter
) -> None:
    agent = new_agent(collector_url=collector.url, node_exporter_endpoint=exporter.url)

    eventually(lambda: agent.has('flopwatch_source_success{source="node_exporter"}', 1.0))
    sent = 'hw_network_io_bytes_total{network_io_direction="transmit",port="mlx5_0/1"}'
    eventually(lambda: agent.has(sent, 1.5e12))
    found = agent.metrics()
    assert found["flopwatch_node_memory_total_bytes"] == 2.164e12
    assert 'flopwatch_source_success{source="host"}' not in found
    assert 'flopwatch_source_success{source="network"}' not in found
    eventually(lambda: collector.all("port_samples"))
    assert {item["port"] for item in collector.all("port_samples")} == {
        "mlx5_0/1",
        "mlx5_1/1",
        "eth0",
        "eth1",
    }

    exporter.status = 503
    eventually(lambda: agent.has('flopwatch_source_success{source="node_exporter"}', 0.0))
    eventually(lambda: sent not in agent.metrics())
