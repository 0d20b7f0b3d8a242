"""The Job page: MFU against its target, what the gap is made of, and everything needed to check it."""

from typing import Any

from dash import html
from dash.development.base_component import Component

from flopwatch.query import Job, Query
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import (
    job_diagnosis,
    job_events,
    job_findings,
    job_goodput,
    job_head,
    job_nodes,
    job_tables,
    parts,
    phrases,
    tables,
)
from flopwatch_dashboard.figures import events, gap, lines, spread, strip
from flopwatch_dashboard.figures.lines import Line
from flopwatch_dashboard.page import Page
from flopwatch_dashboard.view import View

GRAPHS = ("mfu", "gap", "strip", "steps", "spread", "activity", "network", "power")
CURVES = ("mfu", "steps", "spread", "activity", "network", "power")
"""Graphs whose figures can be saved as a table."""
LISTS = ("diagnosis", "goodput", "nodes", "shape", "findings", "sessions", "marks", "alerts")
CARDS = (*GRAPHS, *LISTS)


def skeleton() -> list[Component]:
    """The page without data."""
    cards = {name: parts.card(f"job-{name}", parts.graph(f"job-{name}-g"), kind="plot") for name in GRAPHS}
    for name in LISTS:
        content = html.Div(id=f"job-{name}", className="scroll", tabIndex="0")
        cards[name] = parts.card(f"job-{name}", content, kind="list")
    cards["strip"].children.append(html.Div(id="job-legend"))
    cards["gap"].children.append(html.P(id="job-gap-note", className="muted note"))
    rows = [
        html.Div([cards["mfu"], cards["gap"]], className="row r1"),
        cards["diagnosis"],
        cards["strip"],
        html.Div([cards["steps"], cards["spread"]], className="row two"),
        html.Div([cards["activity"], cards["network"]], className="row two"),
        html.Div([cards["power"], cards["goodput"]], className="row two"),
        html.Div([cards["nodes"], cards["shape"]], className="row r1"),
        html.Div([cards["findings"], cards["alerts"]], className="row two"),
        html.Div([cards["sessions"], cards["marks"]], className="row two"),
    ]
    body = [
        html.Div(id="job-heading", className="p-h"),
        html.Div(id="job-waiting"),
        html.Section(id="job-tiles", className="kpis"),
        html.Div(id="job-standing"),
    ]
    return [html.Div(id="job-gone"), html.Div([*body, *rows], id="job-body", className="stack-v")]


def render(query: Query, view: View, item: str) -> dict[str, Any]:
    """Every part of the page from one answer, or where to go when there is no such job."""
    job = query.job(item, view.asked)
    if job is None:
        return {"gone": _gone(item, view), "body": "hidden"}
    return {
        "gone": [],
        "body": "stack-v",
        "heading": job_head.heading(job.row, view),
        "waiting": job_head.waiting(job, view),
        "tiles": job_head.job_tiles(job, view),
        "standing": job_head.standing(job, view),
        "legend": job_tables.legend(job, view),
        "gap-note": gap.note(job, view),
        **_figures(job, view),
        **_lists(job, view),
        **_heads(job, view),
    }


def _gone(item: str, view: View) -> list[Component]:
    words = [
        html.P(view.t("empty.no_job", job=item), className="empty-t"),
        html.P(view.t("empty.no_job_next"), className="empty-s"),
        parts.link(view.t("empty.back"), view.link("jobs")),
    ]
    return [html.Section(words, className="card lone")]


def _figures(job: Job, view: View) -> dict[str, Any]:
    zone, target = job.status.time_zone, job.row.target.ratio
    p50, p99 = job.step_percentiles.get("p50"), job.step_percentiles.get("p99")
    rules = [value for value in (p50, p99) if value is not None]
    figures = {
        "mfu": events.on_curve(lines.mfu(job.series, target, zone, view), job.marks, zone, view),
        "gap": gap.gap(job, view),
        "strip": strip.strip(job, view),
        "steps": lines.amounts(job.steps, [_step_line(job)], zone, view, rules),
        "spread": spread.spread(job, view),
        "activity": lines.activity(job.series, target, zone, view),
        "network": lines.amounts(job.series, _network(job), zone, view),
        "power": lines.amounts(job.series, _power(job), zone, view),
    }
    return {**figures, **{f"{name}-aria": words for name, words in _words(job, view).items()}}


def _words(job: Job, view: View) -> dict[str, str]:
    """The figures in words."""
    series, target = job.series, phrases.target(job.row.target, view)
    ends = {name: lines.at_end(series, name) for name in series.columns}
    percent = {name: wording.percent(ends.get(name)) for name in ("mfu", "kernel_active", "tensor_active")}
    return {
        "mfu": _mfu_words(
            job, view.t("job.mfu_aria", range=view.shown_range, value=percent["mfu"], target=target), view
        ),
        "gap": gap.description(job, view),
        "strip": strip.description(job, view),
        "steps": view.t("job.steps_aria", **_percentiles(job)),
        "spread": spread.description(job, view),
        "activity": view.t(
            "fleet.activity_aria",
            range=view.shown_range,
            kernel=percent["kernel_active"],
            tensor=percent["tensor_active"],
            mfu=percent["mfu"],
            target=target,
        ),
        "network": view.t(
            "job.network_aria",
            nic=_rate(ends.get("nic_bytes_per_second")),
            nvlink=_rate(ends.get("nvlink_bytes_per_second")),
        ),
        "power": view.t(
            "job.power_aria",
            power=wording.si(ends.get("power_watts"), "W"),
            memory=wording.percent(ends.get("memory_used_ratio")),
        ),
    }


