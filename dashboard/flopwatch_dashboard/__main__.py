"""``flopwatch dashboard``: the dashboard as its own process."""

import argparse
import dataclasses
import logging
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from flopwatch import tls
from flopwatch.query import Query
from flopwatch.settings import SettingError, default_file, load
from flopwatch_dashboard.client import HttpQuery
from flopwatch_dashboard.config import DashboardSettings, settings_from
from flopwatch_dashboard.forwarding import Collector
from flopwatch_dashboard.standalone import application, application_of, signed_in

log = logging.getLogger(__name__)


Other = Callable[[DashboardSettings], Query | None]
"""Another source of data than a collector, where the settings name one."""


def main(argv: list[str] | None = None, other: Other = lambda _: None) -> int:
    """Serve until a signal ends it.

    Raises:
        SettingError: a setting is wrong, the port is taken, the certificate or its key cannot be used, or the address
            is open without consent.
    """
    arguments = _parser().parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    settings = _settings(arguments)
    _check_reach(settings, insecure=arguments.insecure)
    tls.check("dashboard", settings.tls_cert, settings.tls_key)
    query = other(settings)
    asked = settings.collector_url if query is None else settings.prometheus_url or ""
    api = _over_collector(settings, insecure=arguments.insecure) if query is None else application_of(query)
    with _listen(settings) as listener:
        log.info(
            "dashboard on %s://%s:%d/ui/, asking %s", settings.scheme, settings.host, settings.port, asked
        )
        served = uvicorn.Config(
            api, log_level="warning", ssl_certfile=settings.tls_cert, ssl_keyfile=settings.tls_key
        )
        uvicorn.Server(served).run(sockets=[listener])
    return 0


def _check_reach(settings: DashboardSettings, *, insecure: bool) -> None:
    """Beyond loopback people sign in, or it was consented that they do not.

    Raises:
        SettingError: neither.
    """
    if settings.prometheus_url is not None and settings.sign_in == "on":
        allowed = "auto or off over a Prometheus, which has no users to sign in"
        raise SettingError("dashboard.sign_in", settings.sign_in, allowed)
    if settings.loopback or insecure:
        return
    if settings.prometheus_url is not None:
        allowed = (
            "a loopback address, or --insecure (over a Prometheus nobody signs in: put a proxy before it)"
        )
        raise SettingError("dashboard.host", settings.host, allowed)
    if not settings.signs_in:
        allowed = "auto or on beyond loopback, or --insecure"
        raise SettingError("dashboard.sign_in", settings.sign_in, allowed)


def _over_collector(settings: DashboardSettings, *, insecure: bool) -> FastAPI:
    query = HttpQuery(settings.collector_url, settings.bearer(), settings.timeout_seconds)
    if settings.sign_in == "on" or (settings.signs_in and not insecure):
        collector = Collector(
            settings.collector_url, settings.timeout_seconds, over_tls=settings.scheme == "https"
        )
        return signed_in(query, collector)
    return application(query)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="flopwatch dashboard", description="The dashboard as its own process."
    )
    parser.add_argument("--config", type=Path, help="settings file")
    parser.add_argument("--host", help="address to listen on (dashboard.host)")
    parser.add_argument("--port", type=int, help="port to listen on (dashboard.port)")
    parser.add_argument("--collector-url", help="the collector that is asked (dashboard.collector_url)")
    parser.add_argument(
        "--prometheus",
        dest="prometheus_url",
        metavar="URL",
        help="a Prometheus, VictoriaMetrics, Mimir or Thanos that is asked instead (dashboard.prometheus_url)",
    )
    parser.add_argument("--insecure", action="store_true", help="beyond loopback, ask nobody to sign in")
    return parser


def _settings(arguments: argparse.Namespace) -> DashboardSettings:
    settings = settings_from(load(arguments.config or default_file(os.environ)), os.environ)
    given = {
        name: value
        for name in ("host", "port", "collector_url", "prometheus_url")
        if (value := getattr(arguments, name)) is not None
    }
    return dataclasses.replace(settings, **given)


def _listen(settings: DashboardSettings) -> socket.socket:
    """The listening socket, taken before anything else starts, so that a taken port is one clear line.

    Raises:
        SettingError: the address cannot be listened on.
    """
    try:
        family = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((settings.host, settings.port), family=family)
    except OSError as error:
        place = f"{settings.host}:{settings.port}"
        raise SettingError(
            "dashboard.port", place, f"an address that is free here ({error.strerror})"
        ) from error


if __name__ == "__main__":
    sys.exit(main())
