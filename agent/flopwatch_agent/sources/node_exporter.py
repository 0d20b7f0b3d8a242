"""NIC ports and host from a ``node_exporter`` that already runs on the node, read instead of sysfs and procfs.

Its byte counters of InfiniBand are bytes already. The page does not say which network devices are hardware, so those
whose names are of virtual ones, bonds and IPoIB are left out. Pressure is a counter of seconds there: the share is of
the time since the read before. What the exporter's collectors leave out (``hw_counters``, EFA, Slingshot) is unknown.
"""

import re
from collections.abc import Iterable, Mapping

from flopwatch.wire import NodeSample, PortSample
from flopwatch_agent.endpoint_stream import page_of
from flopwatch_agent.source import Readings
from flopwatch_agent.sources.host import WHOLE_DISKS
from flopwatch_agent.sources.network import ERROR_COUNTERS, IPOIB, PORT_STATES, VIRTUAL

LINE = re.compile(
    rb"^node_(?P<name>[A-Za-z0-9_]+)(?:\{(?P<labels>[^}]*)\})? (?P<value>[^ \n]+)", re.MULTILINE
)
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
WANTED = ("infiniband_", "network_", "bonding_slaves", "cpu_seconds", "memory_MemTotal", "memory_MemAvailable",
          "pressure_", "disk_read_bytes", "disk_written_bytes", "vmstat_pgmajfault")  # fmt: skip
RENAMED = {
    "port_rcv_errors": "port_errors_received", "port_xmit_discards": "port_discards_transmitted",
}  # fmt: skip
PORT_ERRORS = tuple(f"infiniband_{RENAMED.get(name, name)}_total" for name in ERROR_COUNTERS)
DEVICE_ERRORS = tuple(
    f"network_{way}_{kind}_total" for way in ("receive", "transmit") for kind in ("errs", "drop")
)
MAX_COUNTER = 2.0**63
Key = tuple[tuple[str, str], ...]
Page = Mapping[str, Mapping[Key, float]]


class NodeExporterSource:
    """Reads one exporter's page.

    Raises:
        EndpointError: from ``read``, when the page cannot be had.
    """

    name = "node_exporter"

    def __init__(self, url: str) -> None:
        self._url = url
        self._last: tuple[float, Page] | None = None

    def read(self, now: float) -> Readings:
        """One sample a port and one of the node."""
        page = values_of(page_of(self._url))
        before, self._last = self._last, (now, page)
        ports = (*infiniband_ports(page, now), *network_ports(page, now))
        return Readings(port_samples=ports, node_samples=(node_sample(page, now, before),))


def values_of(page: bytes) -> Page:
    """The values that are used, by name without ``node_`` and by labels."""
    found: dict[str, dict[Key, float]] = {}
    for match in LINE.finditer(page):
        name = match["name"].decode("ascii")
        if not name.startswith(WANTED):
            continue
        try:
            value = float(match["value"])
        except ValueError:
            continue
        if abs(value) < MAX_COUNTER:
            labels = LABEL.findall((match["labels"] or b"").decode("utf-8", "replace"))
            found.setdefault(name, {})[tuple(labels)] = value
    return found


def infiniband_ports(page: Page, now: float) -> tuple[PortSample, ...]:
    """The RDMA ports: every one with a state or a byte counter."""
    sent, received = (
        page.get(f"infiniband_port_data_{way}_bytes_total", {}) for way in ("transmitted", "received")
    )
    states, rates = page.get("infiniband_state_id", {}), page.get("infiniband_rate_bytes_per_second", {})
    waits = page.get("infiniband_port_transmit_wait_total", {})
    made = []
    for key in sorted({*sent, *received}):
        labels = dict(key)
        state = states.get(key)
        made.append(
            PortSample(
                time_seconds=now,
                port=f"{labels.get('device', '')}/{labels.get('port', '')}",
                role="rdma",
                transmit_bytes=whole(sent.get(key)),
                receive_bytes=whole(received.get(key)),
                errors=total(page, PORT_ERRORS, key),
                waits=whole(waits.get(key)),
                link_up=None if state is None else PORT_STATES.get(f"{state:.0f}"),
                link_rate_bits_per_second=bits(rates.get(key)),
            )
        )
    return tuple(made)


