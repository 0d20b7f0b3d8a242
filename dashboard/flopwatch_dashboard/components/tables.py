"""Short tables and lists: the jobs that waste most, alerts."""

from collections.abc import Sequence

from dash import html
from dash.development.base_component import Component

from flopwatch.query import AlertRow, JobRow
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import parts, phrases, spark
from flopwatch_dashboard.view import View


def table(columns: Sequence[tuple[str, bool]], rows: Sequence[Sequence[Component | str]]) -> Component:
    """A table with a header row; a column is its title and whether it holds numbers."""
    head = html.Tr([html.Th(title, scope="col", className="num" if num else "") for title, num in columns])
    body = [
        html.Tr(
            [
                html.Td(cell, className="num" if num else "")
                for cell, (_, num) in zip(row, columns, strict=True)
            ]
        )
        for row in rows
    ]
    return html.Table([html.Thead(head), html.Tbody(body)], className="tbl")


def top_jobs(jobs: Sequence[JobRow], view: View, count: int) -> Component:
    """The jobs that wasted most, with trend and likely cause."""
    if not jobs:
        return parts.next_step(view.t("fleet.top_empty"))
    most = max(job.waste_gpu_milliseconds for job in jobs) or 1
    columns = [
        (view.t("col.job"), False),
        (view.t("col.gpus"), True),
        (view.t("col.mfu"), True),
        (view.t("col.trend_range", range=view.range_label), False),
        (view.t("col.waste"), True),
        (view.t("col.cause"), False),
    ]
    return table(columns, [_top_row(job, most, view) for job in jobs[:count]])


def _top_row(job: JobRow, most: int, view: View) -> list[Component | str]:
    address = view.link(f"jobs/{job.job_id}")
    width = {"width": f"{job.waste_gpu_milliseconds / most * 100:.0f}%"}
    bar = html.Div(html.Div(className="wb", style=width), className="wbt")
    return [
        html.A(job.name, href=address, className="name", title=job.name),
        html.Span(phrases.gpus(job, view), title=phrases.gpus_long(job, view)),
        mfu_cell(job, view),
        trend(job, view),
        html.Div([bar, html.Span(wording.hours(job.waste_gpu_milliseconds))], className="wbar"),
        cause_cell(job, view),
    ]


def mfu_cell(job: JobRow, view: View) -> Component:
    """The MFU with its basis; unknown is said in words."""
    hint = phrases.basis_hint(job.mfu, view)
    if job.mfu.value_ratio is None:
        return html.Span(wording.UNKNOWN, title=hint, className="muted")
    badge = html.Span(phrases.basis(job.mfu, view), className="badge")
    return html.Span([phrases.ratio(job.mfu), badge], title=hint, className="mfu-c")


def trend(job: JobRow, view: View) -> Component:
    """The course of a job's MFU, small; a dash-less blank says nothing, so no course is *n/a*."""
    drawing = spark.sparkline(job.trend, view.palette["mfu"], 76)
    if drawing is None:
        return html.Span(wording.UNKNOWN, className="muted")
    known = [value for value in job.trend if value is not None]
    label = f"{view.t('col.trend_range', range=view.range_label)}: {wording.percent(known[-1])}"
    return html.Img(src=drawing, alt=label, className="spark")


def cause_cell(job: JobRow, view: View) -> Component:
    """The likely cause as shape, words and colour."""
    words = phrases.job_cause(job, view)
    if job.cause is None:
        return html.Span(words, className="muted")
    return html.Span(
        [parts.icon(job.cause.severity), html.Span(words)],
        className=f"sev sev-{job.cause.severity}",
        title=words,
    )


def alert_list(alerts: Sequence[AlertRow], now_seconds: float, view: View) -> Component:
    """Alerts as a list of links, newest state first as they come."""
    if not alerts:
        return parts.next_step(view.t("fleet.alerts_empty"))
    return html.Div([_alert_item(row, now_seconds, view) for row in alerts], role="list")


def _alert_item(row: AlertRow, now_seconds: float, view: View) -> Component:
    words = phrases.alert(row, view)
    since = row.active_since_seconds
    age = view.duration(None if since is None else now_seconds - since)
    job = row.labels.get("job_id")
    address = view.link(f"jobs/{job}") if job else view.link("alerts")
    state = "" if row.state == "firing" else f" · {view.t('alert_state.' + row.state)}"
    head = [
        html.Span(view.t(f"severity.{row.severity}") + state, className="al-s"),
        html.Span(age, className="al-t"),
    ]
    body = html.Div([html.Div(head, className="al-h"), html.Div(words, className="al-x")], className="al-b")
    item = html.A(
        [parts.icon(row.severity), body], href=address, className=f"al sev-{row.severity}", title=words
    )
    return html.Div(item, role="listitem")
