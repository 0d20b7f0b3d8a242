"""The frame of every page: header, navigation, what the figures are and how old."""

from collections.abc import Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from flopwatch.query import Status
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import parts, scope_bar
from flopwatch_dashboard.page import Page
from flopwatch_dashboard.view import DEFAULT_RANGE, RANGES, View

TICK_MILLISECONDS = 5_000
PARTS = {
    "nav": ("nav", "children"),
    "chips": ("chips", "children"),
    "live": ("live", "children"),
    "notice": ("notice", "children"),
    "clusters": ("cluster", "data"),
    "clusters-class": ("cluster", "className"),
    "clusters-hint": ("cluster", "placeholder"),
    "language": ("lang-b", "children"),
    "skip": ("skip", "children"),
    "person": ("person", "children"),
    "scope": ("scope", "children"),
    "scope-hint": ("scope-b", "title"),
    "facts": ("facts", "data"),
}


def shell() -> Component:
    """Everything that stays when the page changes."""
    return dmc.MantineProvider(
        id="mantine",
        defaultColorScheme="light",
        theme={"fontFamily": "inherit", "primaryColor": "blue"},
        children=html.Div(
            [
                *_stores(),
                html.A("Skip to content", href="#main", id="skip", className="skip"),
                _header(),
                html.Div(id="notice", className="notice", **{"aria-live": "polite"}),
                html.Div(id="scope", className="notice scope"),
                html.Main(id="main", className="main", tabIndex="-1"),
            ],
            className="app",
            id="app",
        ),
    )


def _stores() -> list[Component]:
    return [
        dcc.Location(id="url", refresh=False),
        dcc.Store(id="ui"),
        dcc.Store(id="tick"),
        dcc.Store(id="viewport"),
        dcc.Store(id="facts"),
        dcc.Interval(id="clock", interval=TICK_MILLISECONDS),
        dcc.Interval(id="second", interval=2_000),
    ]


def _buttons() -> list[Component]:
    """What is shown, pause, language, theme."""
    scope = html.Button(
        parts.icon("scope"),
        id="scope-b",
        className="btn sq",
        **{"aria-label": "Range, time zone, team / 时间范围、时区、团队", "aria-haspopup": "dialog"},
    )
    live = html.Button(
        [html.Span(className="dot"), html.Span(id="live"), html.Span(id="age", className="age")],
        id="pause",
        className="btn live",
        n_clicks=0,
        **{"aria-live": "off", "aria-pressed": "false"},
    )
    language = html.Button(
        "中文", id="lang-b", className="btn", n_clicks=0, **{"aria-label": "中文 / English"}
    )
    theme = html.Button(
        parts.icon("theme"),
        id="theme-b",
        className="btn sq",
        n_clicks=0,
        **{"aria-label": "Light or dark theme / 浅色或深色"},
    )
    return [scope, live, language, theme]


def _header() -> Component:
    ranges = dmc.SegmentedControl(
        id="range", data=list(RANGES), value=DEFAULT_RANGE, size="xs", **{"aria-label": "Time range"}
    )
    cluster = dmc.Select(
        id="cluster", data=[], size="xs", clearable=True, className="hidden", **{"aria-label": "Cluster"}
    )
    brand = html.Div(
        [html.Span(className="logo"), html.B("flopwatch"), html.Span(id="chips")], className="brand"
    )
    return html.Header(
        [
            brand,
            html.Nav(id="nav", className="nav", **{"aria-label": "Main / 主导航"}),
            html.Div([cluster, ranges, *_buttons(), html.Span(id="person")], className="tools"),
        ],
        className="top",
    )


def frame(status: Status, pages: Sequence[Page], current: Page, view: View) -> dict[str, Any]:
    """The frame's parts from a status."""
    facts = {
        "data_time": status.data_time_seconds,
        "now": status.now_seconds,
        "title": f"flopwatch · {view.t(_name(current))}",
        "age": view.t("frame.age", age="{n}"),
        "lost": view.t("frame.lost"),
        "paused": view.t("frame.paused"),
        "scope": scope_bar.dialog(status, view),
        "units": [view.t(f"unit.{unit}", n="{n}") for unit in ("second", "minute", "hour", "day")],
    }
    return {
        "nav": navigation(pages, current, view),
        "chips": chips(status, view),
        "live": live(status, view),
        "notice": notice(status, view),
        "clusters": [cluster.name for cluster in status.clusters],
        "clusters-class": "cluster" if len(status.clusters) > 1 else "hidden",
        "clusters-hint": view.t("frame.all_clusters"),
        "language": view.t("frame.language"),
        "skip": view.t("frame.skip"),
        "person": person(view),
        "scope": scope_bar.bar(view),
        "scope-hint": view.t("scope.open"),
        "facts": facts,
    }


