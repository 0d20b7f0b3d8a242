"""Which pod was given which GPU, from the kubelet: one unary gRPC call over its socket, decoded by hand.

gRPC is an optional extra, ``flopwatch[kubernetes]``, imported only where the socket is: it costs 16 MiB.
"""

import importlib
import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flopwatch_agent.trainers.protobuf import fields

logger = logging.getLogger(__name__)

METHOD = "/v1.PodResourcesLister/List"
POLL_SECONDS = 15.0
DEADLINE_SECONDS = 2.0
MAX_ANSWER_BYTES = 64 << 20
RESOURCES = ("nvidia.com/", "amd.com/gpu", "gpu.nvidia.com")
WITHOUT_GRPC = (
    "the kubelet's {path} is there, but grpcio is not installed, so GPUs that pods hold and do not use are not known: "
    "install flopwatch[kubernetes]"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class PodDevices:
    """The GPUs of one pod, by the device plugin's ids."""

    namespace: str
    name: str
    device_ids: tuple[str, ...]


class PodResources:
    """Asks the kubelet every 15 s over one channel; ``pods`` is what it said last, None while it does not answer."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.pods: tuple[PodDevices, ...] | None = None
        self.gap: str | None = None
        """Why it cannot be asked, one sentence."""

    def start(self) -> None:
        """Begin to ask, where the socket is."""
        if self._thread is None and self._path.exists():
            self._thread = threading.Thread(target=self._run, name="pod-resources", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End after the present call, which lasts two seconds at most."""
        self._stop.set()

    def _run(self) -> None:
        try:
            grpc: Any = importlib.import_module("grpc")
        except ImportError:
            self.gap = WITHOUT_GRPC.format(path=self._path)
            return
        options = [("grpc.max_receive_message_length", MAX_ANSWER_BYTES)]
        with grpc.insecure_channel(f"unix:{self._path}", options=options) as channel:
            ask = channel.unary_unary(METHOD)
            while not self._stop.is_set():
                try:
                    self.pods, self.gap = tuple(pods_of(ask(b"", timeout=DEADLINE_SECONDS))), None
                except (grpc.RpcError, ValueError, IndexError) as error:
                    self._failed(error)
                self._stop.wait(POLL_SECONDS)

    def _failed(self, error: Exception) -> None:
        code = getattr(error, "code", None)
        words = code().name if callable(code) else str(error)
        if self.gap is None:
            logger.warning("the kubelet does not tell pods' GPUs: %s", words)
        self.pods, self.gap = None, f"the kubelet's {self._path} does not answer ({words})"


def pods_of(answer: bytes) -> Iterator[PodDevices]:
    """The pods of a ``ListPodResourcesResponse`` that hold GPUs.

    Raises:
        ValueError, IndexError: the answer is cut or no such message.
    """
    for pod in messages(answer, 1):
        name = next(texts(pod, 1), "")
        namespace = next(texts(pod, 2), "")
        ids = tuple(dict.fromkeys(found for container in messages(pod, 3) for found in devices_of(container)))
        if ids:
            yield PodDevices(namespace=namespace, name=name, device_ids=ids)


def devices_of(container: bytes) -> Iterator[str]:
    """Device ids of a container's GPUs, those of device plugins and those of dynamic allocation alike."""
    for devices in messages(container, 2):
        if next(texts(devices, 1), "").startswith(RESOURCES):
            yield from texts(devices, 2)
    for resource in messages(container, 5):
        for claim in messages(resource, 4):
            if next(texts(claim, 2), "").startswith(RESOURCES):
                yield from texts(claim, 4)


def messages(data: bytes, number: int) -> Iterator[bytes]:
    """The values of a field that holds messages."""
    return (value for field, value in fields(data) if field == number and isinstance(value, bytes))


def texts(data: bytes, number: int) -> Iterator[str]:
    """The values of a field that holds text."""
    return (value.decode("utf-8", "replace") for value in messages(data, number))
