"""What every GPU draws when it is idle: learned as it is seen, the lowest counts, and kept."""

from collections.abc import Mapping
from dataclasses import dataclass

from flopwatch_collector.compute.idle_power import idle_watts
from flopwatch_collector.model import Columns
from flopwatch_collector.store.port import Control

KIND = "idle_power"
NOTABLE_RATIO = 0.99
"""A value that is less than one percent lower is the same."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IdlePower:
    """The idle power of one GPU as it is kept."""

    watts: float


class IdlePowers:
    """The idle power of all GPUs, durable. Used by the thread that ticks."""

    def __init__(self, control: Control) -> None:
        self._control = control
        kept = control.load(KIND, IdlePower)
        self._watts = {int(key): each.watts for key, each in kept.items()}
        self.changes = 0
        """Rises when a GPU's idle power became known, or lower."""

    def watts(self) -> Mapping[int, float]:
        """By GPU; where nothing is known, nothing."""
        return self._watts

    def learn(self, samples: Columns) -> None:
        """Take what samples show; durable on return."""
        new = {}
        for gpu, watts in idle_watts(samples).items():
            known = self._watts.get(gpu)
            if known is None or watts < known * NOTABLE_RATIO:
                new[gpu] = watts
        if new:
            self._control.save(KIND, {str(gpu): IdlePower(watts=watts) for gpu, watts in new.items()})
            self._watts = {**self._watts, **new}
            self.changes += 1
