"""What several collectors need of the control state beyond ``Control``."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from flopwatch_collector.store.port import Control


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

    def holds_lease(self, name: str, holder: str) -> bool:
        """Whether the holder has the lease now."""
        ...
