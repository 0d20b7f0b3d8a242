"""NIC ports from recorded sysfs trees."""

import errno
import os
from pathlib import Path

import pytest
from tests.integration.agent.kernel_files import build, write

from flopwatch.wire import PortSample
from flopwatch_agent.counter_watch import CounterWatch
from flopwatch_agent.sources.network import NetworkSource, nvidia_controllers
from flopwatch_agent.sysfs import KernelTree


def ports(root: Path) -> dict[str, PortSample]:
    readings = NetworkSource(KernelTree(root)).read(1000.0)
    return {sample.port: sample for sample in readings.port_samples}


def test_infiniband_counts_words_of_four_bytes_and_ipoib_is_not_counted_again(tmp_path: Path) -> None:
    found = ports(build(tmp_path, "mlx5_infiniband"))

    assert found == {
        "mlx5_0/1": PortSample(
            time_seconds=1000.0,
            port="mlx5_0/1",
            role="rdma",
            transmit_bytes=1_000_000_000,
            receive_bytes=500_000_000,
            errors=2 + 1 + 0 + 5,
            waits=4711,
            link_up=True,
            link_rate_bits_per_second=400e9,
        )
    }


def test_efa_counts_bytes_of_all_its_kinds(tmp_path: Path) -> None:
    port = ports(build(tmp_path, "efa"))["rdmap16s27/1"]

    assert port.transmit_bytes == 1000 + 40 + 500
    assert port.receive_bytes == 2000 + 30 + 600
    assert port.errors == 7


def test_a_port_without_counters_costs_only_itself(tmp_path: Path) -> None:
    found = ports(build(tmp_path, "odd_ports", "mlx5_infiniband"))

    assert set(found) == {"old0/1", "full0/1", "hfi1_0/1", "mlx5_0/1"}


def test_the_64_bit_copy_is_used_where_32_bits_are_full(tmp_path: Path) -> None:
    found = ports(build(tmp_path, "odd_ports"))

    assert found["old0/1"].transmit_bytes == 20_000_000_000
    assert found["old0/1"].receive_bytes == 24_000_000_000
    assert found["old0/1"].link_up is False


def test_a_counter_that_is_full_is_unknown_and_an_unknown_state_is_none(tmp_path: Path) -> None:
    port = ports(build(tmp_path, "odd_ports"))["full0/1"]

    assert port.transmit_bytes is None
    assert port.receive_bytes == 68
    assert port.link_up is None
    assert port.link_rate_bits_per_second is None


def test_omni_path_counts_words_too(tmp_path: Path) -> None:
    port = ports(build(tmp_path, "odd_ports"))["hfi1_0/1"]

    assert (port.transmit_bytes, port.receive_bytes) == (400, 800)


def test_only_physical_ethernet_is_counted(tmp_path: Path) -> None:
    found = ports(build(tmp_path, "ethernet"))

    assert set(found) == {"eth0", "eth1"}
    assert found["eth0"].errors == 10
    assert found["eth0"].link_rate_bits_per_second == 25e9
    assert found["eth0"].link_up is True
    assert found["eth1"].link_rate_bits_per_second is None
    assert found["eth1"].link_up is False


def test_link_state_is_read_once_a_minute_and_counters_every_time(tmp_path: Path) -> None:
    source = NetworkSource(KernelTree(build(tmp_path, "ethernet")))
    source.read(1000.0)
    write(tmp_path, "class/net/eth0/operstate", "down")
    write(tmp_path, "class/net/eth0/statistics/tx_bytes", "1500")

    soon = {s.port: s for s in source.read(1010.0).port_samples}["eth0"]
    later = {s.port: s for s in source.read(1061.0).port_samples}["eth0"]

    assert (soon.transmit_bytes, soon.link_up) == (1500, True)
    assert later.link_up is False


def test_errors_and_devices_are_looked_at_every_five_seconds_and_bytes_every_time(tmp_path: Path) -> None:
    source = NetworkSource(KernelTree(build(tmp_path, "ethernet")))
    before = {s.port: s for s in source.read(1000.0).port_samples}["eth0"].errors
    folder = tmp_path / "class/net/eth0/statistics"
    write(folder, "rx_errors", str(int((folder / "rx_errors").read_text()) + 7))
    write(folder, "tx_bytes", "1500")

    soon = {s.port: s for s in source.read(1004.0).port_samples}["eth0"]
    later = {s.port: s for s in source.read(1005.0).port_samples}["eth0"]

    assert (soon.transmit_bytes, soon.errors) == (1500, before)
    assert later.errors == before + 7


def test_a_port_that_vanishes_is_gone_at_the_next_read(tmp_path: Path) -> None:
    import shutil

    source = NetworkSource(KernelTree(build(tmp_path, "ethernet", "mlx5_infiniband")))
    assert len(source.read(1000.0).port_samples) == 3

    shutil.rmtree(tmp_path / "class/infiniband/mlx5_0")

    assert [s.port for s in source.read(1010.0).port_samples] == ["eth0", "eth1"]


