"""A kubelet that says which pod holds which device: a real gRPC server at a socket, its messages made by hand."""

from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.integration.agent.agent_process import eventually

from flopwatch_agent.pod_resources import PodDevices, PodResources


def length(number: int, content: bytes) -> bytes:
    """A field of a protobuf message that holds bytes; up to two bytes of length."""
    size = len(content)
    head = bytes([size]) if size < 128 else bytes([size & 0x7F | 0x80, size >> 7])
    return bytes([number << 3 | 2]) + head + content


def pod(name: str, *containers: bytes) -> bytes:
    body = length(1, name.encode()) + length(2, b"ml") + b"".join(length(3, item) for item in containers)
    return length(1, body)


def container(resource: str, *ids: str) -> bytes:
    devices = length(1, resource.encode()) + b"".join(length(2, text.encode()) for text in ids)
    return length(1, b"main") + length(2, devices)


@contextmanager
def answering(path: Path, answer: bytes) -> Iterator[Path]:
    """A kubelet whose answer to ``List`` it is; skips without grpcio."""
    grpc: Any = pytest.importorskip("grpc")
    handler = grpc.unary_unary_rpc_method_handler(lambda request, context: answer)
    server = grpc.server(futures.ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("v1.PodResourcesLister", {"List": handler}),)
    )
    assert server.add_insecure_port(f"unix:{path}")
    server.start()
    try:
        yield path
    finally:
        server.stop(None).wait(30)


def asked(path: Path) -> tuple[tuple[PodDevices, ...], str | None]:
    """What the agent understands of a kubelet's answer, and what it says is missing."""
    resources = PodResources(path)
    resources.start()
    try:
        return eventually(lambda: resources.pods), resources.gap
    finally:
        resources.stop()
