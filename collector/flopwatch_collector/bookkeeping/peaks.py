"""Whether the site's own peaks are those that kept figures were made with."""

import hashlib
from dataclasses import dataclass

from flopwatch.accelerators import Accelerator
from flopwatch_collector.store.port import Control

KIND = "accounting_peaks"
KEY = "site"


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptPeaks:
    """The digest of the site's peaks as it is kept."""

    digest: str


class Peaks:
    """The site's peaks, durable. Used by the thread that ticks."""

    def __init__(self, control: Control) -> None:
        self._control = control
        kept = control.load(KIND, KeptPeaks).get(KEY)
        self._digest = None if kept is None else kept.digest

    def changed(self, site: tuple[Accelerator, ...]) -> bool:
        """Whether they differ from those of the last time; durable on return. The first ones are no change."""
        digest = hashlib.sha256(repr(sorted(site, key=lambda each: each.name)).encode()).hexdigest()
        if digest == self._digest:
            return False
        was, self._digest = self._digest, digest
        self._control.save(KIND, {KEY: KeptPeaks(digest=digest)})
        return was is not None
