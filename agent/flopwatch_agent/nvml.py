"""The only door to NVML: every call goes through ``call``, and every failure is an ``NvmlError`` with a number."""

import ctypes
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import pynvml

from flopwatch_agent.nvml_fields import Field

UNINITIALIZED = 1
INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
INSUFFICIENT_SIZE = 7
DRIVER_NOT_LOADED = 9
LIBRARY_NOT_FOUND = 12
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
RESET_REQUIRED = 16
LIBRARY_MISMATCH = 18
NO_DATA = 21
ARGUMENT_VERSION = 25
GPU_NOT_FOUND = 28
UNKNOWN = 999

WORDS = {
    UNINITIALIZED: "not initialised",
    INVALID_ARGUMENT: "invalid argument",
    NOT_SUPPORTED: "not supported by this GPU",
    NO_PERMISSION: "no permission",
    DRIVER_NOT_LOADED: "the driver is not loaded",
    LIBRARY_NOT_FOUND: "libnvidia-ml.so.1 is not installed",
    FUNCTION_NOT_FOUND: "the driver is too old for this call",
    GPU_IS_LOST: "the GPU is lost: it fell off the bus or cannot be reached",
    RESET_REQUIRED: "the GPU needs a reset",
    LIBRARY_MISMATCH: "the driver was upgraded and not reloaded (library and kernel module differ)",
    GPU_NOT_FOUND: "no GPU was found",
    UNKNOWN: "unknown error of the driver",
}
ABSENT = frozenset((DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, GPU_NOT_FOUND))
ABSENT_FIELD = frozenset((NOT_SUPPORTED, INVALID_ARGUMENT, FUNCTION_NOT_FOUND))
PART = "part:"
UNION_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")

Handle = Any


class NvmlError(Exception):
    """An NVML call failed; ``code`` is NVML's number, ``call`` the function."""

    def __init__(self, code: int, call: str) -> None:
        super().__init__(f"{call}: {words(code)} (NVML error {code})")
        self.code = code
        self.call = call


def words(code: int) -> str:
    """An NVML error in words."""
    return WORDS.get(code, "NVML error")


def call(name: str, *arguments: Any) -> Any:
    """The result of one NVML function by its name in pynvml.

    Raises:
        NvmlError: it failed, or the library or the binding does not know it (code 13).
    """
    function = getattr(pynvml, name, None)
    if function is None:
        raise NvmlError(FUNCTION_NOT_FOUND, name)
    try:
        return function(*arguments)
    except pynvml.NVMLError as error:
        raise NvmlError(int(error.value), name) from None
    except getattr(pynvml, "NVMLLibraryMismatchError", pynvml.NVMLError):
        raise NvmlError(FUNCTION_NOT_FOUND, name) from None


def call_pointer(name: str, *arguments: Any) -> None:
    """One function of the library itself, for calls whose structures are kept from one to the next.

    Raises:
        NvmlError: it failed, or the library does not know it (code 13).
    """
    try:
        code = pynvml._nvmlGetFunctionPointer(name)(*arguments)  # noqa: SLF001 - pynvml's wrappers make new structures
    except pynvml.NVMLError as error:
        raise NvmlError(int(error.value), name) from None
    if code != 0:
        raise NvmlError(int(code), name)


def text_of(value: str | bytes) -> str:
    """Text that older bindings give as bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def getters(structure: str, *names: str) -> tuple[Callable[[Any], Any], ...]:
    """Ways past pynvml's own attribute look-up, which costs more than the driver's answer."""
    made = getattr(pynvml, structure, None)
    return tuple(attrgetter(name) if made is None else getattr(made, name).__get__ for name in names)


FIELD_CODE, FIELD_TYPE, FIELD_VALUE = getters("c_nvmlFieldValue_t", "nvmlReturn", "valueType", "value")
MEMBER_OF_KIND = dict(enumerate(getters("c_nvmlValue_t", *UNION_MEMBERS)))
METRIC_CODE, METRIC_VALUE = getters("c_nvmlGpmMetric_t", "nvmlReturn", "value")


def init() -> None:
    """Open NVML once.

    Raises:
        NvmlError: there is no driver or it cannot be used; also when another module named pynvml is installed.
    """
    if not hasattr(pynvml, "nvmlDeviceGetFieldValues"):
        raise NvmlError(LIBRARY_NOT_FOUND, f"pynvml at {pynvml.__file__} is not nvidia-ml-py")
    call("nvmlInit")


def shutdown() -> None:
    """Close NVML and with it the device files."""
    call("nvmlShutdown")


def memory_info(handle: Handle) -> tuple[int, int]:
    """Total and used bytes; used is without the driver's reserve where the driver can tell them apart."""
    version = getattr(pynvml, "nvmlMemory_v2", None)
    if version is not None:
        try:
            info = call("nvmlDeviceGetMemoryInfo", handle, version)
        except NvmlError as error:
            if error.code not in (FUNCTION_NOT_FOUND, ARGUMENT_VERSION):
                raise
        else:
            return int(info.total), int(info.used)
    info = call("nvmlDeviceGetMemoryInfo", handle)
    return int(info.total), int(info.used)


