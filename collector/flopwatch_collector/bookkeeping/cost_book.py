"""The site's costs as they count: those of the settings, until an operator saves others; every version is kept."""

import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from flopwatch.answers.economy import SavedCosts
from flopwatch_collector.config_cost_file import require_complete
from flopwatch_collector.config_costs import CostSettings
from flopwatch_collector.economics.overrides import overridden
from flopwatch_collector.store.port import Control

KIND = "site_costs"
FRESH_SECONDS = 5.0
"""What another collector saved is known after this long."""
DIGITS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class CostVersion:
    """One saving, or one going back to the settings."""

    version: int
    seconds: float
    by: str
    comment: str
    changes: dict[str, float]
    """What was changed against the costs that counted before, by input."""
    costs: CostSettings | None
    """None: those of the settings count again."""
    file_digest: str
    """Of the settings' costs at that time: shows that they were changed since."""


class Overtaken(Exception):
    """Somebody else saved meanwhile; the message names the version that counts now."""


class CostBook:
    """Takes and keeps the costs of a site. Safe for threads; a change is durable when a method returns."""

    def __init__(
        self, control: Control, settings: CostSettings, clock: Callable[[], float] = time.time
    ) -> None:
        self._control = control
        self._settings = settings
        self._digest = hashlib.sha256(msgspec.json.encode(settings)).hexdigest()
        self._clock = clock
        self._lock = threading.Lock()
        self._read()

    def current(self) -> CostSettings:
        """The costs that count."""
        newest = self.newest()
        return self._settings if newest is None or newest.costs is None else newest.costs

    def newest(self) -> CostVersion | None:
        """The newest version, at most ``FRESH_SECONDS`` old; None while nothing was ever saved."""
        if time.monotonic() - self._read_at > FRESH_SECONDS:
            self._read()
        return self._newest

    def version(self) -> int:
        """Rises with every saving; 0 before the first."""
        newest = self.newest()
        return 0 if newest is None else newest.version

    def versions(self) -> tuple[CostVersion, ...]:
        """Every version, newest first."""
        kept = self._control.load(KIND, CostVersion).values()
        return tuple(sorted(kept, key=lambda one: one.version, reverse=True))

    def told(self) -> SavedCosts | None:
        """Who saved the costs that count; None where those of the settings count."""
        newest = self.newest()
        if newest is None or newest.costs is None:
            return None
        return SavedCosts(
            version=newest.version,
            seconds=newest.seconds,
            by=newest.by,
            comment=newest.comment,
            settings_differ=newest.file_digest != self._digest,
        )

    def save(
        self, changes: Mapping[str, float], by: str, comment: str, expected: int | None = None
    ) -> CostVersion:
        """Costs with inputs changed against those that count now.

        Raises:
            SettingError: an input is not known, its value is not allowed, or it needs another.
            Overtaken: ``expected`` is not the version that counts.
            Unavailable: the control state cannot be written.
        """
        self._read()
        made = require_complete(overridden(self.current(), changes))
        return self._keep(made, dict(changes), (by, comment), expected)

    def replace(self, costs: CostSettings, by: str, comment: str, expected: int | None = None) -> CostVersion:
        """Other costs instead of those that count now.

        Raises:
            Overtaken: ``expected`` is not the version that counts.
            Unavailable: the control state cannot be written.
        """
        self._read()
        return self._keep(costs, {}, (by, comment), expected)

    def withdraw(self, by: str, comment: str) -> CostVersion:
        """The settings' costs count again.

        Raises:
            KeyError: they do already.
            Overtaken: somebody saves at the same time.
            Unavailable: the control state cannot be written.
        """
        self._read()
        if self.told() is None:
            raise KeyError("nothing is saved")
        return self._keep(None, {}, (by, comment), None)

    def _keep(
        self,
        costs: CostSettings | None,
        changes: dict[str, float],
        who: tuple[str, str],
        expected: int | None,
    ) -> CostVersion:
        before = self.version()
        if expected is not None and expected != before:
            raise Overtaken(f"version {before} counts now, not {expected}")
        made = CostVersion(
            version=before + 1, seconds=self._clock(), by=who[0], comment=who[1], changes=changes, costs=costs,
            file_digest=self._digest,
        )  # fmt: skip
        if not self._control.replace(KIND, f"{made.version:0{DIGITS}d}", None, made):
            self._read()
            raise Overtaken(f"version {self.version()} was saved meanwhile")
        self._read()
        return made

    def _read(self) -> None:
        with self._lock:
            kept = self._control.load(KIND, CostVersion)
            self._newest = kept[max(kept)] if kept else None
            self._read_at = time.monotonic()
