"""XIDs and changes of MIG from NVML's event set: one thread that waits in the library, apart from all sampling."""

import ctypes
import logging
import threading
import time
from collections.abc import Callable, Mapping

from flopwatch_agent import nvml
from flopwatch_agent.nvml import Handle, NvmlError
from flopwatch_agent.xids import XidCounter

logger = logging.getLogger(__name__)

TIMEOUT = 10
WAIT_MILLISECONDS = 1500
ERROR_PAUSE_SECONDS = 5.0
XID, MIG_CHANGE, UNAVAILABLE, RECOVERY = 0x8, 0x100, 0x4000, 0x8000
WANTED = XID | MIG_CHANGE | UNAVAILABLE | RECOVERY


class EventWatch:
    """Waits for events of the GPUs given by UUID. Only what happens after ``start`` is told."""

    def __init__(self, handles: Mapping[str, Handle], xids: XidCounter, changed: Callable[[], None]) -> None:
        """``changed`` is called when the GPUs should be looked at anew: MIG, health or recovery changed."""
        self.uuids = frozenset(handles)
        self._handles = dict(handles)
        self._by_address = {address_of(handle): uuid for uuid, handle in handles.items()}
        self._xids, self._changed = xids, changed
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gpu-events", daemon=True)

    def start(self) -> None:
        """Begin to wait."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end after its present wait, which lasts a second and a half at most."""
        self._stop.set()

    def join(self, seconds: float) -> bool:
        """Whether the thread ended within the time."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            events = self._registered()
        except NvmlError as error:
            logger.info("no XIDs from the driver: %s", error)
            return
        try:
            while not self._stop.is_set():
                self._wait(events)
        finally:
            self._free(events)

    def _registered(self) -> Handle:
        """The event set with what each GPU supports: one unsupported kind would refuse them all."""
        events = nvml.call("nvmlEventSetCreate")
        for uuid, handle in self._handles.items():
            try:
                kinds = int(nvml.call("nvmlDeviceGetSupportedEventTypes", handle)) & WANTED
                if kinds:
                    nvml.call("nvmlDeviceRegisterEvents", handle, kinds, events)
            except NvmlError as error:
                logger.info("GPU %s sends no events: %s", uuid, error)
        return events

    def _wait(self, events: Handle) -> None:
        try:
            event = nvml.call("nvmlEventSetWait_v2", events, WAIT_MILLISECONDS)
        except NvmlError as error:
            if error.code != TIMEOUT:
                # A lost GPU may let every wait end at once: never spin.
                self._stop.wait(ERROR_PAUSE_SECONDS)
            return
        uuid = self._by_address.get(address_of(event.device))
        if event.eventType == XID and uuid is not None:
            self._xids.note("driver", uuid, int(event.eventData), time.time())
        elif event.eventType != XID:
            self._changed()

    @staticmethod
    def _free(events: Handle) -> None:
        try:
            nvml.call("nvmlEventSetFree", events)
        except NvmlError as error:
            logger.info("the event set was not freed: %s", error)


def address_of(handle: Handle) -> int | None:
    """Where a device handle points, by which two handles of one GPU are the same."""
    return ctypes.cast(handle, ctypes.c_void_p).value