class FieldBatch:
    """One batched call, prepared once: the array is used again for every read of one GPU."""

    def __init__(self, handle: Handle, fields: tuple[Field, ...]) -> None:
        self._handle = handle
        # One spare entry: some drivers write one past the end for questions about NVLink.
        self._array = array = (pynvml.c_nvmlFieldValue_t * (len(fields) + 1))()
        self._entries = tuple(
            (array[position], item.name.removeprefix(PART), item.name.startswith(PART), item)
            for position, item in enumerate(fields)
        )
        self._array_pointer, self._count = ctypes.byref(array), ctypes.c_int32(len(fields))
        for entry, _, _, item in self._entries:
            entry.fieldId, entry.scopeId = item.field_id, item.scope

    def read(self) -> dict[str, float]:
        """Values by name, scaled and in range; one that failed is left out, summands are added.

        A sum misses where a summand failed that may answer the next time: half a counter would look like a reset.

        Raises:
            NvmlError: the whole call failed.
        """
        if not self._entries:
            return {}
        call_pointer("nvmlDeviceGetFieldValues", self._handle, self._count, self._array_pointer)
        values: dict[str, float] = {}
        broken: set[str] = set()
        for entry, name, is_part, item in self._entries:
            # The union keeps another field's bytes when the field failed: the code comes first.
            code, kind = FIELD_CODE(entry), FIELD_TYPE(entry)
            if code != 0:
                if is_part and code not in ABSENT_FIELD:
                    broken.add(name)
                continue
            member = MEMBER_OF_KIND.get(kind)
            value = None if member is None else member(FIELD_VALUE(entry)) * item.scale
            if value is None or not item.low <= value < item.high:
                continue
            values[name] = values.get(name, 0) + value if is_part else value
        for name in broken:
            values.pop(name, None)
        return values


def compute_processes(handle: Handle) -> tuple[int, ...]:
    """Pids of the processes that compute on a GPU, as the host numbers them."""
    names = ("", "_v2")
    for suffix in names:
        try:
            found = call(f"nvmlDeviceGetComputeRunningProcesses{suffix}", handle)
        except NvmlError as error:
            if error.code in (NOT_FOUND, NO_DATA):
                return ()
            if error.code != FUNCTION_NOT_FOUND or suffix == names[-1]:
                raise
        else:
            return tuple(sorted({int(item.pid) for item in found}))
    return ()


def pci_address(handle: Handle) -> str:
    """The GPU's PCI address as the kernel writes it: ``0000:1b:00.0``."""
    text = text_of(call("nvmlDeviceGetPciInfo", handle).busId).lower()
    domain, _, rest = text.partition(":")
    return f"{int(domain, 16):04x}:{rest}"


def minor_number(handle: Handle) -> int:
    """N of ``/dev/nvidiaN``."""
    return int(call("nvmlDeviceGetMinorNumber", handle))


class Gpm:
    """Two samples and the struct of one GPU or MIG instance: activity over the time between two reads."""

    def __init__(
        self, handle: Handle, metrics: tuple[tuple[int, str], ...], instance: int | None = None
    ) -> None:
        """``instance`` is the GPU instance's id where ``handle`` is the parent of a MIG instance."""
        self._handle, self._instance = handle, instance
        self._samples = [call("nvmlGpmSampleAlloc"), call("nvmlGpmSampleAlloc")]
        self._have_base = False
        self._request = request = pynvml.c_nvmlGpmMetricsGet_t()
        request.version = pynvml.NVML_GPM_METRICS_GET_VERSION
        request.numMetrics = len(metrics)
        self._answers = [(request.metrics[position], name) for position, (_, name) in enumerate(metrics)]
        for (answer, _), (metric_id, _) in zip(self._answers, metrics, strict=True):
            answer.metricId = metric_id

    @staticmethod
    def supported(handle: Handle) -> bool:
        """Whether this GPU and driver know GPM."""
        try:
            return bool(call("nvmlGpmQueryDeviceSupport", handle).isSupportedDevice)
        except NvmlError as error:
            if error.code in (GPU_IS_LOST, RESET_REQUIRED):
                raise
            return False

    def read(self) -> dict[str, float]:
        """Activity since the last read: percent, or MiB/s; nothing at the first read and after a failed one."""
        if self._instance is None:
            call_pointer("nvmlGpmSampleGet", self._handle, self._samples[1])
        else:
            call_pointer("nvmlGpmMigSampleGet", self._handle, self._instance, self._samples[1])
        try:
            return self._metrics() if self._have_base else {}
        finally:
            self._samples.reverse()
            self._have_base = True

    def forget(self) -> None:
        """Take the next read as a new base: the last pair spans a gap."""
        self._have_base = False

    def free(self) -> None:
        """Give the samples back."""
        for sample in self._samples:
            call("nvmlGpmSampleFree", sample)
        self._samples = []

    def _metrics(self) -> dict[str, float]:
        request = self._request
        request.sample1, request.sample2 = self._samples
        call_pointer("nvmlGpmMetricsGet", ctypes.byref(request))
        return {name: METRIC_VALUE(answer) for answer, name in self._answers if METRIC_CODE(answer) == 0}


