"""How much of a run's time was kept, what its interruptions cost, and what faster recovery would bring."""

from dash import html
from dash.development.base_component import Component

from flopwatch.answers.goodput import Goodput
from flopwatch.query import Job
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import boxes, parts
from flopwatch_dashboard.view import View

Fact = tuple[str, str, str]
SMALLEST_GAIN_RATIO = 0.0005


def goodput(job: Job, view: View) -> Component:
    """Goodput and what it is made of, each with its note."""
    found = job.goodput
    if found is None or not found.run_gpu_milliseconds:
        return parts.next_step(view.t("job.goodput_none"))
    rows = [_kept(found, view), _interruptions(found, view)]
    if found.interruptions:
        rows += [_repair(found, view), _lost(found, view)]
    rows += _checkpoints(found, view)
    gains = [_gain(found, index, view) for index in range(len(found.gains))]
    listed = [words for words in gains if words]
    return html.Div([boxes.facts(rows), *([html.Ul(listed, className="origins")] if listed else [])])


def _kept(found: Goodput, view: View) -> Fact:
    upper = found.ettr_upper_ratio
    beyond = upper is not None and found.ettr_ratio is not None and upper - found.ettr_ratio >= 0.0005
    note = view.t("goodput.ettr_upper", upper=wording.percent(upper)) if beyond else ""
    return view.t("goodput.ettr"), wording.percent(found.ettr_ratio), note


def _interruptions(found: Goodput, view: View) -> Fact:
    count = len(found.interruptions)
    note = view.t("goodput.mtbf", time=view.duration(found.mtbf_seconds)) if count else view.t("goodput.none")
    return view.t("goodput.interruptions"), wording.number(count), note


def _repair(found: Goodput, view: View) -> Fact:
    times = {
        "detect": found.detect_seconds,
        "isolate": found.isolate_seconds,
        "resume": found.resume_seconds,
    }
    note = view.t("goodput.mttr_parts", **{name: view.duration(value) for name, value in times.items()})
    return view.t("goodput.mttr"), view.duration(found.mttr_seconds), note


def _lost(found: Goodput, view: View) -> Fact:
    hours = f"{wording.hours(found.lost_gpu_milliseconds)} {view.t('unit.gpu_hours')}"
    each = wording.hours(found.lost_per_interruption_gpu_milliseconds)
    return view.t("goodput.lost"), hours, view.t("goodput.lost_each", each=each)


def _checkpoints(found: Goodput, view: View) -> list[Fact]:
    saving = found.checkpointing
    if not saving.saves:
        return []
    note = view.t(
        "goodput.checkpoint_each",
        saves=wording.number(saving.saves),
        save=view.duration(saving.save_seconds),
        interval=view.duration(saving.interval_seconds),
    )
    rows = [(view.t("goodput.checkpoint"), wording.percent(saving.overhead_ratio), note)]
    if saving.optimum_interval_seconds is not None:
        best = view.duration(saving.optimum_interval_seconds)
        rows.append((view.t("goodput.optimum"), best, view.t("goodput.optimum_note")))
    return rows


def _gain(found: Goodput, index: int, view: View) -> Component | None:
    """What a change would give back; nothing for next to nothing."""
    gain = found.gains[index]
    if gain.ratio < SMALLEST_GAIN_RATIO:
        return None
    hours = view.t("goodput.gain_note", hours=wording.hours(gain.gpu_milliseconds))
    return html.Li(f"{view.t(f'goodput.gain.{gain.name}')}: {hours} ({wording.percent(gain.ratio)})")
