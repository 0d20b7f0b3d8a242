"""NIC ports from sysfs: RDMA ports under class/infiniband, Ethernet under class/net. Counters stay counters.

InfiniBand's ``port_xmit_data`` and ``port_rcv_data`` count words of four octets, on mlx5 and hfi1 alike; EFA
counts bytes in ``hw_counters``. One file that cannot be read costs its value, never the port.
"""

import re
from typing import Literal

from flopwatch.wire import PortSample
from flopwatch_agent.source import Readings
from flopwatch_agent.sysfs import KernelTree

WORD_BYTES = 4
SLOW_SECONDS = 60.0
SATURATED = 0xFFFFFFFF
VIRTUAL = ("lo", "veth", "docker", "br-", "virbr", "cni", "flannel", "cali", "cilium", "lxc", "tun", "tap", "ifb",
           "dummy", "kube-", "nodelocaldns", "sit", "ip6tnl", "wg", "vxlan", "ovs")  # fmt: skip
RDMA = "class/infiniband"
NET = "class/net"
ERROR_COUNTERS = (
    "symbol_error", "link_downed", "link_error_recovery", "local_link_integrity_errors", "port_rcv_errors",
    "port_xmit_discards", "excessive_buffer_overrun_errors",
)  # fmt: skip
HARDWARE_ERRORS = (
    "out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err", "rx_icrc_encapsulated",
    "retrans_pkts", "rx_drops",
)  # fmt: skip
PORT_STATES = {"0": False, "1": False, "2": False, "3": False, "4": True, "5": True}
"""Whether a port in this state carries data: 4 is ACTIVE, 5 ACTIVE_DEFER."""
Role = Literal["rdma", "ethernet", "management", "unknown"]


class NetworkSource:
    """Reads every port; state and speed, which may block in the kernel, only once a minute."""

    name = "network"

    def __init__(self, sys: KernelTree) -> None:
        self._sys = sys
        self._slow: dict[str, tuple[bool | None, float | None]] = {}
        self._slow_at: float | None = None
        self._absent: set[str] = set()
        """Counters that were not there when they were last looked for."""

    def read(self, now: float) -> Readings:
        """One sample a port."""
        slow = self._slow_at is None or now - self._slow_at >= SLOW_SECONDS or now < self._slow_at
        if slow:
            self._slow, self._slow_at = {}, now
            self._absent.clear()
        samples = [*self._rdma(now), *self._ethernet(now)]
        return Readings(port_samples=tuple(samples))

    def _rdma(self, now: float) -> list[PortSample]:
        samples = []
        for device in self._sys.names(RDMA):
            for port in self._sys.names(f"{RDMA}/{device}/ports"):
                sample = self._rdma_port(now, device, port)
                if sample is not None:
                    samples.append(sample)
        return samples

    def _rdma_port(self, now: float, device: str, port: str) -> PortSample | None:
        folder = f"{RDMA}/{device}/ports/{port}"
        transmit, receive = self._rdma_bytes(device, folder)
        if transmit is None and receive is None:
            return None
        name = f"{device}/{port}"
        if name not in self._slow:
            state, rate = self._sys.text(f"{folder}/state"), self._sys.text(f"{folder}/rate")
            self._slow[name] = (port_is_active(state), rate_bits(rate))
        up, bits = self._slow[name]
        return PortSample(
            time_seconds=now,
            port=name,
            role="rdma",
            transmit_bytes=transmit,
            receive_bytes=receive,
            errors=self._sum(
                (f"{folder}/counters", ERROR_COUNTERS),
                (f"{folder}/hw_counters", HARDWARE_ERRORS),
            ),
            waits=self._counter(f"{folder}/counters/port_xmit_wait"),
            link_up=up,
            link_rate_bits_per_second=bits,
        )

    def _rdma_bytes(self, device: str, folder: str) -> tuple[int | None, int | None]:
        sent = self._words(folder, "port_xmit_data")
        received = self._words(folder, "port_rcv_data")
        if sent is not None or received is not None:
            return sent, received
        hardware = f"{folder}/hw_counters"
        if not self._sys.exists(hardware):
            hardware = f"{RDMA}/{device}/hw_counters"
        transmit = self._sum((hardware, ("tx_bytes", "rdma_read_resp_bytes", "rdma_write_bytes")))
        arrived = self._sum((hardware, ("rx_bytes", "rdma_read_bytes", "rdma_write_recv_bytes")))
        return transmit, arrived

    def _words(self, folder: str, counter: str) -> int | None:
        """A word counter in bytes: the 64-bit copy where there is one; a saturated 32-bit one is unknown."""
        value = self._counter(f"{folder}/counters_ext/{counter}_64")
        if value is None:
            value = self._counter(f"{folder}/counters/{counter}")
        return None if value is None or value < 0 or value == SATURATED else value * WORD_BYTES

    def _counter(self, path: str) -> int | None:
        """A counter's value; one that is missing is looked for again with the next slow read."""
        if path in self._absent:
            return None
        value = self._sys.number(path)
        if value is None:
            self._absent.add(path)
        return value

    def _sum(self, *groups: tuple[str, tuple[str, ...]]) -> int | None:
        numbers = [self._counter(f"{folder}/{name}") for folder, names in groups for name in names]
        known = [number for number in numbers if number is not None and number >= 0]
        return sum(known) if known else None

    def _ethernet(self, now: float) -> list[PortSample]:
        samples = []
        for name in self._sys.names(NET):
            role = self._role(name)
            if role is None:
                continue
            folder = f"{NET}/{name}/statistics"
            transmit, receive = self._sys.number(f"{folder}/tx_bytes"), self._sys.number(f"{folder}/rx_bytes")
            if transmit is None and receive is None:
                continue
            if name not in self._slow:
                self._slow[name] = self._net_link(name)
            up, bits = self._slow[name]
            samples.append(
                PortSample(
                    time_seconds=now,
                    port=name,
                    role=role,
                    transmit_bytes=transmit,
                    receive_bytes=receive,
                    errors=self._sum((folder, ("rx_errors", "tx_errors", "rx_dropped", "tx_dropped"))),
                    link_up=up,
                    link_rate_bits_per_second=bits,
                )
            )
        return samples

    def _role(self, name: str) -> Role | None:
        """What a network device is for; None for one that is no hardware of its own, or carries RDMA bytes twice."""
        if name.startswith(VIRTUAL) or "." in name:
            return None
        folder = f"{NET}/{name}"
        if not self._sys.exists(f"{folder}/statistics") or self._sys.number(f"{folder}/type") == 32:
            return None  # bonding_masters is a file; type 32 is IPoIB, whose bytes the RDMA port counts
        if self._sys.exists(f"{folder}/bonding") or not self._sys.exists(f"{folder}/device"):
            return None
        if "vf" in (self._sys.text(f"{folder}/phys_port_name") or ""):
            return None
        return "ethernet"

    def _net_link(self, name: str) -> tuple[bool | None, float | None]:
        state = self._sys.text(f"{NET}/{name}/operstate")
        megabits = self._sys.number(f"{NET}/{name}/speed")
        up = {"up": True, "down": False, "lowerlayerdown": False}.get(state or "")
        return up, megabits * 1e6 if megabits is not None and megabits > 0 else None


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
