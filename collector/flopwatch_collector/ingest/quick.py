"""Pushes decoded at the speed of C: the hardware rows as light structs, their ranges checked while they are read.

The types are made from the wire's own classes, so that they accept what the wire says and nothing else. They have
the wire's attributes, and no Python runs for a row. What they refuse is for the wire's classes to explain.
"""

import dataclasses
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta

from flopwatch.wire import Batch
from flopwatch.wire_hardware import GpuSample, JobSample, NodeSample, PortSample

LATEST_TIME_SECONDS = 32_503_680_000.0
"""The year 3000: a number beyond it is no time."""
LARGEST_INTEGER = 2**62

_Time = Annotated[float, Meta(ge=0.0, le=LATEST_TIME_SECONDS)]
_Ratio = Annotated[float, Meta(ge=0.0, le=1.0)]
_Real = Annotated[float, Meta(ge=-float(LARGEST_INTEGER), le=float(LARGEST_INTEGER))]
_Whole = Annotated[int, Meta(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)]
_RATIOS = frozenset({
    "kernel_active_ratio", "memory_busy_ratio", "sm_active_ratio", "sm_occupancy_ratio", "tensor_active_ratio",
    "dram_active_ratio",
})  # fmt: skip
_BOUNDED: dict[object, Any] = {float: _Real, float | None: _Real | None, int | None: _Whole | None}


def _row(wire_class: Any) -> Any:
    """A struct with the fields of a class of hardware rows."""
    fields = [_field(field, _bounded(field)) for field in dataclasses.fields(wire_class)]
    return msgspec.defstruct(wire_class.__name__, fields, kw_only=True, gc=False)


def _many(row: Any) -> Any:
    return tuple[row, ...]


def _bounded(field: "dataclasses.Field[Any]") -> Any:
    if field.name == "time_seconds":
        return _Time
    if field.name in _RATIOS:
        return _Ratio | None
    return _BOUNDED.get(field.type, field.type)


def _field(field: "dataclasses.Field[Any]", kind: Any) -> Any:
    if field.default is dataclasses.MISSING:
        return (field.name, kind)
    return (field.name, kind, field.default)


def _batch() -> Any:
    rows = {
        "gpu_samples": GpuSample,
        "port_samples": PortSample,
        "node_samples": NodeSample,
        "job_samples": JobSample,
    }
    kinds: dict[str, Any] = {name: _many(_row(wire_class)) for name, wire_class in rows.items()}
    fields = [_field(field, kinds.get(field.name, field.type)) for field in dataclasses.fields(Batch)]

    def checked(self: Any) -> None:
        # The same checks as the wire's own class makes of its head.
        Batch.__post_init__(self)

    return msgspec.defstruct("Batch", fields, kw_only=True, namespace={"__post_init__": checked})


_DECODER = msgspec.json.Decoder(_batch(), strict=True)


def read(body: bytes) -> Batch:
    """The batch in plain JSON, by attributes the same as the wire's; only its hardware rows are checked for range.

    Raises:
        msgspec.ValidationError: it is no batch of this version.
        msgspec.DecodeError: it is not JSON.
    """
    return cast("Batch", _DECODER.decode(body))
