"""What happened to a job, and how its launches ended, in the reader's language."""

from dash import html
from dash.development.base_component import Component

from flopwatch.query import Job
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import parts
from flopwatch_dashboard.components.tables import table
from flopwatch_dashboard.event_words import exit_words, mark_words
from flopwatch_dashboard.view import View

MOST_LISTED = 200


def marks(job: Job, view: View) -> Component:
    """What happened in the range, newest first."""
    if not job.marks:
        return parts.next_step(view.t("job.marks_none"))
    newest = sorted(job.marks, key=lambda mark: -mark.time_seconds)[:MOST_LISTED]
    items = [
        html.Li(
            [
                html.Span(
                    wording.moment(mark.time_seconds, job.status.time_zone, view.lang), className="muted"
                ),
                html.B(view.code("mark", mark.kind)),
                html.Span(mark_words(mark, view)),
            ]
        )
        for mark in newest
    ]
    return html.Ul(items, className="events")


def sessions(job: Job, view: View) -> Component:
    """The launches of the job."""
    if not job.sessions:
        return parts.next_step(view.t("job.sessions_none"))
    zone = job.status.time_zone
    columns = [
        (view.t("col.started"), False),
        (view.t("col.ended"), False),
        (view.t("col.exit"), False),
        *((view.t(f"col.{key}"), True) for key in ("steps", "resumed", "lost")),
    ]
    rows = [
        [
            wording.moment(session.start_seconds, zone, view.lang),
            wording.moment(session.end_seconds, zone, view.lang)
            if session.end_seconds
            else view.t("job_state.running"),
            exit_words(session.exit_reason, view) if session.end_seconds else "",
            html.Span(wording.number(session.steps), title=_span(session.first_step, session.last_step)),
            "" if session.resumed_from_step is None else wording.number(session.resumed_from_step),
            wording.number(session.lost_steps),
        ]
        for session in job.sessions
    ]
    return table(columns, rows)


def _span(first: int | None, last: int | None) -> str:
    return f"{wording.number(first)} … {wording.number(last)}"