def clock_event_reasons(handle: Handle) -> int:
    """The bit mask of why clocks are held down; the older name of the call on older drivers."""
    try:
        return int(call("nvmlDeviceGetCurrentClocksEventReasons", handle))
    except NvmlError as error:
        if error.code != FUNCTION_NOT_FOUND:
            raise
    return int(call("nvmlDeviceGetCurrentClocksThrottleReasons", handle))


def temperature(handle: Handle) -> float:
    """The GPU's temperature in degrees Celsius."""
    try:
        return float(call("nvmlDeviceGetTemperatureV", handle, pynvml.NVML_TEMPERATURE_GPU))
    except NvmlError as error:
        if error.code not in (FUNCTION_NOT_FOUND, ARGUMENT_VERSION):
            raise
    return float(call("nvmlDeviceGetTemperature", handle, pynvml.NVML_TEMPERATURE_GPU))


def mig_devices(handle: Handle) -> list[Handle]:
    """The MIG instances of a GPU; slots are sparse."""
    try:
        enabled = call("nvmlDeviceGetMigMode", handle)[0]
    except NvmlError as error:
        if error.code in (GPU_IS_LOST, RESET_REQUIRED):
            raise
        return []
    found = []
    for slot in range(call("nvmlDeviceGetMaxMigDeviceCount", handle) if enabled else 0):
        try:
            found.append(call("nvmlDeviceGetMigDeviceHandleByIndex", handle, slot))
        except NvmlError as error:
            if error.code not in (NOT_FOUND, INVALID_ARGUMENT):
                raise
    return found


def architecture(handle: Handle) -> int:
    """The GPU's architecture as NVML numbers it: 7 Ampere, 9 Hopper, 10 Blackwell."""
    return int(call("nvmlDeviceGetArchitecture", handle))


def link_count(handle: Handle) -> int:
    """How many NVLinks the GPU has; 0 where the driver cannot tell."""
    values = FieldBatch(handle, (Field(name="links", field_id=91, high=256.0),)).read()
    return int(values.get("links", 0))


def pcie_link(handle: Handle) -> dict[str, float]:
    """Generation and width of the PCIe link, now and at most."""
    return {
        "pcie_generation/current": float(call("nvmlDeviceGetCurrPcieLinkGeneration", handle)),
        "pcie_generation/maximum": float(call("nvmlDeviceGetMaxPcieLinkGeneration", handle)),
        "pcie_lanes/current": float(call("nvmlDeviceGetCurrPcieLinkWidth", handle)),
        "pcie_lanes/maximum": float(call("nvmlDeviceGetMaxPcieLinkWidth", handle)),
    }


def persistence_mode(handle: Handle) -> bool:
    """Whether the driver stays initialised while no program has the GPU open."""
    return bool(call("nvmlDeviceGetPersistenceMode", handle))


def gpu_instance_id(mig_handle: Handle) -> int:
    """The id of the GPU instance that a MIG device lies in."""
    return int(call("nvmlDeviceGetGpuInstanceId", mig_handle))


def max_sm_clock_hertz(handle: Handle) -> float:
    """The highest clock of the SMs."""
    return float(call("nvmlDeviceGetMaxClockInfo", handle, pynvml.NVML_CLOCK_SM)) * 1e6


def clock_hertz(handle: Handle, *, memory: bool = False) -> float:
    """The clock of the SMs, or of the memory, now."""
    kind = pynvml.NVML_CLOCK_MEM if memory else pynvml.NVML_CLOCK_SM
    return float(call("nvmlDeviceGetClockInfo", handle, kind)) * 1e6
