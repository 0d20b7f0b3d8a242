"""Every rule in a table: what it is about, when it fires, and on what terms here. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from flopwatch.answers.alert import RuleSubject, RuleTerms
from flopwatch.query import Severity
from flopwatch_collector.alerting.levels import LEVELS, Levels, levels
from flopwatch_collector.config_alerts import LEVEL_FIELDS, LEVELLED, AlertSettings, RuleSettings

LevelUnit = Literal["ratio", "factor", "count"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleEntry:
    """One rule as it comes with the product."""

    subject: RuleSubject
    severity: Severity
    fires: str
    level_unit: LevelUnit | None = None
    below: bool | None = None


def _job(severity: Severity, fires: str, unit: LevelUnit | None = None, *, below: bool = False) -> RuleEntry:
    return RuleEntry(
        subject="job", severity=severity, fires=fires, level_unit=unit, below=None if unit is None else below
    )


RULEBOOK: Final[Mapping[str, RuleEntry]] = {
    "MfuLow": _job("warning", "step MFU below the job's target", "ratio", below=True),
    "MfuDrop": _job("warning", "newest 20 steps over the run's own usual MFU", "ratio", below=True),
    "MfuBelowNorm": _job("info", "MFU over the median of runs like it", "ratio", below=True),
    "HighUtilLowMfu": _job(
        "warning", "kernels active 90 % or more, and MFU so low or tensor cores active below 15 %", "ratio", below=True
    ),
    "StepSpikes": _job("info", "share of the newest 200 steps that take far longer than usual", "ratio"),
    "JobHang": _job("critical", "no step for longer than the run's threshold, and the hardware agrees"),
    "HangSuspect": _job("warning", "no step for longer than the run's threshold, no hardware signal that says why"),
    "IdleHeld": _job("warning", "GPUs held by a job without work; critical after an hour"),
    "RestartStorm": _job("warning", "launches within half an hour", "count"),
    "NoProgress": _job("critical", "launches without a newer checkpoint", "count"),
    "CkptSlow": _job("info", "three blocking saves over the usual one, or saves above 5 % of the time", "factor"),
    "Straggler": _job("warning", "the same GPU, node or link slower than its peers in three reports"),
    "HwThrottle": RuleEntry(
        subject="gpu", severity="warning", fires="clock slowed by the hardware: reasons 0x08, 0x40, 0x80"
    ),
    "ThermalThrottle": RuleEntry(
        subject="gpu", severity="warning", fires="clock slowed by the driver for heat: reason 0x20"
    ),
    "NodeDown": RuleEntry(
        subject="node", severity="critical", fires="all GPUs faulty, or its scheduler says that it is down"
    ),
    "GpuLost": RuleEntry(
        subject="gpu", severity="critical", fires="gone, wants a reset, or an XID that no application causes"
    ),
    "GpuErrors": RuleEntry(
        subject="gpu", severity="warning", level_unit="count", below=False,
        fires="new uncorrected memory errors or remapped rows, or a recovery action that NVML advises",
    ),
    "LinkDegraded": RuleEntry(
        subject="link", severity="warning", level_unit="ratio", below=True,
        fires="a port down or below this share of its best, a PCIe link narrower than this share of its usual width",
    ),
    "LemonNode": RuleEntry(
        subject="node", severity="warning", level_unit="count", below=False,
        fires="incidents of different jobs within two weeks, more than chance explains",
    ),
    "NoData": RuleEntry(
        subject="node", severity="warning", fires="its agent is silent for 2.5 of its intervals"
    ),
    "AgentUnhealthy": RuleEntry(
        subject="node", severity="info", fires="its agent reports, and cannot tell everything"
    ),
    "BelowBreakeven": RuleEntry(
        subject="fleet", severity="info", fires="utilisation below the breakeven line, sustained"
    ),
    "BudgetBurn": RuleEntry(
        subject="budget", severity="warning", level_unit="factor", below=False,
        fires="a budget is or will be used up; a job beyond so many times its declared GPU-hours, or 24 GPU-hours idle",
    ),
}  # fmt: skip


def terms_of(rule: str, settings: AlertSettings) -> RuleTerms:
    """What holds of a rule on these settings.

    Raises:
        KeyError: there is no such rule.
    """
    entry, base, own = RULEBOOK[rule], _base(rule, settings), settings.rules.get(rule, RuleSettings())
    return RuleTerms(
        subject=entry.subject,
        fires=entry.fires,
        severity=own.severity or entry.severity,
        for_seconds=_first(own.for_seconds, None if rule == "HangSuspect" else base.for_seconds),
        keep_seconds=_first(own.keep_seconds, base.keep_seconds),
        level=base.level if rule in LEVELLED else None,
        clear_level=base.clear if rule in LEVELLED or rule in LEVEL_FIELDS else None,
        level_unit=entry.level_unit,
        below=entry.below,
    )


def _base(rule: str, settings: AlertSettings) -> Levels:
    """The rule's levels and times, with those that ``[alerts]`` itself sets."""
    if rule in LEVELS:
        return levels(rule, settings)
    times = {
        "MfuLow": (settings.mfu_low_for_seconds, settings.mfu_low_keep_seconds),
        "IdleHeld": (settings.idle_held_for_seconds, 0.0),
        "NoData": (settings.no_data_for_seconds, 0.0),
    }
    for_seconds, keep = times.get(rule, (0.0, 0.0))
    return Levels(
        clear=settings.mfu_low_clear_factor,
        for_seconds=for_seconds,
        keep_seconds=for_seconds if keep is None else keep,
    )


def _first(given: float | None, own: float | None) -> float | None:
    return own if given is None else given
