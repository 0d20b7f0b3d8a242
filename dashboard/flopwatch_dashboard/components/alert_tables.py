"""Alerts as tables: active ones in groups, with what can be done about each, and those that have ended."""

import csv
import io
from collections.abc import Sequence

from dash import html
from dash.development.base_component import Component

from flopwatch.query import AlertRow, Alerts
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import cost_file, parts, phrases
from flopwatch_dashboard.components.alert_choice import Choice, address, fitting, grouped
from flopwatch_dashboard.components.tables import table
from flopwatch_dashboard.view import View

MOST_HISTORY = 200


def active(alerts: Alerts, choice: Choice, view: View) -> Component:
    """Active alerts that fit the filter."""
    if not alerts.active:
        return parts.next_step(view.t("empty.no_alerts"))
    rows = fitting(alerts.active, choice, view)
    if not rows:
        everything = address(view, {"alerts.severity": None, "alerts.find": None})
        words = html.P(view.t("alerts.none_fit"), className="empty-t")
        return html.Div([words, parts.link(view.t("alerts.show_all"), everything)], className="empty")
    columns = [_title(view, key) for key in ("severity", "state", "alert", "rule", "since", "for")]
    if view.viewer.read_only is None:
        columns.append(view.t("col.do"))
    head = html.Tr([html.Th(title, scope="col") for title in columns])
    bodies = [
        html.Tbody(
            [*_group_row(name, len(members), len(columns), choice, view), *_body(members, alerts, view)]
        )
        for name, members in grouped(rows, choice.grouping)
    ]
    return html.Table([html.Thead(head), *bodies], className="tbl al-table")


def _group_row(name: str, count: int, width: int, choice: Choice, view: View) -> list[Component]:
    if choice.grouping == "none":
        return []
    words = html.Th(
        [name or view.t("alerts.group_of_none"), html.Span(str(count), className="badge")],
        colSpan=width,
        scope="rowgroup",
        className="al-group",
    )
    return [html.Tr(words)]


def _body(rows: Sequence[AlertRow], alerts: Alerts, view: View) -> list[Component]:
    zone, now = alerts.status.time_zone, alerts.status.now_seconds
    body = []
    for row in rows:
        since = row.active_since_seconds
        cells: list[Component | str] = [
            parts.severity(row.severity, view),
            html.Div([_state(row, view), *_marks(row, view)], className="al-marks"),
            html.Div([_said(row, view), *_gpu(row), *_comments(row, zone, view)], className="al-what"),
            _rule(row),
            wording.moment(since, zone, view.lang),
            view.duration(None if since is None else now - since),
        ]
        if view.viewer.read_only is None:
            cells.append(_deeds(row, view))
        body.append(html.Tr([html.Td(cell) for cell in cells]))
    return body


def _deeds(row: AlertRow, view: View) -> Component:
    """Links that open the form of what is to be done."""
    taken = "give" if row.acknowledged_by else "take"
    links = [
        html.A(
            view.t(f"alerts.do_{deed}"),
            href=address(view, {f"do.{deed}": row.fingerprint}),
            className="more",
            **{"data-deed": deed},
        )
        for deed in ("silence", taken, "comment")
    ]
    return html.Div(links, className="al-do")


def _state(row: AlertRow, view: View) -> str:
    state = view.t(f"alert_state.{row.state}")
    return f"{state} · {view.t('alerts.stale')}" if row.stale else state


def _marks(row: AlertRow, view: View) -> list[Component]:
    """Why it is not sent, and who has taken it."""
    marks = []
    if row.silenced_by:
        word = "maintenance" if row.silenced_by == "maintenance" else "silenced"
        marks.append((view.t(f"alerts.{word}"), row.silenced_by))
    if row.inhibited_by:
        marks.append((view.t("alerts.inhibited", rule=row.inhibited_by), ""))
    if row.observed:
        marks.append((view.t("alerts.observed"), view.t("alerts.observed_hint")))
    if row.acknowledged_by:
        marks.append((view.t("alerts.taken", by=row.acknowledged_by), ""))
    return [html.Span(words, className="badge", title=hint or words) for words, hint in marks]


