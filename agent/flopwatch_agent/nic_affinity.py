"""How near each GPU and NIC are in the PCI tree, as ``nvidia-smi topo`` names it, from sysfs alone."""

import re
from dataclasses import dataclass
from typing import Literal

from flopwatch.wire import GpuDevice
from flopwatch_agent.sysfs import KernelTree

DEVICES = "bus/pci/devices"
ADDRESS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")
ROOT = re.compile(r"pci[0-9a-f]{4}:[0-9a-f]{2}$")
Relation = Literal["switch", "switches", "root_complex", "numa_node", "system", "unknown"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Affinity:
    """One GPU and one NIC."""

    gpu: str
    device: str
    relation: Relation
    """``switch``: one PCIe switch (PIX); ``switches``: several (PXB); ``root_complex``: PHB; ``numa_node``: NODE."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a PCI function sits."""

    path: tuple[str, ...]
    """Root complex, then every bridge above it."""
    numa_node: int | None


def affinities(sys: KernelTree, gpus: tuple[GpuDevice, ...]) -> tuple[Affinity, ...]:
    """Every GPU with every RDMA device; a flat tree, as virtual machines show, is ``unknown`` and never guessed."""
    nics = {
        f"{device}": place(sys, address)
        for folder in ("class/infiniband", "class/cxi")
        for device in sys.names(folder)
        if (address := pci_address(sys.link(f"{folder}/{device}/device"), sys, f"{folder}/{device}"))
        is not None
    }
    return tuple(
        Affinity(gpu=gpu.uuid, device=device, relation=relation(place(sys, gpu.slot), where))
        for gpu in gpus
        if gpu.mig_parent_uuid is None
        for device, where in sorted(nics.items())
    )


def pci_address(link: str | None, sys: KernelTree, folder: str) -> str | None:
    """The PCI address a class device's ``device`` link, or its own link, points to; None for a software device."""
    for text in (link, sys.link(folder)):
        parts = [part for part in (text or "").split("/") if ADDRESS.match(part)]
        if parts:
            return parts[-1]
    return None


def place(sys: KernelTree, address: str) -> Place:
    """The place of a PCI function; an empty path when the tree does not say it."""
    parts = (sys.link(f"{DEVICES}/{address}") or "").split("/")
    path = tuple(part for part in parts if ROOT.match(part) or ADDRESS.match(part))
    node = sys.text(f"{DEVICES}/{address}/numa_node")
    known = node is not None and node.isdigit()
    return Place(path=path[:-1], numa_node=int(node or 0) if known else None)


def relation(one: Place, other: Place) -> Relation:
    """How near two functions are: by the deepest bridge they share."""
    shared = 0
    for a, b in zip(one.path, other.path, strict=False):
        if a != b:
            break
        shared += 1
    if shared > 1:
        left = max(len(one.path), len(other.path)) - shared
        return "switch" if left <= 1 else "switches"
    virtual = one.numa_node is None or other.numa_node is None
    if not one.path or not other.path or virtual:
        return "unknown"
    if shared == 1:
        return "root_complex"
    return "numa_node" if one.numa_node == other.numa_node else "system"
