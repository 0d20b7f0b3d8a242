"""Written days and hours whose windows changed since: durable until they are written again."""

from collections.abc import Iterable
from dataclasses import dataclass

from flopwatch_collector.store.port import Control, RollupKind

KIND = "accounting_stale"


@dataclass(frozen=True, kw_only=True, slots=True)
class StalePiece:
    """A day or hour as it is kept: its kind, and epoch seconds of its start."""

    kind: RollupKind
    start_seconds: float


class StalePieces:
    """The wrong sums. Used by the one thread that works on the history."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._pieces = {(each.kind, each.start_seconds) for each in control.load(KIND, StalePiece).values()}

    def of(self, kind: RollupKind) -> frozenset[float]:
        """Starts of the wrong ones of a kind."""
        return frozenset(start for each, start in self._pieces if each == kind)

    def mark(self, kind: RollupKind, starts: Iterable[float]) -> None:
        """Note that these are wrong; durable on return."""
        new = {(kind, start) for start in starts} - self._pieces
        if new:
            documents = {_key(kind, start): StalePiece(kind=kind, start_seconds=start) for _, start in new}
            self._control.save(KIND, documents)
            self._pieces |= new

    def done(self, kind: RollupKind, starts: Iterable[float]) -> None:
        """These are written again."""
        right = {(kind, start) for start in starts} & self._pieces
        if right:
            self._control.delete(KIND, [_key(kind, start) for _, start in right])
            self._pieces -= right


def _key(kind: RollupKind, start: float) -> str:
    return f"{kind}:{start:.0f}"
