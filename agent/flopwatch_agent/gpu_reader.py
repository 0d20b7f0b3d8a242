"""Reads one GPU: its identity, and a sample at a time. A call that failed for good is not made again."""

import dataclasses
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from flopwatch.wire import GpuDevice, GpuSample
from flopwatch_agent import nvml
from flopwatch_agent.counter_watch import CounterWatch
from flopwatch_agent.link_counts import LinkCounts
from flopwatch_agent.nvml import FieldBatch, Gpm, Handle, NvmlError
from flopwatch_agent.nvml_fields import (
    DETAIL_FIELDS,
    FIELDS,
    GPM_CYCLES,
    GPM_CYCLES_BRANCH,
    GPM_METRICS,
    LINK_RATES,
    PCIE_FIELDS,
    Field,
    known_on,
    nvlink_error_fields,
    nvlink_fields,
)

logger = logging.getLogger(__name__)
T = TypeVar("T")

DEVICE_ERRORS = frozenset(
    (nvml.UNINITIALIZED, nvml.GPU_IS_LOST, nvml.RESET_REQUIRED, nvml.LIBRARY_MISMATCH, nvml.GPU_NOT_FOUND)
)
FOR_GOOD = frozenset((nvml.NOT_SUPPORTED, nvml.FUNCTION_NOT_FOUND, nvml.NO_PERMISSION))
UNKNOWN_BEFORE_DOWN = 3
MIB = 1 << 20
WRAP_32 = 0xFFFFFFFF
DETAIL_SECONDS = 10.0
INERT_SECONDS = 5.0
AT_WORK = 0.05
"""From this share of kernel activity on a GPU is not idle."""
MOST_PER_SECOND = {
    "energy_joules": 6000.0, "pcie_transmit_bytes": 3e11, "pcie_receive_bytes": 3e11, "nvlink_transmit_bytes": 5e12,
    "nvlink_receive_bytes": 5e12,
}  # fmt: skip
"""More than any GPU or superchip does: PCIe 6 with 16 lanes carries 0.13, NVLink 5 with 18 links 0.9 TB/s each way."""
LINKS = "NVLink"
PCIE_COUNTERS = ("pcie_transmit_bytes", "pcie_receive_bytes")
INSTANCE_METRICS = tuple((number, name) for number, name in GPM_METRICS if name.endswith("_ratio"))
COUNTERS = frozenset(("ecc_corrected", "ecc_uncorrected", "remapped_rows", "recovery_action", "nvlink_transmit_bytes",
                      "nvlink_receive_bytes"))  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Reads:
    """What is asked of one GPU or MIG instance."""

    fields: tuple[Field, ...] = ()
    """With every sample."""
    details: tuple[Field, ...] = ()
    """Every ten seconds."""
    gpm: Gpm | None = None


def reads_for(handle: Handle, branch: int | None, *, gpm: bool) -> Reads:
    """What a physical GPU is asked, by its architecture and the driver's branch."""
    architecture = optional(lambda: nvml.architecture(handle))
    links = optional(lambda: nvml.link_count(handle)) or 0
    fast = (*FIELDS, *PCIE_FIELDS)
    slow = (*DETAIL_FIELDS, *nvlink_error_fields(architecture, branch, links))
    metrics = GPM_METRICS + (GPM_CYCLES if branch is not None and branch >= GPM_CYCLES_BRANCH else ())
    return Reads(
        fields=(*known_on(fast, branch), *nvlink_fields(architecture, branch, links)),
        details=known_on(slow, branch),
        gpm=Gpm(handle, metrics) if gpm and Gpm.supported(handle) else None,
    )


def instance_reads(parent: Handle, handle: Handle, *, gpm: bool) -> Reads:
    """What a MIG instance is asked: memory, processes, and GPM through its parent."""
    number = optional(lambda: nvml.gpu_instance_id(handle)) if gpm and Gpm.supported(parent) else None
    return Reads(gpm=None if number is None else Gpm(parent, INSTANCE_METRICS, number))


