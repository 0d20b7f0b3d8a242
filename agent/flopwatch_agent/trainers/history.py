"""What a log said before it showed that a trainer writes it: the first bytes and the latest."""

from collections import deque

_HEAD_BYTES = 256 * 1024
_TAIL_BYTES = 1024 * 1024


class History:
    """Keeps the beginning and the end of the bytes given to it; forgets what lies between."""

    def __init__(self) -> None:
        self._head = b""
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._cut = False

    def keep(self, block: bytes) -> None:
        """Add a block of whole lines."""
        room = _HEAD_BYTES - len(self._head)
        if room > 0:
            self._head += block[:room]
            block = block[room:]
        if not block:
            return
        self._tail.append(block)
        self._tail_bytes += len(block)
        while self._tail_bytes - len(self._tail[0]) >= _TAIL_BYTES:
            self._tail_bytes -= len(self._tail.popleft())
            self._cut = True

    def take(self) -> tuple[bytes, ...]:
        """The kept bytes in order; where something is missing between them, they are two blocks."""
        head, tail, cut = self._head, b"".join(self._tail), self._cut
        self._head, self._tail_bytes = b"", 0
        self._tail.clear()
        if len(tail) > _TAIL_BYTES:
            tail, cut = tail[-_TAIL_BYTES:], True
        if not cut:
            return (head + tail,) if head or tail else ()
        return (head, tail)
