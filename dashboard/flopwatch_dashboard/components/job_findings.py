"""Doubts about a job's figures, beside the figures, in the reader's language."""

from dash import html
from dash.development.base_component import Component

from flopwatch.query import FindingInfo, Job
from flopwatch_dashboard.components import parts, phrases
from flopwatch_dashboard.view import View


def findings(job: Job, view: View) -> Component:
    """Every finding as a sentence; what an agent saw stands behind its sentence."""
    if not job.findings:
        return parts.next_step(view.t("job.findings_none"))
    items = [html.Li([parts.icon("warning"), html.Span(_told(found, view))]) for found in job.findings]
    return html.Ul(items, className="findings sev-warning")


def _told(found: FindingInfo, view: View) -> list[Component]:
    """The sentence, and the agent's own words where the sentence does not hold them."""
    words = sentence(found, view)
    own = [html.Span(found.text, className="muted note", lang="en")] if found.text not in words else []
    return [html.Span(words), *own]


def sentence(found: FindingInfo, view: View) -> str:
    """A finding in the reader's language; without a text of its own, what was told in English."""
    known = {**found.values, "explanation": phrases.explanation(found.values.get("explained_by"), view)}
    key = f"finding.{found.code}"
    if view.knows(key) and all(name in known for name in view.placeholders(key)):
        values = {name: phrases.shown(name, known[name], view) for name in view.placeholders(key)}
        return view.t(key, **values)
    key = f"agent_finding.{found.code}"
    return view.t(key) if view.knows(key) else view.t("agent_finding.any", words=found.text)