class GpuReader:
    """One physical GPU or MIG instance behind one handle.

    Raises:
        NvmlError: from ``sample``, when the whole device is lost or cannot be read.
    """

    def __init__(
        self, handle: Handle, device: GpuDevice, reads: Reads, watch: CounterWatch | None = None
    ) -> None:
        self.device = device
        self._watch = CounterWatch() if watch is None else watch
        self.gaps: dict[str, str] = {}
        """What may not be read, one sentence a call."""
        self.errors = 0
        self.pids: tuple[int, ...] | None = None
        """What ``processes`` last said; a sample asks it too."""
        self.job: str | None = None
        """Whose process held the GPU as of the last batch; it goes into the next sample."""
        self.interval_seconds: float | None = None
        """How much time a sample stands for, where that is not the agent's own interval."""
        self.details: dict[str, float] = {}
        """What changes rarely or is told at ``/metrics`` only: values by ``name`` or ``name/label``."""
        self.links = LinkCounts()
        self._link_rate: float | None = None
        self._handle = handle
        self._batch = FieldBatch(handle, reads.fields)
        self._detail_batch = FieldBatch(handle, reads.details)
        self._details_at = self._inert_at = float("-inf")
        self._inert_values: dict[str, Any] = {}
        self._never: set[str] = set()
        self._unknown = 0
        self._gpm = reads.gpm
        self._carried: dict[str, float] = {}
        self._pcie: dict[str, float] = {}
        self._cycles: dict[str, float] = {}
        self._last: float | None = None

    def renew(self, device: GpuDevice) -> None:
        """Take over what a later scan says of the device; its link at work is not seen by a scan."""
        self.device = dataclasses.replace(device, pcie_generation=self.device.pcie_generation)

    def processes(self) -> tuple[int, ...] | None:
        """Pids that compute on the GPU; None when they cannot be listed."""
        self.pids = self._attempt("processes", lambda: nvml.compute_processes(self._handle))
        return self.pids

    def sample(self, now: float) -> GpuSample:
        """The GPU at ``now``; what could not be read is None."""
        elapsed = now - self._last if self._last is not None else 0.0
        errors = self.errors
        values: dict[str, Any] = {**self._levels(), **self._batched()}
        values.update(self._activity(elapsed))
        unread = values_missing(values)
        values.update(self._inert(now))
        self._check_counters(values, now)
        self._judge_links(values)
        if not 0.0 <= now - self._details_at < DETAIL_SECONDS:
            self._details_at = now
            self.details = self._detailed()
            self._note_link(values.get("kernel_active_ratio"))
        if self._cycles:
            self.details = {**self.details, **self._cycles}
        if "module_power_watts" in self.details:
            # On a Grace superchip the one energy counter is the module's: GPU, CPU and memory together.
            module_joules = values.pop("energy_joules", None)
            if module_joules is not None:
                self.details["module_energy_joules"] = module_joules
        self._last = now
        self._unknown = self._unknown + 1 if self.errors > errors and unread else 0
        if self._unknown >= UNKNOWN_BEFORE_DOWN:
            raise NvmlError(nvml.UNKNOWN, "every call")
        pids = self.processes()
        count = None if pids is None else len(pids)
        values.update(process_count=count, job=self.job, interval_seconds=self.interval_seconds)
        return GpuSample(time_seconds=now, gpu=self.device.uuid, **values)

    def _check_counters(self, values: dict[str, Any], now: float) -> None:
        """Leave out leaps that no GPU can have made."""
        for name, most in MOST_PER_SECOND.items():
            value = values.get(name)
            if value is not None:
                values[name] = type(value)(self._watch.checked((self.device.uuid, name), value, now, most))

    def _judge_links(self, values: dict[str, Any]) -> None:
        """Leave out NVLink's counters while they cannot be right, and say so."""
        self.links.judge(values, self._link_rate)
        if self.links.doubt is not None:
            self.gaps[LINKS] = f"GPU {self.device.slot}: {self.links.doubt}"
        else:
            self.gaps.pop(LINKS, None)

    def _note_link(self, kernel_active: float | None) -> None:
        """Keep the PCIe link as it is at work: an idle GPU lowers its generation."""
        details = self.details
        generation = details.get("pcie_generation/current")
        if kernel_active is None or kernel_active < AT_WORK or generation is None:
            return
        if self.device.pcie_generation != int(generation):
            self.device = dataclasses.replace(self.device, pcie_generation=int(generation))

    def close(self) -> None:
        """Give back what the driver keeps for this reader; no read may follow."""
        if self._gpm is not None:
            try:
                self._gpm.free()
            except NvmlError as error:
                logger.info("GPU %s: samples were not given back: %s", self.device.slot, error)

    def forget(self) -> None:
        """Ask everything anew: the device came back, or the driver changed."""
        self._never.clear()
        self._unknown = 0
        self._inert_at = self._details_at = float("-inf")
        if self._gpm is not None:
            self._gpm.forget()

    def _levels(self) -> dict[str, Any]:
        handle = self._handle
        values: dict[str, Any] = {}
        rates = self._attempt("utilisation", lambda: nvml.call("nvmlDeviceGetUtilizationRates", handle))
        if rates is not None:
            values["kernel_active_ratio"] = ratio(rates.gpu)
            values["memory_busy_ratio"] = ratio(rates.memory)
        memory = self._attempt("memory", lambda: nvml.memory_info(handle))
        if memory is not None and 0 <= memory[1] <= memory[0]:
            values["memory_used_bytes"] = memory[1]
        values["sm_clock_hertz"] = self._attempt("SM clock", lambda: nvml.clock_hertz(handle))
        values["clock_event_reasons"] = self._attempt(
            "clock events", lambda: nvml.clock_event_reasons(handle)
        )
        return values

    def _inert(self, now: float) -> dict[str, Any]:
        """Temperature and memory clock, which change slowly: asked every five seconds."""
        if 0.0 <= now - self._inert_at < INERT_SECONDS:
            return self._inert_values
        handle = self._handle
        clock = self._attempt("memory clock", lambda: nvml.clock_hertz(handle, memory=True))
        degrees = self._attempt("temperature", lambda: nvml.temperature(handle))
        known = degrees is not None and -40.0 <= degrees < 150.0
        self._inert_values = {"memory_clock_hertz": clock, "temperature_celsius": degrees if known else None}
        self._inert_at = now
        return self._inert_values

    def _batched(self) -> dict[str, Any]:
        handle = self._handle
        found = self._attempt("field values", self._batch.read) or {}
        self._pcie = {name: found.pop(name) for name in PCIE_COUNTERS if name in found}
        average = found.pop("power_average_watts", None)
        values: dict[str, Any] = {k: int(v) if k in COUNTERS else float(v) for k, v in found.items()}
        if "power_watts" not in values:
            values["power_watts"] = average if average is not None else self._power()
        if "energy_joules" not in values:
            energy = self._attempt("energy", lambda: nvml.call("nvmlDeviceGetTotalEnergyConsumption", handle))
            values["energy_joules"] = None if energy is None else energy / 1000
        return values

    def _power(self) -> float | None:
        milliwatts = self._attempt("power", lambda: nvml.call("nvmlDeviceGetPowerUsage", self._handle))
        return milliwatts / 1000 if milliwatts is not None and milliwatts < 2_000_000 else None

    def _detailed(self) -> dict[str, float]:
        """The details now; one that is gone is gone here too."""
        handle = self._handle
        found = self._attempt("details", self._detail_batch.read) or {}
        found.update(self._attempt("PCIe link", lambda: nvml.pcie_link(handle)) or {})
        lasting = self._attempt("persistence mode", lambda: nvml.persistence_mode(handle))
        if lasting is not None:
            found["persistence_mode"] = float(lasting)
        return found

    def _activity(self, elapsed: float) -> dict[str, Any]:
        """GPM's ratios, and its rates summed into counters that start with the agent."""
        gpm = self._gpm
        found = self._attempt("GPM", gpm.read) if gpm is not None else None
        if found is None:
            self._link_rate = None
            if gpm is not None:
                gpm.forget()
            return self._pcie_counters()
        values: dict[str, Any] = {}
        rates = [found.pop(name) for name in LINK_RATES if name in found]
        self._link_rate = sum(rates) if rates else None
        for name, value in found.items():
            if name.endswith("_ratio"):
                values[name] = ratio(value)
            elif name.startswith("sm_cycles/"):
                self._cycles[name] = value
            elif value >= 0.0 and elapsed > 0.0:
                self._carried[name] = self._carried.get(name, 0.0) + value * MIB * elapsed
                values[name] = int(self._carried[name])
        return values

    def _pcie_counters(self) -> dict[str, Any]:
        """The driver's PCIe bytes, once a value has shown that they do not wrap at 32 bits."""
        for name, value in self._pcie.items():
            if value > WRAP_32:
                self._carried[name] = value
        return {name: int(value) for name, value in self._pcie.items() if name in self._carried}

    def _attempt(self, what: str, read: Callable[[], T]) -> T | None:
        """The value; None when it cannot be read. What cannot be read at all is not asked again."""
        if what in self._never:
            return None
        try:
            return read()
        except NvmlError as error:
            if error.code in DEVICE_ERRORS:
                raise
            if error.code in FOR_GOOD:
                self._never.add(what)
                if error.code == nvml.NO_PERMISSION:
                    self.gaps[what] = f"GPU {self.device.slot}: {what} may not be read ({error})"
            else:
                self.errors += 1
            return None


