"""Bytes to lines: cut at LF and CR, keep what is incomplete, bound every line, drop escape sequences."""

import codecs
import re
from collections.abc import Iterator

MAX_LINE_BYTES = 1 << 20
"""A longer line is cut here and its rest dropped: no log can make the reader grow."""

CONTAINER_LINE = re.compile(
    rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d) (?:stdout|stderr) [FP] "
)
"""A line of a container runtime's file: carriage returns inside are the trainer's, the line ends at LF."""
CONTAINER_PREFIX_BYTES = 64
CENTURY = b"20"
"""A container's line begins with it; cheaper to look for than the whole."""

_SLICE_BYTES = 1 << 20
_ESCAPES = re.compile(
    rb"(?:\x1b|\\u001b)(?:\[[0-?]*[ !#-+.-/-]*[@-~]|\][^\x07\x1b\n\r]*(?:\x07|\x1b\\)|[@-Z^_=>])"
)
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MARKS = (*_UTF16, codecs.BOM_UTF8)


class LineCutter:
    """Collects bytes and gives back blocks of whole lines, escape sequences removed."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._dropping = False
        self._decoder: codecs.IncrementalDecoder | None = None
        self._started = False

    def feed(self, data: bytes) -> list[bytes]:
        """Blocks of complete lines, each ending in LF or CR."""
        data = self._transcoded(data)
        blocks = []
        for start in range(0, len(data), _SLICE_BYTES):
            block = self._cut(data[start : start + _SLICE_BYTES])
            if block:
                blocks.append(without_escapes(block))
        return blocks

    def finish(self) -> bytes:
        """The last line, where the file does not end in a line feed."""
        rest, self._rest = bytes(self._rest), bytearray()
        return without_escapes(rest + b"\n") if rest else b""

    def _transcoded(self, data: bytes) -> bytes:
        if not self._started and data:
            joined = bytes(self._rest) + data
            if any(len(joined) < len(mark) and mark.startswith(joined) for mark in _MARKS):
                self._rest = bytearray(joined)
                return b""
            self._started, self._rest = True, bytearray()
            if joined[:2] in _UTF16:
                self._decoder = codecs.getincrementaldecoder("utf-16")("replace")
            data = joined.removeprefix(codecs.BOM_UTF8)
        return self._decoder.decode(data).encode() if self._decoder else data

    def _cut(self, data: bytes) -> bytes:
        end = self._end_of_lines(data)
        if not end:
            self._keep(data)
            return b""
        head = data[:end]
        if self._dropping:
            first = min(place for place in (head.find(b"\n"), head.find(b"\r")) if place >= 0)
            head = bytes(self._rest) + head[first:]
        elif len(self._rest) + len(head) > MAX_LINE_BYTES:
            head = _bounded(bytes(self._rest) + head)
        else:
            head = bytes(self._rest) + head
        self._rest, self._dropping = bytearray(), False
        self._keep(data[end:])
        return head

    def _end_of_lines(self, data: bytes) -> int:
        """Where the last complete line ends: at a line feed, or at a CR unless the line is a container's."""
        end = data.rfind(b"\n") + 1
        carriage = data.rfind(b"\r") + 1
        if carriage <= end:
            return end
        begin = data[end:carriage] if end else bytes(self._rest[:CONTAINER_PREFIX_BYTES]) + data[:carriage]
        return end if CONTAINER_LINE.match(begin) else carriage

    def _keep(self, tail: bytes) -> None:
        if self._dropping or not tail:
            return
        self._rest += tail
        if len(self._rest) > MAX_LINE_BYTES:
            self._rest, self._dropping = self._rest[:MAX_LINE_BYTES], True


def _bounded(block: bytes) -> bytes:
    """The block with every over-long line cut to the bound."""
    if not _has_long_line(block):
        return block
    lines = re.split(rb"(?<=[\n\r])", block)
    return b"".join(
        line if len(line) <= MAX_LINE_BYTES else line[:MAX_LINE_BYTES] + line[-1:] for line in lines
    )


def _has_long_line(block: bytes) -> bool:
    """Whether two line ends lie further apart than the bound: looked for in strides, not line by line."""
    place = 0
    while len(block) - place > MAX_LINE_BYTES:
        reach = place + MAX_LINE_BYTES + 1
        end = max(block.rfind(b"\n", place, reach), block.rfind(b"\r", place, reach))
        if end < 0:
            return True
        place = end + 1
    return False


def line_bounds(block: bytes, place: int, low: int = 0) -> tuple[int, int]:
    """Begin and end of the line that holds ``place``, its terminator excluded; ``low`` is where a line begins."""
    start = block.rfind(b"\n", low, place) + 1 or low
    end = block.find(b"\n", place)
    end = len(block) if end < 0 else end
    if block.startswith(CENTURY, start) and CONTAINER_LINE.match(block, start):
        return start, end
    start = block.rfind(b"\r", start, place) + 1 or start
    carriage = block.find(b"\r", place, end)
    return start, end if carriage < 0 else carriage


def lines_at(block: bytes, places: list[int]) -> Iterator[tuple[int, int]]:
    """Begin and end of each line that holds one of the ascending ``places``."""
    after = 0
    for place in places:
        if place >= after:
            start, end = line_bounds(block, place, after)
            after = end + 1
            yield start, end


def without_escapes(block: bytes) -> bytes:
    """The bytes without terminal escape sequences and NUL bytes."""
    if b"\x1b" in block or b"001b[" in block:
        block = _ESCAPES.sub(b"", block)
    return block.replace(b"\0", b"") if b"\0" in block else block
