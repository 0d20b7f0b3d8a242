"""XIDs: one fault counts once, whoever tells it."""

import pytest

from flopwatch.wire import GpuDevice
from flopwatch_agent.xids import XidCount, XidCounter, gpu_at, xid_of_line

GPUS = (
    GpuDevice(uuid="GPU-a", slot="0000:1b:00.0", name="H100"),
    GpuDevice(uuid="MIG-a", slot="0000:1b:00.0", name="H100", mig_parent_uuid="GPU-a"),
    GpuDevice(uuid="GPU-b", slot="000a:1b:00.0", name="H100"),
)


def test_a_fault_that_both_tell_counts_once_and_one_that_either_missed_counts_too() -> None:
    xids = XidCounter()
    for teller, number in (("driver", 31), ("kernel", 31), ("driver", 31), ("kernel", 79)):
        xids.note(teller, "GPU-a", number, 5.0)  # type: ignore[arg-type]  # text of the table above

    assert xids.counts() == (
        XidCount(gpu="GPU-a", xid=31, count=2, last_seconds=5.0),
        XidCount(gpu="GPU-a", xid=79, count=1, last_seconds=5.0),
    )
    assert [event.code for event in xids.take()] == [31, 31, 79]
    assert xids.take() == ()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("6,1,2,-;NVRM: Xid (PCI:0000:1b:00): 79, pid=1", ("0000:1b:00", 79)),
        ("NVRM: Xid (PCI:000A:1B:00): 13, Graphics Exception", ("000a:1b:00", 13)),
        ("NVRM: Xid (PCI:0000:1b:00 GPU-I:05): 31, pid=5", ("0000:1b:00", 31)),
        ("NVRM: Xid (PCI:0000:1b:00.0): 94", ("0000:1b:00", 94)),
        ("NVRM: GPU 0000:1b:00.0: 79", None),
        ("systemd: Xid 79", None),
    ],
)
def test_a_line_of_the_kernels_log_names_gpu_and_xid(line: str, found: tuple[str, int] | None) -> None:
    assert xid_of_line(line) == found


def test_an_address_means_the_whole_gpu_and_one_without_a_gpu_stays_an_address() -> None:
    assert gpu_at("0000:1b:00", GPUS) == "GPU-a"
    assert gpu_at("000a:1b:00", GPUS) == "GPU-b"
    assert gpu_at("0000:2b:00", GPUS) == "0000:2b:00"
