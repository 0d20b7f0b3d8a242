"""GPUs from a ``dcgm-exporter`` that already runs on the node, where the agent itself cannot use NVML.

Understood are ``DCGM_FI_…`` and the older ``dcgm_…`` spelling, and the identity labels of both in either case. Values
are as old as the exporter's own interval (30 s unless set), which the page does not tell.
"""

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flopwatch.wire import GpuDevice, GpuSample
from flopwatch_agent.endpoint_stream import page_of
from flopwatch_agent.source import Readings
from flopwatch_agent.xids import XidCounter

LINE = re.compile(rb"(?P<name>(?i:dcgm)_\w+)\{(?P<labels>[^}]*)\} (?P<value>[^ \n]+)")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
BLANK = float(0x7FFFFFFFFFFFFFF0)
MEBI = 2.0**20
MILLI, MEGA, PERCENT = 1e-3, 1e6, 0.01


@dataclass(frozen=True, kw_only=True, slots=True)
class Value:
    """One metric of DCGM: the sample's field, its unit in base units, and what is possible."""

    field: str
    scale: float = 1.0
    low: float = 0.0
    high: float = BLANK
    is_rate: bool = False
    """Bytes a second, summed here into a counter."""


VALUES: dict[str, Value] = {
    "GPU_UTIL": Value(field="kernel_active_ratio", scale=PERCENT, high=100.0),
    "MEM_COPY_UTIL": Value(field="memory_busy_ratio", scale=PERCENT, high=100.0),
    "SM_ACTIVE": Value(field="sm_active_ratio", high=1.0),
    "SM_OCCUPANCY": Value(field="sm_occupancy_ratio", high=1.0),
    "PIPE_TENSOR_ACTIVE": Value(field="tensor_active_ratio", high=1.0),
    "DRAM_ACTIVE": Value(field="dram_active_ratio", high=1.0),
    "FB_USED": Value(field="memory_used_bytes", scale=MEBI, high=1e9),
    "POWER_USAGE": Value(field="power_watts", high=2000.0),
    "TOTAL_ENERGY_CONSUMPTION": Value(field="energy_joules", scale=MILLI),
    "GPU_TEMP": Value(field="temperature_celsius", low=-40.0, high=150.0),
    "MEMORY_TEMP": Value(field="memory_temperature_celsius", low=-40.0, high=150.0),
    "SM_CLOCK": Value(field="sm_clock_hertz", scale=MEGA, high=1e5),
    "MEM_CLOCK": Value(field="memory_clock_hertz", scale=MEGA, high=1e5),
    "CLOCK_THROTTLE_REASONS": Value(field="clock_event_reasons"),
    "CLOCKS_EVENT_REASONS": Value(field="clock_event_reasons"),
    "ECC_SBE_VOL_TOTAL": Value(field="ecc_corrected"),
    "ECC_DBE_VOL_TOTAL": Value(field="ecc_uncorrected"),
    "PCIE_TX_BYTES": Value(field="pcie_transmit_bytes", high=1e13, is_rate=True),
    "PCIE_RX_BYTES": Value(field="pcie_receive_bytes", high=1e13, is_rate=True),
    "NVLINK_TX_BYTES": Value(field="nvlink_transmit_bytes", high=1e13, is_rate=True),
    "NVLINK_RX_BYTES": Value(field="nvlink_receive_bytes", high=1e13, is_rate=True),
}
"""By DCGM's name without ``DCGM_FI_DEV_`` or ``DCGM_FI_PROF_``."""
OLD_NAMES = {"GPU_UTILIZATION": "GPU_UTIL", "MEM_COPY_UTILIZATION": "MEM_COPY_UTIL"}
WHOLE = frozenset(
    ("memory_used_bytes", "clock_event_reasons", "ecc_corrected", "ecc_uncorrected", "pcie_transmit_bytes",
     "pcie_receive_bytes", "nvlink_transmit_bytes", "nvlink_receive_bytes")
)  # fmt: skip
INSTANCE_FIELDS = frozenset(("sm_active_ratio", "sm_occupancy_ratio", "tensor_active_ratio", "dram_active_ratio",
                             "memory_used_bytes"))  # fmt: skip
