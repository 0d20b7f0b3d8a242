"""The alert rules as they are set, how often they fired, and what they would have said of the last days."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dash import html
from dash.development.base_component import Component

from flopwatch.answers.alert import RuleInfo, RuleTerms
from flopwatch.query import Alerts
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import parts
from flopwatch_dashboard.components.tables import table
from flopwatch_dashboard.view import View

MOST_EPISODES = 5
"""Of a rule, in the dry run."""


def rules(alerts: Alerts, view: View) -> Component:
    """Every rule, what it fires at, whether it sends, and how often it fired."""
    if not alerts.rules:
        return parts.next_step(view.t("alerts.rules_empty"))
    columns = [
        (view.t("col.rule"), False),
        (view.t("col.rule_fires"), False),
        (view.t("col.level"), False),
        (view.t("col.lasts"), False),
        (view.t("col.severity"), False),
        (view.t("col.sends"), False),
        (view.t("col.firing_now"), True),
        (view.t("col.fired_in", range=view.range_label), True),
    ]
    return table(columns, [_row(rule, view) for rule in alerts.rules])


def _row(rule: RuleInfo, view: View) -> list[Component | str]:
    terms = rule.terms
    severity = rule.severity or (terms.severity if terms else None)
    level = wording.UNKNOWN if terms is None else _level(terms, view)
    return [
        html.Span(rule.rule, className="badge"),
        html.Span(
            view.code("rule", rule.rule) if terms is None or view.knows(f"rule.{rule.rule}") else terms.fires
        ),
        level,
        wording.UNKNOWN if terms is None else _lasts(terms, view),
        parts.severity(severity, view) if severity else wording.UNKNOWN,
        _sends(rule, view),
        wording.number(rule.firing),
        wording.number(rule.fired),
    ]


def _level(terms: RuleTerms, view: View) -> str:
    """``below 90%`` where the rule has a level that can be set."""
    if terms.level is None or terms.level_unit is None:
        return ""
    if terms.level_unit == "count":
        return f"≥ {terms.level:g}"
    shown = wording.line_percent(terms.level) if terms.level_unit == "ratio" else f"{terms.level:g} x"
    return view.t("alerts.below", level=shown) if terms.below else view.t("alerts.above", level=shown)


def _lasts(terms: RuleTerms, view: View) -> str:
    if terms.for_seconds is None:
        return view.t("alerts.own_pace")
    return view.duration(terms.for_seconds) if terms.for_seconds > 0 else view.t("alerts.at_once")


def _sends(rule: RuleInfo, view: View) -> Component:
    word = "off" if not rule.enabled else "sends" if rule.sends else "only_shown"
    return html.Span(view.t(f"alerts.{word}"), className="" if word == "sends" else "muted")


def rehearsal(told: Mapping[str, Any], view: View) -> list[Component]:
    """The dry run in words: of each rule how often and when, those that fired first; ``told`` is the API's answer."""
    zone = str(told.get("time_zone") or "UTC")
    episodes = [one for one in told.get("episodes", ()) if isinstance(one, Mapping)]
    judged = [str(rule) for rule in told.get("judged", ())]
    counts = Counter(str(one.get("rule")) for one in episodes)
    ordered = sorted(judged, key=lambda rule: -counts[rule])
    items = [
        html.Li(_episodes(rule, [one for one in episodes if one.get("rule") == rule], zone, view))
        for rule in ordered
    ]
    not_judged = [str(rule) for rule in told.get("not_judged", ())]
    rest = view.t("alerts.not_judged", rules=", ".join(not_judged))
    return [
        html.H3(view.t("alerts.rehearsed"), className="al-title"),
        html.Ul(items, className="al-dry"),
        *([html.P(rest, className="f-hint")] if not_judged else []),
    ]


def _episodes(rule: str, episodes: Sequence[Mapping[str, Any]], zone: str, view: View) -> list[Component]:
    count = len(episodes)
    times = "alerts.would_not" if not count else "alerts.would_once" if count == 1 else "alerts.would"
    words = view.t(times, n=count) if count > 1 else view.t(times)
    newest = sorted(episodes, key=_start, reverse=True)[:MOST_EPISODES]
    return [
        html.Span(rule, className="badge"),
        html.B(words) if count else html.Span(words, className="muted"),
        *(
            html.Span(_episode(one, zone, view), className="al-t", title=str(one.get("summary", "")))
            for one in newest
        ),
    ]


def _start(episode: Mapping[str, Any]) -> float:
    start = episode.get("start_seconds")
    return float(start) if isinstance(start, int | float) else 0.0


def _episode(episode: Mapping[str, Any], zone: str, view: View) -> str:
    end = episode.get("end_seconds")
    until = (
        wording.moment(float(end), zone, view.lang)
        if isinstance(end, int | float)
        else view.t("alerts.still")
    )
    return f"{episode.get('job') or ''} {wording.moment(_start(episode), zone, view.lang)} – {until}".strip()  # noqa: RUF001