def test_nvidia_controllers_are_found_on_the_bus_also_when_nvml_lost_them(tmp_path: Path) -> None:
    for address, vendor, kind in (
        ("0000:1b:00.0", "0x10de", "0x030200"),
        ("0000:1C:00.0", "0x10de", "0x030000"),
        ("0000:1d:00.0", "0x10de", "0x068000"),
        ("0000:1e:00.0", "0x8086", "0x030000"),
    ):
        write(tmp_path, f"bus/pci/devices/{address}/vendor", vendor)
        write(tmp_path, f"bus/pci/devices/{address}/class", kind)

    assert nvidia_controllers(KernelTree(tmp_path)) == ("0000:1b:00.0", "0000:1c:00.0")


def test_slingshot_counts_all_octets_and_its_network_device_is_not_counted_again(tmp_path: Path) -> None:
    telemetry = "class/cxi/cxi0/device/telemetry"
    write(tmp_path, f"{telemetry}/hni_sts_tx_ok_octets", "123456789@1700000000.5")
    write(tmp_path, f"{telemetry}/hni_sts_rx_ok_octets", "987@1700000000.5")
    write(tmp_path, f"{telemetry}/hni_pcs_uncorrected_cw", "3@1700000000.5")
    write(tmp_path, "class/cxi/cxi0/device/net/hsn0/statistics/tx_bytes", "5")
    write(tmp_path, "class/net/hsn0/statistics/tx_bytes", "5")
    write(tmp_path, "class/net/hsn0/device/vendor", "0x17db")
    write(tmp_path, "class/net/hsn0/operstate", "up")
    write(tmp_path, "class/net/hsn0/speed", "200000")

    assert ports(tmp_path) == {
        "cxi0": PortSample(
            time_seconds=1000.0, port="cxi0", role="rdma", transmit_bytes=123456789, receive_bytes=987, errors=3,
            link_up=True, link_rate_bits_per_second=200e9,
        )
    }  # fmt: skip


def test_representors_and_bonds_carry_others_bytes_and_functions_their_own(tmp_path: Path) -> None:
    for name, phys in (
        ("p0", "p0"),
        ("p0vf3", "pf0vf3"),
        ("p0sf8", "pf0sf8"),
        ("far", "c1pf0vf2"),
        ("vf3", ""),
    ):
        write(tmp_path, f"class/net/{name}/statistics/tx_bytes", "10")
        write(tmp_path, f"class/net/{name}/device/vendor", "0x15b3")
        write(tmp_path, f"class/net/{name}/phys_port_name", phys)
    write(tmp_path, "class/net/bond0/statistics/tx_bytes", "10")
    write(tmp_path, "class/net/bond0/bonding/slaves", "p0")
    write(tmp_path, "class/net/bonding_masters", "bond0")

    write(tmp_path, "class/net/vf3/device/physfn/vendor", "0x15b3")

    found = ports(tmp_path)
    assert {name: port.scope for name, port in found.items()} == {"p0": None, "vf3": "function"}


def test_a_leap_beyond_the_link_is_left_out_and_a_counter_that_began_anew_is_told(tmp_path: Path) -> None:
    watch = CounterWatch()
    source = NetworkSource(KernelTree(build(tmp_path, "mlx5_infiniband")), watch)
    counters = "class/infiniband/mlx5_0/ports/1/counters"

    def sent(now: float, words: int) -> int | None:
        write(tmp_path, f"{counters}/port_xmit_data", str(words))
        return source.read(now).port_samples[0].transmit_bytes

    # 400 Gb/s are 50 GB/s: at most 605 GB in ten seconds with the margin of a tenth and a second.
    assert sent(1000.0, 1_000) == 4_000
    assert sent(1010.0, 100_001_000_000) == 400_004_000_000
    assert sent(1020.0, 2**40 + 100_001_000_000) == 400_004_000_000
    assert sent(1030.0, 2**40 + 100_002_000_000) == 400_008_000_000
    assert (watch.leaps, watch.resets) == (1, 0)
    assert sent(1040.0, 500) == 2_000
    assert sent(1050.0, 700) == 2_800
    assert (watch.leaps, watch.resets) == (1, 1)


@pytest.mark.parametrize("kind", ["a folder", "a pipe", "empty", "words", "an error"])
def test_a_counter_that_cannot_be_read_costs_only_itself(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path, "mlx5_infiniband")
    file = tmp_path / "class/infiniband/mlx5_0/ports/1/counters/port_rcv_data"
    if kind in ("a folder", "a pipe"):
        file.unlink()
        (file.mkdir if kind == "a folder" else lambda: os.mkfifo(file))()
    elif kind != "an error":
        file.write_text({"empty": "", "words": "N/A (no PMA)\n"}[kind])
    else:
        read = os.pread

        def failing(descriptor: int, count: int, offset: int) -> bytes:
            if Path(f"/proc/self/fd/{descriptor}").readlink() == file:
                raise OSError(errno.EIO, "Input/output error")
            return read(descriptor, count, offset)

        monkeypatch.setattr(os, "pread", failing)
    source = NetworkSource(KernelTree(tmp_path))

    for now in (1000.0, 1010.0, 1070.0):
        (port,) = source.read(now).port_samples
        assert (port.transmit_bytes, port.receive_bytes, port.link_up) == (1_000_000_000, None, True)
