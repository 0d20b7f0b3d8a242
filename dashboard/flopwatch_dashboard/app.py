"""The dashboard put together: pages, callbacks, and the way it hangs in a FastAPI application."""

from collections.abc import Callable
from pathlib import Path

from dash import ClientsideFunction, Dash, Input, Output, State
from fastapi import FastAPI
from starlette.datastructures import MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from flopwatch import viewer
from flopwatch.query import Query
from flopwatch.viewer import Viewer
from flopwatch_dashboard import live
from flopwatch_dashboard.components import frame
from flopwatch_dashboard.index import index_string, policy
from flopwatch_dashboard.page import Page
from flopwatch_dashboard.pages import alerts, audit, breakeven, fleet, gpu, job, jobs, missing, node, nodes
from flopwatch_dashboard.static_files import StaticFiles

PAGES: tuple[Page, ...] = (
    fleet.PAGE,
    jobs.PAGE,
    job.PAGE,
    nodes.PAGE,
    node.PAGE,
    gpu.PAGE,
    breakeven.PAGE,
    alerts.PAGE,
    audit.PAGE,
)
"""In the order of the navigation."""


class DeepLink:
    """Every GET below the prefix that is not Dash's own answers with the page shell, so addresses can be kept.

    ``/`` leads to the dashboard unless the application has a page of its own there. Answers below the prefix carry
    the content security policy.
    """

    def __init__(self, app: ASGIApp, prefix: str, security_policy: str) -> None:
        self._app = app
        self._prefix = prefix
        self._policy = security_policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        path = scope.get("path", "")
        if scope["type"] == "http" and path == "/":
            await RedirectResponse(self._prefix)(scope, receive, send)
            return
        if scope["type"] != "http" or not path.startswith(self._prefix):
            await self._app(scope, receive, send)
            return
        if scope["method"] in ("GET", "HEAD") and self._is_page(path):
            scope = {**scope, "path": self._prefix, "raw_path": self._prefix.encode()}
        await self._app(scope, receive, self._secured(send))

    def _is_page(self, path: str) -> bool:
        rest = path[len(self._prefix) :]
        return bool(rest) and not rest.startswith(("_dash-", "_reload-hash", "_favicon", "assets/"))

    def _secured(self, send: Send) -> Send:
        async def secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["content-security-policy"] = self._policy
                headers["x-content-type-options"] = "nosniff"
                headers["referrer-policy"] = "same-origin"
            await send(message)

        return secured


def mount(
    api: FastAPI, query: Query, *, prefix: str = "/ui/", who: Callable[[], Viewer] = viewer.current
) -> None:
    """Hang the dashboard into ``api`` below ``prefix``; call it last, so that the API's own routes win.

    ``who`` is asked in every request who looks.

    Raises:
        ValueError: the prefix does not begin and end with a slash, or is only one.
    """
    if len(prefix) < 3 or not (prefix.startswith("/") and prefix.endswith("/")):
        raise ValueError(f"prefix is {prefix!r}; allowed: a path that begins and ends with '/'")
    ui = build(query, prefix, who)
    pages = StaticFiles(GZipMiddleware(ui.server, minimum_size=4096, compresslevel=1), prefix)
    api.mount("/", DeepLink(pages, prefix, policy(ui.csp_hashes())))


def build(query: Query, prefix: str = "/ui/", who: Callable[[], Viewer] = viewer.current) -> Dash:
    """The Dash application on a FastAPI application of its own, without that one's documentation pages."""
    ui = Dash(
        "flopwatch_dashboard",
        server=FastAPI(openapi_url=None),
        routes_pathname_prefix=prefix,
        requests_pathname_prefix=prefix,
        assets_folder=str(Path(__file__).parent / "assets"),
        index_string=index_string(prefix, list(frame.PARTS)),
        title="flopwatch",
        serve_locally=True,
        update_title=None,
        suppress_callback_exceptions=True,
    )
    ui.layout = frame.shell()
    live.register(ui, live.Live(query=query, pages=PAGES, missing=missing.PAGE, prefix=prefix, who=who))
    _register_browser_callbacks(ui)
    for page in PAGES:
        if page.extend:
            page.extend(ui)
    return ui


def _register_browser_callbacks(ui: Dash) -> None:
    """What stays in the browser: the reader's settings, the gate of the tick, the age of the data."""
    ui.clientside_callback(
        ClientsideFunction("flopwatch", "settings"),
        Output("ui", "data"),
        Output("mantine", "forceColorScheme"),
        Output("range", "value"),
        Output("cluster", "value"),
        Input("theme-b", "n_clicks"),
        Input("lang-b", "n_clicks"),
        Input("range", "value"),
        Input("cluster", "value"),
        Input("viewport", "data"),
        Input("url", "search"),
        State("ui", "data"),
    )
    ui.clientside_callback(
        ClientsideFunction("flopwatch", "gate"),
        Output("tick", "data"),
        Input("clock", "n_intervals"),
        State("pause", "n_clicks"),
        prevent_initial_call=True,
    )
    ui.clientside_callback(
        ClientsideFunction("flopwatch", "age"),
        Output("age", "children"),
        Output("pause", "className"),
        Output("pause", "aria-pressed"),
        Input("second", "n_intervals"),
        Input("facts", "data"),
        Input("pause", "n_clicks"),
    )