def person(view: View) -> list[Component]:
    """Who has signed in, and the way out; nothing where nobody has to."""
    who = view.viewer
    if who.name is None:
        return []
    of_teams = view.t("person.teams", teams=", ".join(who.teams)) if who.teams else ""
    hint = " · ".join(word for word in (who.name, view.t(f"role.{who.role}"), of_teams) if word)
    name = html.Span(
        [html.Span(who.name, className="who-n"), html.Span(view.t(f"role.{who.role}"), className="who-r")],
        className="who",
        title=hint,
    )
    if not who.can_leave:
        return [name]
    words = view.t("person.leave")
    leave = html.Button(
        parts.icon("leave"), type="submit", className="btn sq", title=words, **{"aria-label": words}
    )
    return [name, html.Form(leave, action="/logout", method="post", className="leave")]


def navigation(pages: Sequence[Page], current: Page, view: View) -> list[Component]:
    """Links to the pages that have an icon; an item's page marks the page it belongs to."""
    links = []
    for page in pages:
        if page.icon is None:
            continue
        on = page.path == (current.path if current.under is None else current.under)
        extra = {"aria-current": "page"} if on else {}
        content = [parts.icon(page.icon), html.Span(view.t(f"nav.{page.name}"))]
        links.append(
            html.A(content, href=view.link(page.path), className="nav-i on" if on else "nav-i", **extra)
        )
    return links


def chips(status: Status, view: View) -> list[Component]:
    """Which cluster, how many GPUs report, and what is not real about the figures."""
    shown = [cluster for cluster in status.clusters if view.cluster in (None, cluster.name)]
    result: list[Component] = []
    if shown:
        gpus = sum(cluster.gpus for cluster in shown)
        reporting = sum(cluster.gpus_reporting for cluster in shown)
        count = view.t("frame.gpus", gpus=wording.number(gpus))
        silent = view.t("frame.gpus_silent", reporting=wording.number(reporting), gpus=wording.number(gpus))
        words = count if reporting >= gpus else silent
        # With several clusters the choice beside it names the one that is shown.
        text = f"{shown[0].name} · {words}" if len(status.clusters) == 1 else words
        result.append(html.Span(text, className="chip", title=text))
    if status.simulated:
        hint = view.t("frame.simulated_hint")
        result.append(html.Span(view.t("frame.simulated"), className="chip sim", title=hint))
    if status.price_is_example and status.price_per_gpu_hour is not None:
        hint = view.t("frame.example_price_hint")
        result.append(html.Span(view.t("frame.example_price"), className="chip example", title=hint))
    return result


def live(status: Status, view: View) -> str:
    """The time of the newest data, never of the clock."""
    if status.data_time_seconds is None:
        return view.t("frame.no_data")
    return view.t("frame.live", time=wording.clock(status.data_time_seconds, status.time_zone))


def notice(status: Status, view: View) -> list[Component]:
    """What the source of the data cannot answer, and the progress while older history is filled in."""
    told: list[Component] = []
    if status.unavailable:
        what = ", ".join(view.code("unavailable", code) for code in status.unavailable)
        told = [parts.icon("info"), html.Span(view.t("unavailable.title", what=what))]
    return [*told, *_progress(status, view)]


def _progress(status: Status, view: View) -> list[Component]:
    ratio = status.history_progress_ratio
    if ratio is None or ratio >= 1:
        return []
    words = view.t("frame.history", share=wording.percent(ratio, 0))
    bar = html.Div(html.Div(style={"width": f"{ratio * 100:.1f}%"}), className="progress")
    return [html.Span(words), bar]


def lost(view: View) -> list[Component]:
    """What stands there while the collector does not answer."""
    return [parts.icon("warning"), html.Span(view.t("frame.lost"))]


def _name(page: Page) -> str:
    return f"nav.{page.name}" if page.icon else f"{page.name}.title"
