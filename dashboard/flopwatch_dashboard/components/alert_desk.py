"""What people do about alerts: the form that is open, and the silences that hold."""

from collections.abc import Mapping

from dash import dcc, html
from dash.development.base_component import Component

from flopwatch.answers.alert import SilenceInfo
from flopwatch.query import AlertRow, Alerts
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import parts, phrases
from flopwatch_dashboard.components.alert_choice import Choice, address
from flopwatch_dashboard.components.sent_form import cancel, reason, sending, sent_form
from flopwatch_dashboard.view import View

LENGTHS = (2, 1, 4, 8, 24, 72, 168)
"""Hours that a silence may last; the first is what is meant when nothing is said."""
SOON_SECONDS = 60.0
"""A silence that begins so soon after the page's own time holds already."""
ROOT = "/api/v1/alerts"


def desk(alerts: Alerts, choice: Choice, view: View) -> list[Component]:
    """The open form, or what was done just now; nothing where nobody may do anything."""
    if view.viewer.read_only is not None:
        return []
    if choice.deed is None:
        done = html.Div(
            [parts.icon("check"), html.Span(view.t(f"alerts.done_{choice.done}"))], className="al-done", role="status"
        ) if choice.done else None  # fmt: skip
        return [done] if done is not None else []
    if choice.deed == "silence":
        return [_silence(_found(alerts, choice), view)]
    row = _found(alerts, choice)
    if row is None:
        words = html.Span(view.t("alerts.gone"))
        return [html.Div([words, cancel(address(view), view)], className="al-form al-gone", role="status")]
    return [_give(row, view) if choice.deed == "give" else _word(row, choice.deed, view)]


def _found(alerts: Alerts, choice: Choice) -> AlertRow | None:
    return next((row for row in alerts.active if row.fingerprint == choice.of), None)


def _silence(row: AlertRow | None, view: View) -> Component:
    """The form of a silence: for one alert, or empty."""
    hint = view.t("alerts.matchers_hint")
    lasting = html.Select(
        [
            html.Option(
                view.t("alerts.hours", n=n) if n <= 24 else view.t("alerts.days", n=n // 24), value=str(n)
            )
            for n in LENGTHS
        ],
        className="f-i",
        **{"aria-label": view.t("alerts.lasts"), "data-name": "hours"},
    )
    fields = [
        html.Label(
            [
                html.Span(view.t("alerts.matchers"), className="f-n"),
                dcc.Textarea(
                    name="matchers", value=matchers_of(row), rows=4, className="f-i mono", title=hint
                ),
            ]
        ),
        html.Div(
            [html.Span(hint, className="f-r"), html.Span("", className="f-r f-fits", role="status")],
            className="al-under",
        ),
        html.Label([html.Span(view.t("alerts.lasts"), className="f-n"), lasting]),
        reason(view.t("alerts.why_silence")),
    ]
    about = {
        "data-fits": view.t("alerts.fits", n="{n}"),
        "data-bad": view.t("alerts.bad_matcher", line="{line}"),
    }
    title = view.t("alerts.new_silence") if row is None else phrases.alert(row, view)
    return _form("silence", "POST", f"{ROOT}/silences", (title, fields, about), view)


def matchers_of(row: AlertRow | None) -> str:
    """The matchers that fit this alert and others of its rule about the same thing, one a line."""
    if row is None:
        return ""
    labels = {name: value for name, value in sorted(row.labels.items()) if name != "simulated" and value}
    return "\n".join(f"{name}={value}" for name, value in {"alertname": row.rule, **labels}.items())


def _word(row: AlertRow, deed: str, view: View) -> Component:
    """The form of an acknowledgement or a comment."""
    path = f"{ROOT}/{row.fingerprint}/{'ack' if deed == 'take' else 'comments'}"
    return _form(
        deed, "POST", path, (phrases.alert(row, view), [reason(view.t(f"alerts.why_{deed}"))], {}), view
    )


def _give(row: AlertRow, view: View) -> Component:
    return _form("give", "DELETE", f"{ROOT}/{row.fingerprint}/ack", (phrases.alert(row, view), [], {}), view)


def _form(
    deed: str, method: str, path: str, shown: tuple[str, list[Component], Mapping[str, str]], view: View
) -> Component:
    title, fields, about = shown
    ways = (view.t(f"alerts.do_{deed}"), address(view))
    sent = sending(method, path, address(view, {"do.done": deed}), view)
    return sent_form(title, fields, ways, view, **sent, **about)


def silences(alerts: Alerts, view: View) -> Component:
    """Silences that hold or will, and nodes in maintenance."""
    if "alert_history" in alerts.status.unavailable:
        return parts.not_told(view)
    if not alerts.silences:
        return parts.next_step(view.t("alerts.silences_empty"))
    return html.Div([_one(silence, alerts, view) for silence in alerts.silences], role="list")


def _one(silence: SilenceInfo, alerts: Alerts, view: View) -> Component:
    about = html.Div([html.Code(matcher) for matcher in silence.matchers], className="al-matchers")
    comment = html.Div(
        view.t("alerts.by", by=silence.created_by, comment=silence.comment), className="al-word"
    )
    told = [about, html.Div(_lasts(silence, alerts, view), className="al-t")]
    if silence.end_seconds is not None:
        told.append(comment)
        if view.viewer.read_only is None:
            told.append(_end(silence, view))
    return html.Div(told, className="al-silence", role="listitem")


def _lasts(silence: SilenceInfo, alerts: Alerts, view: View) -> str:
    now, zone = alerts.status.now_seconds, alerts.status.time_zone
    if silence.end_seconds is None:
        return view.t("alerts.until_maintenance")
    if silence.start_seconds > now + SOON_SECONDS:
        left = view.duration(silence.end_seconds - silence.start_seconds)
        return view.t("alerts.from", when=wording.moment(silence.start_seconds, zone, view.lang), left=left)
    left = view.duration(silence.end_seconds - now)
    return view.t("alerts.until", when=wording.moment(silence.end_seconds, zone, view.lang), left=left)


def _end(silence: SilenceInfo, view: View) -> Component:
    path = f"{ROOT}/silences/{silence.silence_id}"
    button = html.Button(view.t("alerts.do_end"), type="submit", className="more al-end")
    problem = html.Span("", className="f-problem", role="alert")
    then = address(view, {"do.done": "end"})
    return html.Form([button, problem], className="al-inline", **sending("DELETE", path, then, view))


def read_only(view: View) -> list[Component]:
    """Why nothing can be changed here; nothing where it can."""
    who, why = view.viewer, view.viewer.read_only
    if why is None:
        return []
    values = {"role": {"role": view.t(f"role.{who.role}")}, "team": {"teams": ", ".join(who.teams)}}
    return [parts.icon("info"), html.Span(view.t(f"read_only.{why}", **values.get(why, {})))]