"""What belongs to a MIG instance; the exporter repeats the rest of its GPU on each of them."""


class DcgmSource:
    """Reads one exporter's page; ``devices`` are the GPUs it showed last.

    Raises:
        EndpointError: from ``read``, when the page cannot be had.
    """

    name = "dcgm"

    def __init__(self, url: str, xids: XidCounter) -> None:
        self._url, self._xids = url, xids
        self.devices: tuple[GpuDevice, ...] = ()
        self._counters: dict[tuple[str, str], float] = {}
        self._last_xid: dict[str, int] = {}
        self._last: float | None = None

    def read(self, now: float) -> Readings:
        """One sample a GPU, and one a MIG instance."""
        elapsed = 0.0 if self._last is None else max(0.0, now - self._last)
        self._last = now
        devices: dict[str, GpuDevice] = {}
        values: dict[str, dict[str, Any]] = {}
        for name, labels, value in lines_of(page_of(self._url)):
            device = device_of(labels)
            if device is None:
                continue
            devices[device.uuid] = device
            found = values.setdefault(device.uuid, {})
            if name == "XID_ERRORS" and device.mig_parent_uuid is None:
                self._note_xid(device.uuid, int(value), now)
            self._take(found, device, name, value, elapsed)
        self.devices = tuple(devices[uuid] for uuid in sorted(devices))
        samples = (GpuSample(time_seconds=now, gpu=uuid, **found) for uuid, found in values.items())
        return Readings(gpu_samples=tuple(samples))

    def _take(
        self, found: dict[str, Any], device: GpuDevice, name: str, value: float, elapsed: float
    ) -> None:
        what = VALUES.get(name)
        if what is None or not what.low <= value <= what.high:
            return
        if device.mig_parent_uuid is not None and what.field not in INSTANCE_FIELDS:
            return
        number = value * what.scale
        if what.is_rate:
            key = (device.uuid, what.field)
            number = self._counters[key] = self._counters.get(key, 0.0) + number * elapsed
        found[what.field] = int(number) if what.field in WHOLE else number

    def _note_xid(self, uuid: str, xid: int, now: float) -> None:
        """DCGM tells the last XID only, and for ever: one is counted when another one takes its place."""
        before = self._last_xid.get(uuid)
        self._last_xid[uuid] = xid
        if before is not None and xid not in (0, before):
            self._xids.note("exporter", uuid, xid, now)


def lines_of(page: bytes) -> Iterator[tuple[str, dict[str, str], float]]:
    """DCGM's samples of a page: name without its head, in capitals; labels in small letters; blanks left out."""
    for match in LINE.finditer(page):
        name = re.sub(r"^DCGM_(FI_(DEV|PROF)_)?", "", match["name"].decode("ascii").upper())
        labels = {
            key.lower(): value for key, value in LABEL.findall(match["labels"].decode("utf-8", "replace"))
        }
        try:
            value = float(match["value"])
        except ValueError:
            continue
        if 0.0 <= abs(value) < BLANK:
            yield OLD_NAMES.get(name, name), labels, value


def device_of(labels: dict[str, str]) -> GpuDevice | None:
    """The GPU or MIG instance that a series is of; None without a UUID."""
    uuid = labels.get("uuid")
    if not uuid:
        return None
    index, address = labels.get("gpu", ""), labels.get("pci_bus_id", "")
    domain, _, rest = address.lower().partition(":")
    device = GpuDevice(
        uuid=uuid,
        slot=f"{int(domain, 16):04x}:{rest}" if rest and re.fullmatch("[0-9a-f]+", domain) else address,
        name=labels.get("modelname") or "unknown",
        index=int(index) if index.isdigit() else None,
    )
    profile, instance = labels.get("gpu_i_profile"), labels.get("gpu_i_id", "")
    if not profile:
        return device
    number = int(instance) if instance.isdigit() else None
    return dataclasses.replace(
        device,
        uuid=f"{uuid}/{instance}" if not uuid.startswith("MIG-") else uuid,
        mig_profile=profile,
        mig_parent_uuid=uuid,
        mig_instance_id=number,
    )