def _mfu_words(job: Job, words: str, view: View) -> str:
    told = events.counts(job.marks, view)
    return f"{words} {view.t('job.marks')}: {told}" if told else words


def _percentiles(job: Job) -> dict[str, str]:
    return {name: wording.step_time(job.step_percentiles.get(name)) for name in ("p50", "p90", "p99")}


def _rate(value: float | None) -> str:
    return wording.si(value, "B/s")


def _step_line(job: Job) -> Line:
    shown = wording.step_time(lines.at_end(job.steps, "step_seconds"))
    return Line(column="step_seconds", color="mfu", label_color="mfutext", shown=shown, hover="%{y:.3f} s")


def _network(job: Job) -> list[Line]:
    pairs = (("nic_bytes_per_second", "second"), ("nvlink_bytes_per_second", "tensor"))
    return [
        Line(
            column=column,
            color=token,
            label_color=f"{token}text",
            shown=_rate(lines.at_end(job.series, column)),
            hover="%{y:.3s}B/s",
        )
        for column, token in pairs
    ]


def _power(job: Job) -> list[Line]:
    power = wording.si(lines.at_end(job.series, "power_watts"), "W")
    memory = wording.percent(lines.at_end(job.series, "memory_used_ratio"), 0)
    return [
        Line(column="power_watts", color="second", label_color="secondtext", shown=power, hover="%{y:.3s}W"),
        Line(
            column="memory_used_ratio",
            color="kernel",
            label_color="kerneltext",
            shown=memory,
            hover="%{y:.1%}",
            second_axis=True,
        ),
    ]


def _lists(job: Job, view: View) -> dict[str, Any]:
    return {
        "diagnosis": job_diagnosis.diagnosis(job, view),
        "goodput": job_goodput.goodput(job, view),
        "nodes": job_nodes.nodes(job, view),
        "shape": [job_tables.shape(job, view), job_tables.arithmetic(job, view)],
        "findings": job_findings.findings(job, view),
        "sessions": job_events.sessions(job, view),
        "marks": job_events.marks(job, view),
        "alerts": tables.alert_list(job.alerts, job.status.now_seconds, view),
    }


def _heads(job: Job, view: View) -> dict[str, list[Component]]:
    figure = job.row.mfu
    basis, convention = phrases.basis(figure, view), phrases.convention(figure.convention, view)
    mfu_sub = view.t("job.mfu_sub", basis=basis, convention=convention)
    if figure.palm_ratio is not None:
        mfu_sub += f" · {view.t('figure.palm', value=wording.percent(figure.palm_ratio))}"
    if figure.run_dtype_ratio is not None:
        mfu_sub += f" · {phrases.own_peak(figure, view)}"
    titles = {
        name: (view.t(f"job.{name}"), "") for name in ("findings", "sessions", "marks", "alerts", "strip")
    }
    present = "" if view.end is None else view.t("job.diagnosis_present")
    titles |= {
        "diagnosis": (view.t("job.diagnosis"), present),
        "mfu": (view.t("job.mfu"), mfu_sub),
        "gap": (view.t("job.gap_card"), view.t("job.gap_sub")),
        "steps": (view.t("job.steps"), view.t("job.steps_sub", **_percentiles(job))),
        "activity": (view.t("job.activity"), view.t("job.activity_sub")),
        "network": (view.t("job.network"), view.t("job.network_sub")),
        "power": (view.t("job.power"), view.t("job.power_sub")),
        "nodes": (view.t("job.nodes"), job_nodes.summary(job, view)),
        "goodput": (view.t("job.goodput"), view.t("job.goodput_sub")),
        "spread": (view.t("job.spread"), _spread_sub(job, view)),
        "shape": (
            view.t("job.shape"),
            view.t("job.shape_sub", origin=job.shape_origin) if job.shape_origin else "",
        ),
    }
    return {
        f"{name}-head": parts.head(f"job-{name}", *words, *_links(name, view))
        for name, words in titles.items()
    }


def _links(name: str, view: View) -> tuple[Component, ...]:
    """The figures of a curve as a file."""
    return (parts.save_csv(f"job-{name}-g", view),) if name in CURVES else ()


def _spread_sub(job: Job, view: View) -> str:
    found = spread.found_in(job)
    return view.t("job.spread_sub", count=wording.number(found.records)) if found else ""


PAGE = Page(
    name="job",
    path="jobs",
    item=True,
    skeleton=skeleton,
    render=render,
    parts={
        "gone": ("job-gone", "children"),
        "body": ("job-body", "className"),
        "heading": ("job-heading", "children"),
        "waiting": ("job-waiting", "children"),
        "tiles": ("job-tiles", "children"),
        "standing": ("job-standing", "children"),
        "legend": ("job-legend", "children"),
        "gap-note": ("job-gap-note", "children"),
        **{name: (f"job-{name}-g", "figure") for name in GRAPHS},
        **{f"{name}-aria": (f"job-{name}-g-wrap", "aria-label") for name in GRAPHS},
        **{name: (f"job-{name}", "children") for name in LISTS},
        **{f"{name}-head": (f"job-{name}-head", "children") for name in CARDS},
    },
)