def _said(row: AlertRow, view: View) -> Component:
    """What it says, with a link to the job or node that it is about."""
    words = phrases.alert(row, view)
    job, node = row.labels.get("job_id"), row.labels.get("node")
    if job:
        return html.A(words, href=view.link(f"jobs/{job}"), title=words)
    return (
        html.A(words, href=view.link(f"nodes/{node}"), title=words) if node else html.Span(words, title=words)
    )


def _gpu(row: AlertRow) -> list[Component]:
    """Which GPU it is, where it is one: without it the alerts of a node's GPUs would read alike."""
    gpu = row.labels.get("gpu")
    return [html.Div(gpu, className="al-word")] if gpu else []


def _comments(row: AlertRow, zone: str, view: View) -> list[Component]:
    return [
        html.Div(
            view.t(
                "alerts.comment_by",
                by=one.by,
                when=wording.moment(one.time_seconds, zone, view.lang),
                text=one.text,
            ),
            className="al-word",
        )
        for one in row.comments
    ]


def _rule(row: AlertRow) -> Component:
    return html.Span(row.rule, className="badge", title=phrases.labels(row.labels))


def history(alerts: Alerts, choice: Choice, view: View) -> Component:
    """Alerts that have ended, the newest first."""
    rows = fitting(alerts.history, choice, view)
    if "alert_history" in alerts.status.unavailable:
        return parts.not_told(view)
    if not rows:
        return parts.next_step(view.t("empty.no_history"))
    zone = alerts.status.time_zone
    columns = [
        (_title(view, key), False) for key in ("severity", "alert", "rule", "since", "ended", "reason")
    ]
    body = [
        [
            parts.severity(row.severity, view),
            html.Div([_said(row, view), *_comments(row, zone, view)], className="al-what"),
            _rule(row),
            wording.moment(row.active_since_seconds, zone, view.lang),
            wording.moment(row.resolved_seconds, zone, view.lang),
            view.code("resolved", row.resolved_reason or ""),
            _lasted(row, view),
        ]
        for row in rows[:MOST_HISTORY]
    ]
    made = table([*columns, (view.t("col.for"), True)], body)
    if len(rows) <= MOST_HISTORY:
        return made
    more = view.t("alerts.newest", shown=MOST_HISTORY, all=wording.number(len(rows)))
    return html.Div([made, html.P(more, className="f-hint")])


def _lasted(row: AlertRow, view: View) -> str:
    start, end = row.active_since_seconds, row.resolved_seconds
    return view.duration(None if start is None or end is None else end - start)


def _title(view: View, key: str) -> str:
    return view.t(f"col.{key}")


def download(alerts: Alerts, view: View) -> Component:
    """A link to all alerts of the range as CSV."""
    simulated = "simulated-" if alerts.status.simulated else ""
    return html.A(
        [parts.icon("down"), html.Span(view.t("alerts.csv"))],
        href=cost_file.address(as_csv(alerts), "text/csv"),
        download=f"flopwatch-{simulated}alerts.csv",
        className="more csv",
        title=view.t("alerts.csv_hint"),
    )


def as_csv(alerts: Alerts) -> str:
    """Active alerts and history, one a row: times in epoch seconds, what is not known empty."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(
        (
            "simulated", "fingerprint", "rule", "severity", "state", "summary", "labels", "active_since_seconds",
            "fired_seconds", "resolved_seconds", "resolved_reason", "stale", "silenced_by", "inhibited_by",
            "acknowledged_by", "comments",
        )
    )  # fmt: skip
    mark = cost_file.SIMULATED if alerts.status.simulated else ""
    for row in (*alerts.active, *alerts.history):
        comments = " | ".join(f"{one.by}: {one.text}" for one in row.comments)
        cells = (
            mark, row.fingerprint, row.rule, row.severity, row.state, row.summary, phrases.labels(row.labels),
            _plain(row.active_since_seconds), _plain(row.fired_seconds), _plain(row.resolved_seconds),
            row.resolved_reason or "", "true" if row.stale else "false", row.silenced_by or "",
            row.inhibited_by or "", row.acknowledged_by or "", comments,
        )  # fmt: skip
        writer.writerow(cost_file.safe(cells))
    return out.getvalue()


def _plain(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.0f}"
