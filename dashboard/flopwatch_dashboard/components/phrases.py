"""Codes of the answers as sentences: causes, alerts, findings, the basis of a figure."""

from collections.abc import Mapping, Sequence
from typing import Any

from flopwatch.query import AlertRow, Cause, JobRow, MfuFigure, Target, Verdict
from flopwatch_dashboard import text, wording
from flopwatch_dashboard.view import View

RATIOS = ("mfu", "baseline", "mean", "utilisation", "kernel", "tensor")


def breakeven_line(verdict: Verdict, view: View) -> str:
    """The line as a percentage, or *never*."""
    return view.t("verdict.no_line") if verdict.never else wording.line_percent(verdict.line_ratio)


def cause(likely: Cause | None, view: View) -> str:
    """The likely cause in words; an unknown code is its generic text, a missing value *n/a*."""
    if likely is None:
        return ""
    key = f"diagnosis.{likely.code}" if likely.source == "diagnosis" else f"cause.{likely.code}"
    if not view.knows(key):
        key = "cause.generic"
    wanted = text.placeholders(key)
    values = {name: shown(name, likely.values.get(name), view) for name in wanted}
    return view.t(key, **values)


def job_cause(job: JobRow, view: View) -> str:
    """The likely cause of a job's waste in words; a job that wastes nothing has none, which is not unknown."""
    if job.cause is None:
        return wording.UNKNOWN if job.waste_gpu_milliseconds else view.t("job.no_waste")
    return cause(job.cause, view)


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
    if name == "factor":
        return f"{value:.3g}"
    return f"{round(value, 1):g}"


def basis(mfu: MfuFigure, view: View) -> str:
    """The basis of an MFU in a word or two, or why there is none."""
    if mfu.value_ratio is None:
        return reason(mfu, view)
    return view.t(f"basis_short.{mfu.basis}") if mfu.basis else view.t("basis.none")


def basis_long(mfu: MfuFigure, view: View) -> str:
    """The basis and the convention in full, of an estimate its limits."""
    if mfu.value_ratio is None:
        return reason(mfu, view)
    hint = view.t(f"basis_hint.{mfu.basis}") if mfu.basis else view.t("basis.none")
    is_estimate = mfu.basis == "hardware"
    return f"{hint} · {view.t('figure.estimate_limits') if is_estimate else convention(mfu.convention, view)}"


def basis_hint(mfu: MfuFigure, view: View) -> str:
    """The same with what the figure was made from: PaLM's figure, peak, number format, tokens."""
    words = [] if mfu.measured_ratio is None else provenance(mfu, view)
    return " · ".join((basis_long(mfu, view), *words))


def provenance(mfu: MfuFigure, view: View) -> list[str]:
    """What a measured figure was made from, beside its basis and convention."""
    words = []
    if mfu.palm_ratio is not None:
        words.append(view.t("figure.palm", value=wording.percent(mfu.palm_ratio)))
    if mfu.peak_flops is not None:
        peak = wording.si(mfu.peak_flops, "FLOP/s")
        told = view.code("dtype_basis", mfu.dtype_basis or "assumed")
        words.append(view.t("figure.peak", dtype=mfu.dtype or wording.UNKNOWN, peak=peak, basis=told))
    if mfu.run_dtype_ratio is not None:
        words.append(own_peak(mfu, view))
    if mfu.tokens_per_second is not None:
        words.append(view.t("figure.tokens", rate=wording.si(mfu.tokens_per_second)))
    return [*words, *([left_out(mfu, view)] if mfu.left_out else [])]


def own_peak(mfu: MfuFigure, view: View) -> str:
    """The figure against the peak of the run's own narrower number format."""
    return view.t("figure.own_peak", value=wording.percent(mfu.run_dtype_ratio), dtype=mfu.run_dtype)


def left_out(mfu: MfuFigure, view: View) -> str:
    """Which parts of the model are not counted."""
    return view.t("figure.left_out", stacks=", ".join(view.code("stack", name) for name in mfu.left_out))


def explanation(groups: Sequence[Sequence[Mapping[str, Any]]] | None, view: View) -> str:
    """What explains the difference of two figures: alternatives, each of causes that go together."""
    if not groups:
        return view.t("explanation.none")
    joined = (view.t("explanation.and").join(_guess(guess, view) for guess in group) for group in groups)
    return view.t("explanation.or").join(joined)


def _guess(guess: Mapping[str, Any], view: View) -> str:
    """One known cause, or its code where there is no text for it."""
    key = f"explanation.{guess.get('code')}"
    if not view.knows(key):
        return str(guess.get("code"))
    words = view.t(key, **{name: shown(name, guess.get(name), view) for name in view.placeholders(key)})
    return view.t("explanation.in_full", words=words) if guess.get("subject") == "full" else words


def ratio(mfu: MfuFigure) -> str:
    """The figure as text; an estimate is marked as about."""
    return f"{'≈ ' if mfu.basis == 'hardware' else ''}{wording.percent(mfu.value_ratio)}"


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
