"""Independent readers of what the bridge writes: snappy's blocks and Prometheus's messages, by their documentation."""

import struct
from dataclasses import dataclass


def unsnap(block: bytes) -> bytes:
    size, at = read_varint(block, 0)
    out = bytearray()
    while at < len(block):
        tag = block[at]
        at += 1
        kind = tag & 3
        if kind == 0:
            length = tag >> 2
            if length >= 60:
                width = length - 59
                length = int.from_bytes(block[at : at + width], "little")
                at += width
            out += block[at : at + length + 1]
            at += length + 1
            continue
        assert kind == 2, "only copies with an offset of two bytes are written"
        offset = int.from_bytes(block[at : at + 2], "little")
        at += 2
        assert 0 < offset <= len(out)
        for _ in range((tag >> 2) + 1):
            out.append(out[-offset])
    assert len(out) == size
    return bytes(out)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(message: bytes) -> list[tuple[int, bytes | int]]:
    found: list[tuple[int, bytes | int]] = []
    at = 0
    while at < len(message):
        key, at = read_varint(message, at)
        if key & 7 == 0:
            number, at = read_varint(message, at)
            found.append((key >> 3, number))
        else:
            size, at = (8, at) if key & 7 == 1 else read_varint(message, at)
            found.append((key >> 3, message[at : at + size]))
            at += size
    return found


@dataclass(frozen=True)
class Written:
    labels: tuple[tuple[str, str], ...]
    bits: int
    time_milliseconds: int

    @property
    def value(self) -> float:
        return struct.unpack("<d", struct.pack("<Q", self.bits))[0]

    @property
    def name(self) -> str:
        return dict(self.labels)["__name__"]


def read_request(block: bytes) -> list[Written]:
    return [
        _series(body) for number, body in fields(unsnap(block)) if number == 1 and isinstance(body, bytes)
    ]


def _series(body: bytes) -> Written:
    labels, samples = [], []
    for number, part in fields(body):
        assert isinstance(part, bytes)
        pair = dict(fields(part))
        if number == 1:
            labels.append((bytes(pair[1]).decode(), bytes(pair[2]).decode()))
        else:
            samples.append((int.from_bytes(bytes(pair[1]), "little"), int(pair[2])))
    assert len(samples) == 1
    return Written(tuple(labels), *samples[0])
