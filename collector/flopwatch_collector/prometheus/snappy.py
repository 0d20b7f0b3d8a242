"""Snappy's block format, written by a caller that knows where its bytes repeat.

A message of Prometheus's remote write is made of the same labels over and over. Each piece that was written within
the last 64 KB becomes a copy of three bytes; what a search over all bytes would still find is not looked for.
Format: https://github.com/google/snappy/blob/main/format_description.txt
"""

FARTHEST = 65_535
"""A copy with an offset of two bytes reaches back so far."""
LONGEST_COPY = 64
SHORTEST_COPY = 4
"""A copy takes three bytes; shorter pieces are written out."""
SHORT_LITERAL = 60


def varint(number: int) -> bytes:
    """A whole number from 0 in groups of seven bits, lowest first, as protobuf and snappy write it."""
    result = bytearray()
    while number > 0x7F:
        result.append(number & 0x7F | 0x80)
        number >>= 7
    result.append(number)
    return bytes(result)


class SnappyWriter:
    """Takes a message piece by piece; ``finish`` gives the compressed block."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._literal: list[bytes] = []
        self._length = 0
        self._seen: dict[bytes, int] = {}

    def add(self, piece: bytes) -> None:
        """Append bytes that are likely to come again as a whole."""
        size = len(piece)
        before = self._seen.get(piece)
        self._seen[piece] = self._length
        if before is None or size < SHORTEST_COPY or self._length - before > FARTHEST:
            self._literal.append(piece)
        else:
            self._flush()
            self._copy(size, self._length - before)
        self._length += size

    def add_once(self, piece: bytes) -> None:
        """Append bytes that will hardly come again."""
        self._literal.append(piece)
        self._length += len(piece)

    def finish(self) -> bytes:
        """The block: the length of the message, then its elements."""
        self._flush()
        return varint(self._length) + b"".join(self._parts)

    def _copy(self, size: int, offset: int) -> None:
        tail = offset.to_bytes(2, "little")
        while size > 0:
            part = min(size, LONGEST_COPY)
            self._parts.append(bytes(((part - 1) << 2 | 2,)) + tail)
            size -= part

    def _flush(self) -> None:
        """Write what is waiting as one literal."""
        text = b"".join(self._literal)
        self._literal.clear()
        if not text:
            return
        last = len(text) - 1
        if last < SHORT_LITERAL:
            self._parts.append(bytes((last << 2,)))
        else:
            width = (last.bit_length() + 7) // 8
            self._parts.append(bytes(((SHORT_LITERAL - 1 + width) << 2,)) + last.to_bytes(width, "little"))
        self._parts.append(text)
