"""Capacity: which GPU is in which slot of which node, and since when."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from flopwatch.wire import GpuDevice, NodeFacts
from flopwatch_collector.ingest.place import Place
from flopwatch_collector.ingest.table import Table, next_number
from flopwatch_collector.model import Gpu

TAKEOVER_INTERVALS = 6.0
"""Another node may take a UUID over when its present node has been silent for so many intervals."""
UNKNOWN_SLOT = "unknown"
TOLD_SLOT = "told:"
"""Slots of GPUs that an inventory lists and nothing reports: ``told:0``, ``told:1``, …"""
UNREPORTED = "the scheduler or the site's inventory lists this GPU and no agent reports it"


class Slots:
    """The tenures of all slots. A slot holds one GPU at a time, or the MIG instances of one."""

    def __init__(self, table: Table[int, Gpu]) -> None:
        self._table = table
        self._by_uuid: dict[tuple[str, str], list[int]] = {}
        self._by_slot: dict[tuple[int, str], list[int]] = {}
        self._active: dict[int, float] = {}
        self._by_node: dict[int, list[int]] = {}
        self._told: dict[int, int] = {}
        """By node: how many GPUs its inventory lists."""
        for gpu in sorted(table.records.values(), key=lambda gpu: gpu.from_seconds):
            self._index(gpu)

    def learn(self, gpus: Mapping[int, Gpu]) -> None:
        """Take over what another collector saved."""
        known = set(self._table.records)
        self._table.learn(gpus)
        for number in sorted(gpus):
            gpu = gpus[number]
            if number not in known:
                self._index(gpu)
            elif number not in (numbers := self._by_slot.setdefault((gpu.node, gpu.slot), [])):
                numbers.append(number)

    def inventory(self, place: Place, devices: tuple[GpuDevice, ...]) -> None:
        """Take a node's whole inventory: new tenures begin, replaced ones end, missing GPUs are lost."""
        parents = {device.mig_parent_uuid for device in devices}
        present = [device for device in devices if device.uuid not in parents]
        uuids = {device.uuid for device in present}
        for slot in {normal_slot(device.slot) for device in present}:
            for number in self._open_in(place.node, slot):
                gpu = self._table.records[number]
                if gpu.uuid not in uuids and place.time_seconds > gpu.from_seconds:
                    self._put(replace(gpu, to_seconds=self._replaced(place, gpu)))
        for device in present:
            self._report(place, device)
        self._mark_lost(place, uuids)
        if place.node in self._told:
            self.told(place, self._told[place.node])

    def told(self, place: Place, count: int) -> None:
        """Take the number of GPUs that an inventory lists for the node: those that nothing reports are capacity.

        A GPU that is reported later takes the place of one of them.
        """
        self._told[place.node] = count
        tenures = [self._table.records[number] for number in self._by_node.get(place.node, ())]
        present = [gpu for gpu in tenures if gpu.to_seconds is None]
        stand_ins = [gpu for gpu in present if gpu.slot.startswith(TOLD_SLOT)]
        missing = count - len({gpu.slot for gpu in present} - {gpu.slot for gpu in stand_ins})
        for gpu in sorted(stand_ins, key=lambda gpu: gpu.index or 0)[max(0, missing) :]:
            self._put(replace(gpu, to_seconds=max(place.first_seconds, gpu.from_seconds)))
        used = {gpu.index for gpu in present}
        free = [index for index in range(count) if index not in used][: max(0, missing - len(stand_ins))]
        for index in free:
            slot = f"{TOLD_SLOT}{index}"
            uuid = f"unread:{place.node_name}:{slot}"
            device = GpuDevice(
                uuid=uuid, slot=slot, name="", index=index, state="unreadable", reason=UNREPORTED
            )
            self._found(place, device)

    def _replaced(self, place: Place, gpu: Gpu) -> float:
        """When another card took the GPU's slot: with the first sample after the GPU's own last one."""
        last = max(self._active.get(gpu.number, gpu.from_seconds), gpu.from_seconds)
        return max(last, min(place.first_seconds, place.time_seconds))

    def expected(self, place: Place, facts: NodeFacts) -> None:
        """Count slots that the kernel lists and nothing reports: capacity that is there and unknown."""
        reason = {
            "ok": "the kernel lists this GPU and NVML does not",
            "absent": "the NVML library is not installed on the node",
            "failed": "NVML could not be started on the node",
        }[facts.nvml]
        for address in facts.expected_gpus:
            slot = normal_slot(address)
            if self._open_in(place.node, slot) or self._covered(place.node, slot, place.time_seconds):
                continue
            uuid = f"unread:{place.node_name}:{slot}"
            self._found(place, GpuDevice(uuid=uuid, slot=slot, name="", state="unreadable", reason=reason))

    def numbers(self, place: Place, sampled: Iterable[str], named: Iterable[str]) -> dict[str, int | None]:
        """The tenure of each UUID at the batch's time.

        A sampled GPU that no inventory has named yet is taken in; one that is only named by a job or an event
        is not. ``None`` for a GPU that another node reports now, that has left its slot, or is not known.
        """
        numbers = {uuid: self._sampled(place, uuid) for uuid in sampled}
        for uuid in named:
            if uuid not in numbers:
                tenures = self._by_uuid.get((place.cluster, uuid))
                numbers[uuid] = self._at(tenures, place.time_seconds) if tenures else None
        return numbers

    def _sampled(self, place: Place, uuid: str) -> int | None:
        tenures = self._by_uuid.get((place.cluster, uuid))
        if not tenures:
            return self._found(place, GpuDevice(uuid=uuid, slot=UNKNOWN_SLOT, name=""))
        gpu = self._table.records[self._at(tenures, place.time_seconds)]
        if gpu.node != place.node:
            if not self._may_take_over(place, gpu.number):
                return None
            return self._move(place, gpu, GpuDevice(uuid=uuid, slot=UNKNOWN_SLOT, name=""))
        if gpu.to_seconds is not None and place.first_seconds > gpu.to_seconds:
            return None
        self._mark_active(gpu.number, place.time_seconds)
        if place.first_seconds < gpu.from_seconds:
            self._put(replace(gpu, from_seconds=self._start(place, gpu)))
        return gpu.number

    def _report(self, place: Place, device: GpuDevice) -> None:
        tenures = self._by_uuid.get((place.cluster, device.uuid))
        if not tenures:
            self._found(place, device)
            return
        gpu = self._table.records[self._at(tenures, place.time_seconds)]
        slot = normal_slot(device.slot)
        if gpu.node == place.node and gpu.slot in (slot, UNKNOWN_SLOT):
            self._seen(place, gpu, device)
        elif gpu.node == place.node or self._may_take_over(place, gpu.number):
            self._move(place, gpu, device)

    def _seen(self, place: Place, gpu: Gpu, device: GpuDevice) -> None:
        """The GPU where it was known to be: an ended tenure begins anew, a running one is brought up to date."""
        time = place.time_seconds
        if gpu.to_seconds is not None and time > gpu.to_seconds:
            self._found(place, device)
            return
        late = time < self._active.get(gpu.number, 0.0)
        described = gpu if late else _described(gpu, device)
        changed = replace(described, from_seconds=self._start(place, gpu))
        if changed != gpu:
            self._put(changed)
            if changed.slot != gpu.slot:
                self._by_slot.setdefault((gpu.node, changed.slot), []).append(gpu.number)
        self._mark_active(gpu.number, time)

    def _start(self, place: Place, gpu: Gpu) -> float:
        """When the tenure began: earlier than known when older samples arrive late."""
        first = place.first_seconds
        if first < gpu.from_seconds and not self._covered(gpu.node, gpu.slot, first):
            return first
        return gpu.from_seconds

    def _found(self, place: Place, device: GpuDevice) -> int:
        """A new tenure; one that a later tenure of the slot is known to have followed is over."""
        slot = normal_slot(device.slot)
        later = [
            self._table.records[number].from_seconds
            for number in self._by_slot.get((place.node, slot), ())
            if slot != UNKNOWN_SLOT
            and self._table.records[number].from_seconds > place.time_seconds
            and not self._sibling(number, device)
        ]
        gpu = Gpu(
            number=next_number(self._table),
            cluster=place.cluster,
            node=place.node,
            slot=slot,
            uuid=device.uuid,
            name=device.name,
            from_seconds=place.first_seconds,
            to_seconds=min(later, default=None),
        )
        gpu = _described(gpu, device)
        self._put(gpu)
        self._index(gpu)
        self._mark_active(gpu.number, place.time_seconds)
        return gpu.number

    def _sibling(self, number: int, device: GpuDevice) -> bool:
        """Whether both are MIG instances, which share a slot."""
        return device.mig_profile is not None and self._table.records[number].mig_profile is not None

    def _move(self, place: Place, gpu: Gpu, device: GpuDevice) -> int:
        """The GPU has left its slot for this one."""
        if gpu.to_seconds is None:
            self._put(replace(gpu, to_seconds=max(place.time_seconds, gpu.from_seconds)))
        known = device if device.name else replace(device, name=gpu.name)
        return self._found(place, known)

    def _may_take_over(self, place: Place, number: int) -> bool:
        silent = place.time_seconds - self._active.get(number, self._table.records[number].from_seconds)
        return silent > TAKEOVER_INTERVALS * place.interval_seconds

    def _mark_lost(self, place: Place, uuids: set[str]) -> None:
        """GPUs of the node that its inventory no longer names, though nothing took their slot."""
        for number in self._by_node.get(place.node, ()):
            gpu = self._table.records[number]
            gone = gpu.to_seconds is None and gpu.uuid not in uuids and gpu.state == "ok"
            if gone and place.time_seconds > self._active.get(number, gpu.from_seconds):
                self._put(replace(gpu, state="lost", reason="no longer in the node's inventory"))

    def _open_in(self, node: int, slot: str) -> list[int]:
        numbers = self._by_slot.get((node, slot), ())
        return [number for number in numbers if self._table.records[number].to_seconds is None]

    def _covered(self, node: int, slot: str, time: float) -> bool:
        """Whether a tenure of the slot that has ended holds the time."""
        tenures = (self._table.records[number] for number in self._by_slot.get((node, slot), ()))
        return any(
            gpu.to_seconds is not None and gpu.from_seconds <= time < gpu.to_seconds for gpu in tenures
        )

    def _at(self, tenures: list[int], time: float) -> int:
        """The tenure that holds the time, else the newest."""
        if len(tenures) == 1:
            return tenures[0]
        for number in reversed(tenures):
            if self._table.records[number].from_seconds <= time:
                return number
        return tenures[0]

    def _mark_active(self, number: int, time: float) -> None:
        self._active[number] = max(time, self._active.get(number, 0.0))

    def _put(self, gpu: Gpu) -> None:
        self._table.put(gpu.number, gpu)

    def _index(self, gpu: Gpu) -> None:
        tenures = self._by_uuid.setdefault((gpu.cluster, gpu.uuid), [])
        tenures.append(gpu.number)
        tenures.sort(key=lambda number: self._table.records[number].from_seconds)
        self._by_slot.setdefault((gpu.node, gpu.slot), []).append(gpu.number)
        self._by_node.setdefault(gpu.node, []).append(gpu.number)


