"""Host signals from a procfs tree."""

from pathlib import Path

from tests.integration.agent.kernel_files import write

from flopwatch_agent.sources.host import HostSource
from flopwatch_agent.sysfs import KernelTree

DISKS = (
    "   8       0 sda 10 0 1000 5 20 0 4000 9 0 0 0 0 0 0 0 0 0\n"
    "   8       1 sda1 10 0 900 5 20 0 3000 9 0 0 0 0 0 0 0 0 0\n"
    " 259       0 nvme0n1 10 0 24 5 20 0 96 9 0 0 0 0 0 0 0 0 0\n"
    "   7       0 loop0 10 0 800 5 20 0 800 9 0 0 0 0 0 0 0 0 0"
)


def tree(root: Path, cpu: str) -> HostSource:
    write(root, "proc/stat", f"cpu  {cpu} 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0")
    write(
        root, "proc/meminfo", "MemTotal:  1000 kB\nMemFree: 5 kB\nMemAvailable:  400 kB\nHugePages_Total: 3"
    )
    write(
        root,
        "proc/pressure/memory",
        "some avg10=12.50 avg60=1.00 avg300=0.10 total=5\nfull avg10=1.00 total=1",
    )
    write(root, "proc/diskstats", DISKS)
    for name in ("sda", "nvme0n1", "loop0"):
        write(root, f"sys/block/{name}/size", "1")
    return HostSource(KernelTree(root / "proc"), KernelTree(root / "sys"))


def test_memory_pressure_and_disks_are_in_base_units(tmp_path: Path) -> None:
    sample = tree(tmp_path, "100 0 100 800 0 0 0 0").read(5.0).node_samples[0]

    assert sample.memory_total_bytes == 1_024_000
    assert sample.memory_available_bytes == 409_600
    assert sample.memory_pressure_ratio == 0.125
    assert sample.disk_read_bytes == (1000 + 24) * 512
    assert sample.disk_write_bytes == (4000 + 96) * 512


def test_cpu_shares_are_over_the_time_between_two_reads(tmp_path: Path) -> None:
    source = tree(tmp_path, "100 0 100 800 0 0 0 0")
    first = source.read(5.0).node_samples[0]
    write(tmp_path, "proc/stat", "cpu  140 0 110 830 20 0 0 0 0 0")
    second = source.read(15.0).node_samples[0]

    assert first.cpu_busy_ratio is None
    assert second.cpu_busy_ratio == 0.5
    assert second.io_wait_ratio == 0.2


def test_what_the_kernel_does_not_have_is_none(tmp_path: Path) -> None:
    write(tmp_path, "proc/uptime", "1 1")

    sample = HostSource(KernelTree(tmp_path / "proc"), KernelTree(tmp_path / "sys")).read(5.0).node_samples[0]

    assert sample.memory_total_bytes is None
    assert sample.disk_read_bytes is None
    assert sample.cpu_busy_ratio is None
