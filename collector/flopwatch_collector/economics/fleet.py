"""The fleet's figures from those of its groups."""

from dataclasses import dataclass

from flopwatch.answers.economy import DecisionVerdict, GroupEconomy
from flopwatch_collector.economics.assessment import fleet_verdict
from flopwatch_collector.economics.case import Case, fleet_threshold


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetFigures:
    """Means over GPUs, and the line weighted by cost; ``None`` is not known."""

    fixed_per_gpu_hour: float | None
    variable_per_gpu_hour: float | None
    threshold: float | None
    has_line: bool
    verdict: DecisionVerdict

    @property
    def u_star(self) -> float | None:
        """The fleet's line; None: never, or there is none."""
        return None if self.threshold is None or self.threshold > 1.0 else self.threshold


def fleet_figures(
    cases: tuple[Case, ...], groups: tuple[GroupEconomy, ...], asked_ratio: float | None = None
) -> FleetFigures:
    """The figures of all groups together. At a utilisation that is asked about, the fleet's line decides."""
    threshold = fleet_threshold(cases)
    verdict = groups[0].verdict if len(groups) == 1 else fleet_verdict(groups)
    if len(groups) > 1 and asked_ratio is not None and threshold is not None:
        verdict = "own" if asked_ratio >= threshold else "rent"
    return FleetFigures(
        fixed_per_gpu_hour=_mean(cases, [group.fixed_per_gpu_hour for group in groups]),
        variable_per_gpu_hour=_mean(cases, [group.variable_per_gpu_hour for group in groups]),
        threshold=threshold,
        has_line=threshold is not None,
        verdict=verdict,
    )


def _mean(cases: tuple[Case, ...], values: list[float]) -> float | None:
    """Weighted by GPUs; None where the sizes of several groups are not all known."""
    if len(values) == 1:
        return values[0]
    sizes = [case.gpus for case in cases]
    known = [size for size in sizes if size is not None]
    if len(known) < len(values) or not sum(known):
        return None
    return sum(size * value for size, value in zip(known, values, strict=True)) / sum(known)