def _described(gpu: Gpu, device: GpuDevice) -> Gpu:
    """The tenure with what the device says of itself now."""
    return replace(
        gpu,
        slot=normal_slot(device.slot),
        name=device.name or gpu.name,
        state=device.state,
        reason=device.reason,
        index=device.index,
        memory_total_bytes=device.memory_total_bytes or gpu.memory_total_bytes,
        mig_profile=device.mig_profile,
        sm_count=device.sm_count or gpu.sm_count,
        max_sm_clock_hertz=device.max_sm_clock_hertz or gpu.max_sm_clock_hertz,
        power_limit_watts=device.power_limit_watts or gpu.power_limit_watts,
        pcie_width=device.pcie_width,
        pcie_width_maximum=device.pcie_width_maximum or gpu.pcie_width_maximum,
        pcie_generation=device.pcie_generation or gpu.pcie_generation,
        pcie_generation_maximum=device.pcie_generation_maximum or gpu.pcie_generation_maximum,
    )


def normal_slot(address: str) -> str:
    """A PCI address in the kernel's form: NVML writes the domain with eight digits, and in capitals."""
    text = address.strip().lower()
    domain, separator, rest = text.partition(":")
    if separator and len(domain) == 8 and domain.startswith("0000"):
        return f"{domain[4:]}:{rest}"
    return text
