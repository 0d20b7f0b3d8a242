"""Refreshing a page: one callback, one answer, only what changed goes to the browser."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

from dash import ClientsideFunction, Dash, Input, Output, State, dcc, no_update
from dash.development.base_component import Component
from dash.exceptions import PreventUpdate

from flopwatch import viewer
from flopwatch.query import Query
from flopwatch_dashboard import memo, packed
from flopwatch_dashboard.client import CollectorUnavailable
from flopwatch_dashboard.components import frame
from flopwatch_dashboard.page import Page, match
from flopwatch_dashboard.scope import scoped
from flopwatch_dashboard.threaded import threaded
from flopwatch_dashboard.view import View, from_browser

NOW_STEP_SECONDS = 60
"""Ages on a page are redrawn this often when nothing else has changed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Live:
    """Everything a refresh needs: the pages, where data come from, and what was drawn lately."""

    query: Query
    pages: tuple[Page, ...]
    missing: Page
    prefix: str
    who: Callable[[], viewer.Viewer] = viewer.current
    """Who asks."""
    drawn: memo.Memo[memo.Drawn] = field(default_factory=lambda: memo.Memo(64))
    rows: memo.Memo[Sequence[Mapping[str, Any]]] = field(default_factory=lambda: memo.Memo(16))

    def find(self, pathname: str | None) -> tuple[Page, str]:
        """The page of an address and the item in it; the page for wrong addresses when there is none."""
        path = (pathname or self.prefix).removeprefix(self.prefix)
        found = match(self.pages, path)
        if found is None:
            return self.missing, unquote(path)
        page, item = found
        return page, unquote(item)

    def draw(self, page: Page, item: str, view: View) -> memo.Drawn:
        """The page's parts, from the memo where data, view and minute are the same."""
        site = self.query.status()
        view = replace(view, site_zone=site.time_zone)
        query = scoped(self.query, view.zone, view.team)
        status = replace(site, time_zone=view.shown_zone)
        key = (page.name, item, view, status.generation, int(status.now_seconds // NOW_STEP_SECONDS))
        body = self.drawn.get(key, lambda: memo.drawn(page.render(query, view, item)))
        around = memo.drawn(frame.frame(status, self.pages, page, view))
        return memo.Drawn(parts={**around.parts, **body.parts}, digests={**around.digests, **body.digests})


def register(app: Dash, live: Live) -> None:
    """Register the routing callback and one refresh callback a page."""

    @app.callback(Output("main", "children"), Output("main", "className"), Input("url", "pathname"))
    @threaded
    def route(pathname: str | None) -> tuple[list[Component], str]:
        page, _ = live.find(pathname)
        stores = [dcc.Store(id=f"{page.name}-{kept}") for kept in ("sent", "frame", "packed")]
        return [*stores, *page.skeleton()], f"main page-{page.name}"

    for page in (*live.pages, live.missing):
        _register_refresh(app, live, page)
        _register_frame(app, page)
        if page.rows:
            _register_rows(app, page, page.rows)


def _register_refresh(app: Dash, live: Live, page: Page) -> None:
    targets = {**page.parts, **({page.rows: (f"{page.name}-packed", "data")} if page.rows else {})}

    @app.callback(
        *(Output(*target) for target in targets.values()),
        Output(f"{page.name}-frame", "data"),
        Output(f"{page.name}-sent", "data"),
        Input("tick", "data"),
        Input("ui", "data"),
        State("url", "pathname"),
        State(f"{page.name}-sent", "data"),
        running=[(Output("clock", "disabled"), True, False)],
    )
    @threaded
    def refresh(_tick: Any, ui: Any, pathname: str | None, sent: Any) -> tuple[Any, ...]:
        found, item = live.find(pathname)
        if not isinstance(ui, dict) or found is not page:
            raise PreventUpdate
        view = replace(from_browser(ui, live.prefix), viewer=live.who())
        values, known = answer(live, page, item, view, sent if isinstance(sent, dict) else {})
        values = as_sent(page, values)
        ordered = [values.get(name, no_update) for name in targets]
        around = {name: values[name] for name in frame.PARTS if name in values}
        return (*ordered, around, known)


def _register_frame(app: Dash, page: Page) -> None:
    """The frame outlives the page: what the refresh says about it is handed on in the browser."""
    app.clientside_callback(
        ClientsideFunction("flopwatch", "frame"),
        *(Output(*target, allow_duplicate=True) for target in frame.PARTS.values()),
        Input(f"{page.name}-frame", "data"),
        prevent_initial_call=True,
    )


def _register_rows(app: Dash, page: Page, part: str) -> None:
    """Rows are sent packed; the browser unpacks them for its table."""
    table, rows = page.parts[part]
    app.clientside_callback(
        ClientsideFunction("flopwatch", "unpack"),
        Output(table, rows),
        Output(table, "rowTransaction"),
        Input(f"{page.name}-packed", "data"),
        prevent_initial_call=True,
    )


def answer(
    live: Live, page: Page, item: str, view: View, sent: Mapping[str, str]
) -> tuple[dict[str, Any], Mapping[str, str]]:
    """The parts that differ from what the browser has, and the digests it has from then on.

    While the collector does not answer, everything stays as it was and a line says so.
    """
    try:
        drawn = live.draw(page, item, view)
    except CollectorUnavailable:
        return {"notice": frame.lost(view)}, {**sent, "notice": "lost"}
    changed = {name: value for name, value in drawn.parts.items() if sent.get(name) != drawn.digests[name]}
    changed["facts"] = drawn.parts["facts"]  # always: its arrival tells the browser that the server answers
    if page.rows and page.rows in changed:
        _as_transaction(live, page.rows, changed, sent)
    if page.rows:
        live.rows.put(drawn.digests[page.rows], drawn.parts[page.rows])
    return changed, drawn.digests


def as_sent(page: Page, values: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of an answer as they go to the browser: a table's rows, or what changed in them, packed."""
    sent = dict(values)
    if page.rows and page.rows in sent:
        sent[page.rows] = packed.packed(sent[page.rows])
    elif page.rows and "transaction" in sent:
        sent[page.rows] = packed.change(sent.pop("transaction"))
    return sent


def _as_transaction(live: Live, part: str, changed: dict[str, Any], sent: Mapping[str, str]) -> None:
    """Instead of all rows the difference to the rows the browser has, where they are still known here."""
    before = live.rows.peek(sent.get(part, ""))
    if before is not None:
        changed["transaction"] = memo.transaction(before, changed.pop(part))
