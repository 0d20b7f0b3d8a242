"""Codes of the answers as sentences: causes, alerts, findings, the basis of a figure."""

from collections.abc import Mapping
from typing import Any

from flopwatch.query import AlertRow, Cause, JobRow, MfuFigure, Target
from flopwatch_dashboard import text, wording
from flopwatch_dashboard.view import View

RATIOS = ("mfu", "baseline", "mean", "utilisation", "kernel", "tensor")


def cause(likely: Cause | None, view: View) -> str:
    """The likely cause in words; an unknown code is its generic text, a missing value *n/a*."""
    if likely is None:
        return ""
    key = f"cause.{likely.code}"
    if not view.knows(key):
        key = "cause.generic"
    wanted = text.placeholders(key)
    values = {name: shown(name, likely.values.get(name), view) for name in wanted}
    return view.t(key, **values)


def alert(row: AlertRow, view: View) -> str:
    """What an alert says: its rule's text, or its own summary where that text needs what it does not bring."""
    key = f"alert.{row.rule}"
    if not view.knows(key):
        return row.summary
    values: dict[str, Any] = {**row.labels, **row.values}
    values.setdefault("job", row.labels.get("job_name") or row.labels.get("job_id"))
    wanted = text.placeholders(key)
    if any(values.get(name) is None for name in wanted):
        return row.summary
    return view.t(key, **{name: shown(name, values[name], view) for name in wanted})


def shown(name: str, value: Any, view: View) -> str:
    """A value of an answer as text: ratios in percent, hours and seconds short, all else as it is."""
    if value is None:
        return wording.UNKNOWN
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if name in ("target", "line"):
        return wording.line_percent(value)
    if name.endswith("_ratio") or name in RATIOS:
        return wording.percent(value)
    if name.endswith("seconds"):
        return view.duration(value)
    return f"{round(value, 1):g}"


def basis(mfu: MfuFigure, view: View) -> str:
    """The basis of an MFU in a word or two, or why there is none."""
    if mfu.value_ratio is None:
        return reason(mfu, view)
    return view.t(f"basis_short.{mfu.basis}") if mfu.basis else view.t("basis.none")


def basis_hint(mfu: MfuFigure, view: View) -> str:
    """The basis and the convention in full."""
    if mfu.value_ratio is None:
        return reason(mfu, view)
    hint = view.t(f"basis_hint.{mfu.basis}") if mfu.basis else view.t("basis.none")
    return f"{hint} · {convention(mfu.convention, view)}"


def reason(mfu: MfuFigure, view: View) -> str:
    """Why there is no MFU."""
    key = f"reason.{mfu.reason}"
    return view.t(key) if view.knows(key) else view.t("reason.unknown")


def convention(name: str, view: View) -> str:
    """The convention by which FLOPs were counted."""
    return view.code("convention", name)


def target(wanted: Target, view: View) -> str:
    """The target, or that none is set."""
    return view.t("target.none") if wanted.ratio is None else wording.line_percent(wanted.ratio)


def gpus(row: JobRow, view: View) -> str:
    """The GPUs of a job and how many of them were observed, in short."""
    if row.gpus is None:
        return view.t("gpus.unknown", observed=row.gpus_observed)
    if row.gpus_observed >= row.gpus:
        return wording.number(row.gpus)
    return view.t("gpus.of", observed=wording.number(row.gpus_observed), total=wording.number(row.gpus))


def gpus_long(row: JobRow, view: View) -> str:
    """The same in a sentence."""
    if row.gpus is None:
        return view.t("gpus.unknown", observed=row.gpus_observed)
    if row.gpus_observed >= row.gpus:
        return view.t("gpus.all", total=wording.number(row.gpus))
    return view.t("gpus.observed", observed=wording.number(row.gpus_observed), total=wording.number(row.gpus))


def labels(values: Mapping[str, str]) -> str:
    """An alert's labels, as one line."""
    return ", ".join(f"{name}={value}" for name, value in sorted(values.items()))
