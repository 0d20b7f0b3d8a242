"""NIC ports from sysfs: RDMA under class/infiniband, Slingshot under class/cxi, Ethernet under class/net.

Which files a port's figures lie in is found once a minute, or when a device came or went, which is looked at every
five seconds, with the counters of errors; in between only bytes and waits are read, through descriptors that stay
open. Counters stay counters. InfiniBand's ``port_xmit_data`` and ``port_rcv_data`` count words of four octets, on mlx5
and hfi1 alike; EFA counts bytes in ``hw_counters``. One file that cannot be read costs its value, never the port.
"""

import dataclasses
import re
from dataclasses import dataclass
from typing import Literal

from flopwatch.wire import PortSample
from flopwatch_agent.counter_watch import CounterWatch
from flopwatch_agent.source import Readings
from flopwatch_agent.sysfs import HeldFiles, KernelTree

WORD_BYTES = 4
SLOW_SECONDS = 60.0
RARE_SECONDS = 5.0
SATURATED = 0xFFFFFFFF
MOST_BYTES_PER_SECOND = 1e12
"""Of a port that does not tell its rate."""
VIRTUAL = ("lo", "veth", "docker", "br-", "virbr", "cni", "flannel", "cali", "cilium", "lxc", "tun", "tap", "ifb",
           "dummy", "kube-", "nodelocaldns", "sit", "ip6tnl", "wg", "vxlan", "ovs")  # fmt: skip
