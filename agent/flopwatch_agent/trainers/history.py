"""What a log said before it showed that a trainer writes it: the first bytes and the latest."""

_HEAD_BYTES = 256 * 1024
_TAIL_BYTES = 1024 * 1024


class History:
    """Keeps the beginning and the end of the bytes given to it; forgets what lies between."""

    def __init__(self) -> None:
        self._head = b""
        self._tail = b""
        self._cut = False

    def keep(self, block: bytes) -> None:
        """Add a block of whole lines."""
        room = _HEAD_BYTES - len(self._head)
        if room > 0:
            self._head += block[:room]
            block = block[room:]
        self._tail += block
        if len(self._tail) > 2 * _TAIL_BYTES:
            self._tail, self._cut = self._tail[-_TAIL_BYTES:], True

    def take(self) -> tuple[bytes, ...]:
        """The kept bytes in order; where something is missing between them, they are two blocks."""
        head, tail, cut = self._head, self._tail, self._cut
        self._head = self._tail = b""
        if len(tail) > _TAIL_BYTES:
            tail, cut = tail[-_TAIL_BYTES:], True
        if not cut:
            return (head + tail,) if head or tail else ()
        return (head, tail)
