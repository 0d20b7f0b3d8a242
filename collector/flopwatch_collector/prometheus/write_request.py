"""Prometheus's ``WriteRequest``: protobuf in a snappy block.

Messages: WriteRequest{1: TimeSeries}, TimeSeries{1: Label, 2: Sample}, Label{1: name, 2: value},
Sample{1: double value, 2: int64 milliseconds}.
"""

import struct
from collections.abc import Iterable

from flopwatch_collector.prometheus.samples import Sample
from flopwatch_collector.prometheus.snappy import SnappyWriter, varint

STALE_BITS = struct.pack("<Q", 0x7FF0000000000002)
"""The NaN that Prometheus takes for the end of a series."""


def encode(samples: Iterable[Sample]) -> bytes:
    """The body of one request."""
    writer = SnappyWriter()
    made: dict[tuple[str, str], bytes] = {}
    for sample in samples:
        for pair in sample.labels:
            if pair not in made:
                made[pair] = _field(1, _label(*pair))
        pieces = [made[pair] for pair in sample.labels]
        bits = STALE_BITS if sample.value is None else struct.pack("<d", sample.value)
        stamp = b"\x10" + varint(sample.time_milliseconds)
        value = b"\x12" + varint(9 + len(stamp)) + b"\x09" + bits
        size = sum(map(len, pieces)) + len(value) + len(stamp)
        writer.add_once(b"\x0a" + varint(size))
        for piece in pieces:
            writer.add(piece)
        writer.add_once(value)
        writer.add(stamp)
    return writer.finish()


def _label(name: str, value: str) -> bytes:
    return _field(1, name.encode()) + _field(2, value.encode(errors="replace"))


def _field(number: int, content: bytes) -> bytes:
    """A field of bytes."""
    return bytes((number << 3 | 2,)) + varint(len(content)) + content
