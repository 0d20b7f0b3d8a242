"""The Jobs page: every running and recent job in one table; search, sort and filters live in the address."""

from collections import Counter
from typing import Any

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, html
from dash.development.base_component import Component

from flopwatch.query import Jobs, Query
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import job_grid, parts
from flopwatch_dashboard.page import Page
from flopwatch_dashboard.view import View


def skeleton() -> list[Component]:
    """The page without data."""
    search = dmc.TextInput(
        id="jobs-search", size="xs", debounce=200, className="search", **{"aria-label": "Search"}
    )
    return [
        html.Div(
            [html.Div(id="jobs-head", className="p-h"), search, html.Div(id="jobs-links")], className="bar"
        ),
        html.Div(id="jobs-empty"),
        html.Section(job_grid.grid(), id="jobs-table", className="card grid-card", **{"aria-label": "Jobs"}),
    ]


def render(query: Query, view: View, _item: str) -> dict[str, Any]:
    """The table's rows and what stands around it."""
    jobs = query.jobs(view.asked)
    csv = parts.download(view.t("frame.csv"), view.export("jobs"), view.t("jobs.title"))
    return {
        "head": [html.H1(view.t("jobs.title")), html.Span(_counts(jobs, view), className="sub")],
        "links": [csv],
        "hint": view.t("jobs.search"),
        "empty": [] if jobs.rows else [_nothing(view)],
        "label": view.t("jobs.aria", count=len(jobs.rows)),
        "columns": job_grid.columns(jobs.status, view),
        "rows": [job_grid.row(job, jobs.status, view) for job in jobs.rows],
    }


def _counts(jobs: Jobs, view: View) -> str:
    states = Counter(job.state for job in jobs.rows)
    counts = {state: wording.number(states[state]) for state in ("running", "waiting", "stalled", "ended")}
    return view.t("jobs.sub", range=view.shown_range, **counts)


def _nothing(view: View) -> Component:
    steps = (view.t("empty.no_jobs_next"), view.t("empty.no_jobs_command"))
    return html.Section(parts.next_step(view.t("empty.no_jobs"), steps), className="card")


def extend(app: Dash) -> None:
    """Search, sort and filters are kept in the address, in the browser."""
    app.clientside_callback(
        ClientsideFunction("flopwatch", "table"),
        Output("jobs-search", "value"),
        Input("jobs-search", "value"),
        Input("jobs-grid", "id"),
    )


PAGE = Page(
    name="jobs",
    path="jobs",
    icon="jobs",
    skeleton=skeleton,
    render=render,
    rows="rows",
    extend=extend,
    parts={
        "head": ("jobs-head", "children"),
        "links": ("jobs-links", "children"),
        "hint": ("jobs-search", "placeholder"),
        "empty": ("jobs-empty", "children"),
        "label": ("jobs-table", "aria-label"),
        "columns": (job_grid.GRID_ID, "columnDefs"),
        "rows": (job_grid.GRID_ID, "rowData"),
    },
)