def network_ports(page: Page, now: float) -> tuple[PortSample, ...]:
    """The network devices that are no virtual ones."""
    sent, received = (page.get(f"network_{way}_bytes_total", {}) for way in ("transmit", "receive"))
    masters = {dict(key).get("master") for key in page.get("bonding_slaves", {})}
    kinds, up, speeds = (page.get(f"network_{name}", {}) for name in ("protocol_type", "up", "speed_bytes"))
    made = []
    for key in sorted({*sent, *received}):
        device = dict(key).get("device", "")
        if device.startswith(VIRTUAL) or "." in device or device in masters or kinds.get(key) == IPOIB:
            continue
        state = up.get(key)
        made.append(
            PortSample(
                time_seconds=now,
                port=device,
                role="ethernet",
                transmit_bytes=whole(sent.get(key)),
                receive_bytes=whole(received.get(key)),
                errors=total(page, DEVICE_ERRORS, key),
                link_up=None if state is None else state == 1.0,
                link_rate_bits_per_second=bits(speeds.get(key)),
            )
        )
    return tuple(made)


def node_sample(page: Page, now: float, before: tuple[float, Page] | None) -> NodeSample:
    """The host; shares are of the time since the page before, and unknown with the first one."""
    busy, waiting = cpu_ratios(page, None if before is None else before[1])
    return NodeSample(
        time_seconds=now,
        cpu_busy_ratio=busy,
        io_wait_ratio=waiting,
        memory_available_bytes=whole(page.get("memory_MemAvailable_bytes", {}).get(())),
        memory_total_bytes=whole(page.get("memory_MemTotal_bytes", {}).get(())),
        disk_read_bytes=disks(page, "disk_read_bytes_total"),
        disk_write_bytes=disks(page, "disk_written_bytes_total"),
        major_faults=whole(page.get("vmstat_pgmajfault", {}).get(())),
        cpu_pressure_ratio=pressure(page, "cpu", now, before),
        io_pressure_ratio=pressure(page, "io", now, before),
        memory_pressure_ratio=pressure(page, "memory", now, before),
    )


def cpu_ratios(page: Page, before: Page | None) -> tuple[float | None, float | None]:
    """Busy and waiting share of all cores."""
    if before is None:
        return None, None
    now, then = by_mode(page), by_mode(before)
    steps = {mode: now[mode] - then.get(mode, 0.0) for mode in now}
    whole_time = sum(steps.values())
    if whole_time <= 0.0 or min(steps.values()) < 0.0:
        return None, None
    idle, waiting = steps.get("idle", 0.0), steps.get("iowait", 0.0)
    return (whole_time - idle - waiting) / whole_time, waiting / whole_time


def by_mode(page: Page) -> dict[str, float]:
    """Seconds of all cores by what they did."""
    found: dict[str, float] = {}
    for key, value in page.get("cpu_seconds_total", {}).items():
        mode = dict(key).get("mode", "")
        found[mode] = found.get(mode, 0.0) + value
    return found


def pressure(page: Page, name: str, now: float, before: tuple[float, Page] | None) -> float | None:
    """Share of the time since the page before in which some task waited."""
    metric = f"pressure_{name}_waiting_seconds_total"
    value = page.get(metric, {}).get(())
    if value is None or before is None or now <= before[0]:
        return None
    earlier = before[1].get(metric, {}).get(())
    if earlier is None or value < earlier:
        return None
    return min((value - earlier) / (now - before[0]), 1.0)


def disks(page: Page, name: str) -> int | None:
    """Bytes of whole disks; partitions and volumes carry the same ones again."""
    found = [value for key, value in page.get(name, {}).items() if is_whole_disk(dict(key).get("device", ""))]
    return int(sum(found)) if found else None


def is_whole_disk(device: str) -> bool:
    """Whether a block device's name is of a disk and not of its partition."""
    if device.startswith(("nvme", "mmcblk")):
        return "p" not in device.removeprefix("mmcblk")
    return device.startswith(WHOLE_DISKS) and not device[-1:].isdigit()


def total(page: Page, names: Iterable[str], key: Key) -> int | None:
    """The sum of those counters that there are."""
    known = [page[name][key] for name in names if key in page.get(name, {})]
    return int(sum(known)) if known else None


def whole(value: float | None) -> int | None:
    """A count; None for one that is unknown or below zero."""
    return int(value) if value is not None and value >= 0.0 else None


def bits(bytes_per_second: float | None) -> float | None:
    """A link's rate; None where the exporter has none, which it tells as a negative number."""
    return bytes_per_second * 8 if bytes_per_second is not None and bytes_per_second > 0.0 else None