def values_missing(values: dict[str, Any]) -> bool:
    """Whether nothing at all was read."""
    return all(value is None for value in values.values())


def ratio(percent: float) -> float | None:
    """Percent as a ratio; None outside 0 to 100."""
    return percent / 100 if 0.0 <= percent <= 100.0 else None


def describe(handle: Handle, index: int) -> GpuDevice:
    """Identity and limits of a physical GPU.

    Raises:
        NvmlError: its UUID, address or name cannot be read.
    """
    total = optional(lambda: nvml.memory_info(handle)[0])
    limit = optional(lambda: nvml.call("nvmlDeviceGetEnforcedPowerLimit", handle))
    return GpuDevice(
        uuid=nvml.text_of(nvml.call("nvmlDeviceGetUUID", handle)),
        slot=nvml.pci_address(handle),
        name=nvml.text_of(nvml.call("nvmlDeviceGetName", handle)),
        index=index,
        minor=optional(lambda: nvml.minor_number(handle)),
        memory_total_bytes=total,
        power_limit_watts=None if limit is None else limit / 1000,
        pcie_width=optional(lambda: int(nvml.call("nvmlDeviceGetCurrPcieLinkWidth", handle))),
        pcie_width_maximum=optional(lambda: int(nvml.call("nvmlDeviceGetMaxPcieLinkWidth", handle))),
        pcie_generation_maximum=optional(
            lambda: int(nvml.call("nvmlDeviceGetMaxPcieLinkGeneration", handle))
        ),
        max_sm_clock_hertz=optional(lambda: nvml.max_sm_clock_hertz(handle)),
    )


