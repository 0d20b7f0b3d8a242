"""The rules' own levels and times; a site changes them in ``[alerts.rules]``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from flopwatch_collector.config import AlertSettings


@dataclass(frozen=True, kw_only=True, slots=True)
class Levels:
    """When a rule fires and clears; ratios, seconds."""

    level: float = 0.0
    clear: float = 0.0
    for_seconds: float = 0.0
    keep_seconds: float = 0.0


LEVELS: Final[Mapping[str, Levels]] = {
    "MfuDrop": Levels(level=0.90, clear=0.95, for_seconds=600.0, keep_seconds=600.0),
    "MfuBelowNorm": Levels(level=0.80, clear=0.88, for_seconds=1_800.0, keep_seconds=1_800.0),
    "HighUtilLowMfu": Levels(level=0.30, clear=0.30, for_seconds=1_800.0, keep_seconds=600.0),
    "Straggler": Levels(for_seconds=900.0, keep_seconds=900.0),
    "StepSpikes": Levels(level=0.05, clear=0.02, for_seconds=600.0, keep_seconds=600.0),
    "HwThrottle": Levels(for_seconds=300.0, keep_seconds=600.0),
    "ThermalThrottle": Levels(for_seconds=600.0, keep_seconds=600.0),
    "RestartStorm": Levels(level=5, clear=1, keep_seconds=3_600.0),
    "NoProgress": Levels(level=3, clear=1),
    "CkptSlow": Levels(level=3.0, clear=1.5),
    "GpuLost": Levels(for_seconds=60.0, keep_seconds=600.0),
    "GpuErrors": Levels(level=1, for_seconds=60.0, keep_seconds=3_600.0),
    "LinkDegraded": Levels(level=0.80, clear=0.80, for_seconds=300.0, keep_seconds=600.0),
    "NodeDown": Levels(for_seconds=60.0, keep_seconds=600.0),
    "LemonNode": Levels(level=3),
    "AgentUnhealthy": Levels(for_seconds=600.0, keep_seconds=60.0),
    "BudgetBurn": Levels(level=1.2, clear=1.2, for_seconds=900.0, keep_seconds=900.0),
}


def levels(rule: str, settings: AlertSettings) -> Levels:
    """A rule's levels with what the site changes of them; times are changed where readings are."""
    base, own = LEVELS[rule], settings.rules.get(rule)
    if own is None or (own.level is None and own.clear_level is None):
        return base
    level = base.level if own.level is None else own.level
    clear = (
        own.clear_level
        if own.clear_level is not None
        else base.clear * (level / base.level if base.level else 1)
    )
    return Levels(level=level, clear=clear, for_seconds=base.for_seconds, keep_seconds=base.keep_seconds)
