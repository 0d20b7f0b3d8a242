"""Every code of a diagnosis has its words: signs, missing signals and hardware causes, as the source names them."""

import re
import typing
from pathlib import Path

import flopwatch_collector.compute.diagnosis as room
from flopwatch_collector.compute.detection import peers
from flopwatch_dashboard.text import TABLES

SOURCES = "\n".join(path.read_text() for path in Path(room.__file__).parent.glob("*.py"))
SLOW = ("local_compute", "sm_clock", "power", "nic_rate", "link_up", "tensor_active")
SIGNALS = (
    "tensor_active", "sm_active", "power", "network", "phases", "data_wait", "profiler", "samples", "sm_clock",
    "local_compute_seconds", "sm_clock_hertz", "power_watts", "nic_rate", "main_thread", "host_wait",
    "pcie_receive", "micro_batches",
)  # fmt: skip


def test_every_sign_that_diagnosis_names_has_words_in_both_languages() -> None:
    named = set(re.findall(r'(?:sign\(|Sign\(code=)\s*"([a-z_0-9]+)"', SOURCES)) | {
        f"slow_{name}" for name in SLOW
    }

    assert len(named) > 40
    for table in TABLES.values():
        assert [name for name in sorted(named) if f"sign.{name}" not in table] == []


def test_every_missing_signal_and_hardware_cause_has_words() -> None:
    for table in TABLES.values():
        assert [name for name in SIGNALS if f"signal.{name}" not in table] == []
        assert [
            name for name in typing.get_args(peers.HardwareCause) if f"hardware.{name}" not in table
        ] == []
