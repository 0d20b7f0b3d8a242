"""What several collectors need of the control state beyond ``Control``."""

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from flopwatch_collector.store.port import Control

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Changes:
    """What became of documents after some change number, by kind and key; ``number`` is the newest one seen."""

    number: int
    saved: Mapping[str, Mapping[str, Any]]
    deleted: Mapping[str, list[str]]


class SharedControl(Control, Protocol):
    """A control state that other collectors write too."""

    def exclusive(self) -> "contextlib.AbstractContextManager[None]":
        """One transaction for all that this thread does with it; no other collector writes meanwhile."""
        ...

    def changes(self, kinds: Mapping[str, type[Any]], since: int) -> Changes:
        """Documents saved and deleted after change number ``since``, by any collector."""
        ...

    def newest_change(self) -> int:
        """The number of the newest change; within :meth:`exclusive` nobody makes another."""
        ...

    def holds_lease(self, name: str, holder: str) -> bool:
        """Whether the holder has the lease now."""
        ...


class Reserved:
    """Documents that only the collector on duty writes: what others would save they keep to themselves."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self.on_duty = True

    def load(self, kind: str, type_: type[T]) -> dict[str, T]:
        """All documents of a kind, by key."""
        return self._control.load(kind, type_)

    def save(self, kind: str, documents: Mapping[str, Any]) -> None:
        """Insert or replace documents, on duty."""
        self.save_all({kind: documents})

    def save_all(self, kinds: Mapping[str, Mapping[str, Any]]) -> None:
        """Insert or replace documents of several kinds in one transaction, on duty."""
        if self.on_duty:
            self._control.save_all(kinds)

    def delete(self, kind: str, keys: Iterable[str]) -> None:
        """Remove documents, on duty."""
        if self.on_duty:
            self._control.delete(kind, keys)

    def replace(self, kind: str, key: str, expected: Any | None, document: Any) -> bool:
        """Save a document if it is still the expected one, on duty."""
        return self.on_duty and self._control.replace(kind, key, expected, document)

    def take_lease(self, name: str, holder: str, seconds: float) -> bool:
        """As the control state does."""
        return self._control.take_lease(name, holder, seconds)

    def drop_lease(self, name: str, holder: str) -> None:
        """As the control state does."""
        self._control.drop_lease(name, holder)

    def close(self) -> None:
        """Nothing to do: the control state is closed by whom it belongs to."""