def describe_instance(handle: Handle, parent: GpuDevice) -> GpuDevice:
    """Identity of a MIG instance; ``mig_profile`` such as ``1g.10gb``.

    Raises:
        NvmlError: its UUID cannot be read.
    """
    name = nvml.text_of(nvml.call("nvmlDeviceGetName", handle))
    attributes = optional(lambda: nvml.call("nvmlDeviceGetAttributes_v2", handle))
    profile = name.partition(" MIG ")[2].strip() or instance_profile(attributes)
    return GpuDevice(
        uuid=nvml.text_of(nvml.call("nvmlDeviceGetUUID", handle)),
        slot=parent.slot,
        name=parent.name,
        index=parent.index,
        minor=parent.minor,
        mig_profile=profile,
        mig_parent_uuid=parent.uuid,
        mig_instance_id=optional(lambda: nvml.gpu_instance_id(handle)),
        memory_total_bytes=optional(lambda: nvml.memory_info(handle)[0]),
        sm_count=None if attributes is None else int(attributes.multiprocessorCount),
    )


def instance_profile(attributes: Any) -> str:
    """The profile's name from the instance's slices and memory."""
    if attributes is None:
        return "unknown"
    return f"{attributes.gpuInstanceSliceCount}g.{round(attributes.memorySizeMB / 1024)}gb"


def optional(read: Callable[[], T]) -> T | None:
    """The value; None when NVML cannot tell it. A lost device is raised."""
    try:
        return read()
    except NvmlError as error:
        if error.code in DEVICE_ERRORS:
            raise
        return None
