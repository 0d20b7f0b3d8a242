"""The diagnosis of a job: causes with their evidence, what speaks against them, what is missing, and what to do."""

from dash import html
from dash.development.base_component import Component

from flopwatch.answers.diagnosis import Diagnosis, Sign
from flopwatch.query import Cause, Job
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import parts, phrases
from flopwatch_dashboard.view import View

SEVERITIES = {"high": "critical", "medium": "warning", "low": "warning", "info": "info"}


def diagnosis(job: Job, view: View) -> Component:
    """The likely causes, most GPU time first; where none was found, what the ledger says, as in the tables."""
    likely = job.row.cause
    told = likely is not None and likely.source == "ledger"
    if not job.diagnosis and not told:
        return parts.next_step(view.t("job.diagnosis_none"))
    items = [_by_ledger(likely, view)] if likely is not None and told else []
    items += [
        html.Li([parts.icon(SEVERITIES[one.confidence]), html.Div(_cause(one, view))])
        for one in job.diagnosis
    ]
    return html.Ul(items, className="findings")


def _by_ledger(likely: Cause, view: View) -> Component:
    words = f"{phrases.cause(likely, view)} · {view.t('diagnosis.by_ledger')}"
    return html.Li([parts.icon(likely.severity), html.Div([html.Strong(words)])])


def _cause(one: Diagnosis, view: View) -> list[Component]:
    lines = [html.Strong(_title(one, view)), html.Div(", ".join(shown(sign, view) for sign in one.evidence))]
    if one.against:
        signs = ", ".join(shown(sign, view) for sign in one.against)
        lines.append(html.Div(view.t("diagnosis.against", signs=signs)))
    if one.missing:
        signals = ", ".join(view.t(f"signal.{name}") for name in one.missing)
        lines.append(html.Div(view.t("diagnosis.missing", signals=signals)))
    lines.append(html.Div(view.t("diagnosis.next", what=view.t(f"next.{one.code}"))))
    return lines


def _title(one: Diagnosis, view: View) -> str:
    """The cause, how sure it is, and how much it explains where that is known."""
    key = f"diagnosis.{one.code}"
    wanted = view.placeholders(key)
    words = view.t(key, **({"subject": one.subject or wording.UNKNOWN} if "subject" in wanted else {}))
    told = [words, view.t(f"confidence.{one.confidence}")]
    if one.lost_ratio is not None:
        told.append(view.t("diagnosis.lost", share=wording.percent(one.lost_ratio)))
    return " · ".join(told)


def shown(sign: Sign, view: View) -> str:
    """A sign in words, with its figure and what it is held against."""
    words = view.t(f"sign.{sign.code}")
    if isinstance(sign.value, str):
        key = f"hardware.{sign.value}"
        return f"{words}: {view.t(key) if view.knows(key) else sign.value}"
    if sign.value is None or (sign.reference is None and sign.code in FLAGS):
        return words
    value = _amount(sign.value, sign.unit, view)
    if sign.reference is None:
        return f"{words} {value}"
    reference = _amount(sign.reference, sign.unit, view)
    return view.t("diagnosis.reference", sign=words, value=value, reference=reference)


LONG_SECONDS = 90.0
"""From here on a time is told in minutes, hours or days."""
FLAGS = frozenset(("write_io", "rank_rotates", "no_hardware_cause", "no_writes"))
"""Signs that are only there or not."""


def _amount(value: float, unit: str, view: View) -> str:
    if unit == "ratio":
        return wording.percent(value)
    if unit == "seconds":
        return f"{value:.3g} s" if abs(value) < LONG_SECONDS else view.duration(value)
    if unit == "count":
        return f"{value:g}"
    return wording.si(value, {"hertz": "Hz", "watts": "W", "bytes_per_second": "B/s"}.get(unit, ""), 2)