RDMA = "class/infiniband"
NET = "class/net"
CXI = "class/cxi"
REPRESENTOR = re.compile(r"^(c\d+)?pf\d+(vf|sf|hpf)")
IPOIB = 32
ERROR_COUNTERS = (
    "symbol_error", "link_downed", "link_error_recovery", "local_link_integrity_errors", "port_rcv_errors",
    "port_xmit_discards", "excessive_buffer_overrun_errors",
)  # fmt: skip
HARDWARE_ERRORS = (
    "out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err", "rx_icrc_encapsulated",
    "retrans_pkts", "rx_drops",
)  # fmt: skip
SLINGSHOT_ERRORS = ("hni_pcs_uncorrected_cw",)
PORT_STATES = {"0": False, "1": False, "2": False, "3": False, "4": True, "5": True}
"""Whether a port in this state carries data: 4 is ACTIVE, 5 ACTIVE_DEFER."""
Role = Literal["rdma", "ethernet", "management", "unknown"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Port:
    """Where the figures of one port lie."""

    name: str
    role: Role
    transmit: tuple[str, ...]
    receive: tuple[str, ...]
    unit_bytes: int = 1
    saturates: bool = False
    errors: tuple[str, ...] = ()
    waits: str | None = None
    up: bool | None = None
    rate_bits_per_second: float | None = None
    is_function: bool = False
    """Whether it is a virtual function of an adapter, with bytes of its own."""


class NetworkSource:
    """Reads every port; state and speed, which may block in the kernel, only once a minute."""

    name = "network"

    def __init__(self, sys: KernelTree, watch: CounterWatch | None = None) -> None:
        self._sys = sys
        self._watch = CounterWatch() if watch is None else watch
        self._files = HeldFiles(sys)
        self._ports: tuple[Port, ...] = ()
        self._found_at: float | None = None
        self._devices: tuple[tuple[str, ...], ...] = ()
        self._looked_at = float("-inf")
        self._errors: dict[str, int | None] = {}

    def read(self, now: float) -> Readings:
        """One sample a port; its errors are as of the last five seconds."""
        if not 0 <= now - self._looked_at < RARE_SECONDS:
            self._looked_at = now
            self._look(now)
            self._errors = {port.name: self._sum(port.errors) for port in self._ports}
        samples = (self._sample(now, port) for port in self._ports)
        return Readings(port_samples=tuple(sample for sample in samples if sample is not None))

    def _look(self, now: float) -> None:
        """Find the ports and their files anew, where it is time or a device came or went."""
        devices = tuple(self._sys.names(folder) for folder in (RDMA, CXI, NET))
        due = self._found_at is None or not 0 <= now - self._found_at < SLOW_SECONDS
        if due or devices != self._devices:
            self._files.close()
            self._devices, self._found_at = devices, now
            found = (*self._rdma(), *self._slingshot(), *self._ethernet())
            self._ports = tuple(self._with_files(port) for port in found)

    def _with_files(self, port: Port) -> Port:
        """The port with those of its counters that there are; the others are looked for again in a minute."""
        there = (path for path in port.errors if self._files.number(path) is not None)
        return dataclasses.replace(port, errors=tuple(there))

    def _sample(self, now: float, port: Port) -> PortSample | None:
        transmit, receive = self._octets(port, port.transmit), self._octets(port, port.receive)
        if transmit is None and receive is None:
            return None
        transmit, receive = (
            None if value is None else self._believed(port, way, value, now)
            for way, value in (("transmit", transmit), ("receive", receive))
        )
        return PortSample(
            time_seconds=now,
            port=port.name,
            role=port.role,
            scope="function" if port.is_function else None,
            transmit_bytes=transmit,
            receive_bytes=receive,
            errors=self._errors.get(port.name),
            waits=None if port.waits is None else self._files.number(port.waits),
            link_up=port.up,
            link_rate_bits_per_second=port.rate_bits_per_second,
        )

    def _believed(self, port: Port, way: str, value: int, now: float) -> int:
        """The counter without leaps beyond the link's rate."""
        rate = port.rate_bits_per_second
        most = MOST_BYTES_PER_SECOND if rate is None else rate / 8
        return int(self._watch.checked((port.name, way), value, now, most))

    def _octets(self, port: Port, paths: tuple[str, ...]) -> int | None:
        """The sum of some byte counters; a 32-bit one that is full is unknown."""
        value = self._sum(paths)
        if value is None or (port.saturates and value == SATURATED):
            return None
        return value * port.unit_bytes

    def _sum(self, paths: tuple[str, ...]) -> int | None:
        known = [n for path in paths if (n := self._files.number(path)) is not None and n >= 0]
        return sum(known) if known else None

    def _rdma(self) -> list[Port]:
        return [
            self._rdma_port(device, port)
            for device in self._sys.names(RDMA)
            for port in self._sys.names(f"{RDMA}/{device}/ports")
        ]

    def _rdma_port(self, device: str, port: str) -> Port:
        folder = f"{RDMA}/{device}/ports/{port}"
        counters, hardware = f"{folder}/counters", f"{folder}/hw_counters"
        words = self._word_counters(folder)
        transmit: tuple[str, ...]
        receive: tuple[str, ...]
        if words is not None:
            transmit, receive = ((path,) for path in words)
        else:
            where = hardware if self._sys.exists(hardware) else f"{RDMA}/{device}/hw_counters"
            transmit = within(where, ("tx_bytes", "rdma_read_resp_bytes", "rdma_write_bytes"))
            receive = within(where, ("rx_bytes", "rdma_read_bytes", "rdma_write_recv_bytes"))
        return Port(
            name=f"{device}/{port}",
            role="rdma",
            transmit=transmit,
            receive=receive,
            unit_bytes=1 if words is None else WORD_BYTES,
            saturates=words is not None,
            errors=(*within(counters, ERROR_COUNTERS), *within(hardware, HARDWARE_ERRORS)),
            waits=f"{counters}/port_xmit_wait",
            is_function=self._sys.exists(f"{RDMA}/{device}/device/physfn"),
            up=port_is_active(self._sys.text(f"{folder}/state")),
            rate_bits_per_second=rate_bits(self._sys.text(f"{folder}/rate")),
        )

    def _word_counters(self, folder: str) -> tuple[str, str] | None:
        """Where a port counts words: the 64-bit copies where there are some; None where it counts none."""
        names = ("port_xmit_data", "port_rcv_data")
        paths = tuple(
            copy if self._files.number(copy := f"{folder}/counters_ext/{name}_64") is not None else path
            for name in names
            for path in (f"{folder}/counters/{name}",)
        )
        known = [path for path in paths if self._files.number(path) is not None]
        return (paths[0], paths[1]) if known else None

    def _slingshot(self) -> list[Port]:
        """Slingshot's adapters count all octets, those of TCP included."""
        ports = []
        for device in self._sys.names(CXI):
            telemetry = f"{CXI}/{device}/device/telemetry"
            up, bits = next(map(self._net_link, self._sys.names(f"{CXI}/{device}/device/net")), (None, None))
            ports.append(
                Port(
                    name=device,
                    role="rdma",
                    transmit=(f"{telemetry}/hni_sts_tx_ok_octets",),
                    receive=(f"{telemetry}/hni_sts_rx_ok_octets",),
                    errors=within(telemetry, SLINGSHOT_ERRORS),
                    up=up,
                    rate_bits_per_second=bits,
                )
            )
        return ports

    def _ethernet(self) -> list[Port]:
        slingshot = {
            name for device in self._sys.names(CXI) for name in self._sys.names(f"{CXI}/{device}/device/net")
        }
        ports = []
        for name in self._sys.names(NET):
            if name in slingshot or not self._is_hardware(name):
                continue
            folder = f"{NET}/{name}/statistics"
            up, bits = self._net_link(name)
            ports.append(
                Port(
                    name=name,
                    role="ethernet",
                    transmit=(f"{folder}/tx_bytes",),
                    receive=(f"{folder}/rx_bytes",),
                    errors=within(folder, ("rx_errors", "tx_errors", "rx_dropped", "tx_dropped")),
                    is_function=self._sys.exists(f"{NET}/{name}/device/physfn"),
                    up=up,
                    rate_bits_per_second=bits,
                )
            )
        return ports

    def _is_hardware(self, name: str) -> bool:
        """Whether a network device is a function of its own that does not carry another's bytes."""
        if name.startswith(VIRTUAL) or "." in name:
            return False
        folder = f"{NET}/{name}"
        if not self._sys.exists(f"{folder}/statistics") or self._sys.number(f"{folder}/type") == IPOIB:
            return False  # bonding_masters is a file; the bytes of IPoIB are counted by the RDMA port
        if self._sys.exists(f"{folder}/bonding") or not self._sys.exists(f"{folder}/device"):
            return False
        return not REPRESENTOR.match(self._sys.text(f"{folder}/phys_port_name") or "")

    def _net_link(self, name: str) -> tuple[bool | None, float | None]:
        state = self._sys.text(f"{NET}/{name}/operstate")
        megabits = self._sys.number(f"{NET}/{name}/speed")
        up = {"up": True, "down": False, "lowerlayerdown": False}.get(state or "")
        return up, megabits * 1e6 if megabits is not None and megabits > 0 else None


def within(folder: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The files' paths."""
    return tuple(f"{folder}/{name}" for name in names)


def port_is_active(text: str | None) -> bool | None:
    """Whether ``4: ACTIVE`` stands in a port's state; None when it says something unknown."""
    match = re.match(r"\s*(\d+)", text or "")
    return PORT_STATES.get(match.group(1)) if match is not None else None


def rate_bits(text: str | None) -> float | None:
    """Bits a second of ``100 Gb/sec (4X EDR)``."""
    match = re.match(r"\s*([\d.]+)\s*Gb/sec", text or "")
    return None if match is None or float(match.group(1)) <= 0 else float(match.group(1)) * 1e9


def nvidia_controllers(sys: KernelTree) -> tuple[str, ...]:
    """PCI addresses of all NVIDIA display and 3D controllers that the kernel lists, also of those NVML lost."""
    found = []
    for address in sys.names("bus/pci/devices"):
        vendor = sys.text(f"bus/pci/devices/{address}/vendor")
        kind = sys.text(f"bus/pci/devices/{address}/class") or ""
        if vendor == "0x10de" and kind.startswith(("0x0300", "0x0302")):
            found.append(address.lower())
    return tuple(sorted(found))
