"""What a collector says of its fleet, read from its economy answer, for commands with a cost file of their own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flopwatch.answers.ledger import Day, VerdictCode
from flopwatch_collector.compute.breakeven import Line, verdict
from flopwatch_collector.economics.case import WHOLE_SITE
from flopwatch_collector.economics.demand import DurationCurve
from flopwatch_collector.economics.efficiency import Measured
from flopwatch_collector.economics.observed import Observed

MEASURED = {"mfu": "own_mfu", "goodput": "own_goodput", "peak_tflops": "own_peak_tflops"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """The fleet as the collector knows it; nothing without one."""

    answer: Mapping[str, Any] = field(default_factory=dict)

    def measured(self, group: str) -> Measured:
        """Efficiency of the own side: the group's where the collector has it, else the fleet's."""
        if not self.answer:
            return Measured()
        sides = self._group(group).get("efficiency") or {}
        fleet = self.answer.get("measured") or {}
        sources = sides.get("own_sources") or {}
        values = {
            name: sides[key] if sources.get(name) == "measured" else fleet.get(key)
            for name, key in MEASURED.items()
        }
        return Measured(
            **values,
            coverage_ratio=fleet.get("coverage_ratio"),
            billed_per_used=self.answer.get("measured_billed_per_used"),
        )

    def gpus(self, group: str) -> int | None:
        """GPUs of the group, else of the whole fleet for the whole site."""
        found = self._group(group).get("gpus")
        if found is None and group == WHOLE_SITE and self.answer:
            found = sum(cluster["gpus"] for cluster in self.answer["status"]["clusters"]) or None
        return found

    def observed(self, group: str) -> Observed:
        """Utilisation, days and demand."""
        if not self.answer:
            return Observed()
        own = self._group(group)
        days = tuple(_day(entry) for entry in own.get("days") or self.answer.get("days") or ())
        curve = own.get("demand")
        mean = own["utilisation_ratio"] if own.get("days") else self.answer.get("utilisation_ratio")
        return Observed(
            mean_ratio=mean,
            state_at=lambda line: state_of(days, line),
            valid_days=sum(1 for day in days if day.valid and day.complete),
            demand=None if curve is None else _curve(curve),
            demand_basis="running" if curve is None else curve["basis"],
        )

    def _group(self, name: str) -> Mapping[str, Any]:
        groups: Sequence[Mapping[str, Any]] = self.answer.get("groups") or ()
        return next((group for group in groups if group["name"] == name), {})


def known_from(answer: object) -> Known:
    """The answer of ``/api/v1/query/economy``; an older collector's, without one, tells nothing."""
    return Known(answer=answer if isinstance(answer, Mapping) else {})


def state_of(days: Sequence[Day], line: float | None) -> VerdictCode:
    """The sustained state of days against a line; None: one that is never reached."""
    return verdict(days, line=Line(ratio=line, source="costs")).code


def _curve(entry: Mapping[str, Any]) -> DurationCurve:
    return DurationCurve(gpus=tuple(entry["gpus"]), time_ratio=tuple(entry["time_ratio"]))


def _day(entry: Mapping[str, Any]) -> Day:
    names = ("day", "billable_ratio", "unknown_ratio", "capacity_gpu_milliseconds", "complete", "valid")
    return Day(**{name: entry[name] for name in names})
