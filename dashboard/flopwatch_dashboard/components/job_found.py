"""What was found of a run and from where, and the log that a node reads."""

from dash import html
from dash.development.base_component import Component

from flopwatch.query import FoundFact, Job, NodeInfo
from flopwatch_dashboard import wording
from flopwatch_dashboard.view import View


def found(job: Job, view: View) -> list[Component]:
    """One line a fact with its source; nothing where nothing was found."""
    lines = [html.Li(_line(fact, view)) for fact in job.found]
    return [html.Ul(lines, className="origins", id="job-found")] if lines else []


def _line(fact: FoundFact, view: View) -> str:
    name = view.code("found", fact.name)
    value = wording.number(fact.value) if isinstance(fact.value, int) else fact.value
    source = f"{view.code('found_source', fact.source)} · {fact.origin}"
    return f"{name} {value} · {source}" if value is not None else f"{name} · {source}"


def log_of(node: NodeInfo) -> Component:
    """The name of the file that the node reads, its whole path on hover."""
    path = node.log_path or ""
    return html.Span(path.rpartition("/")[2] or path, title=path)
