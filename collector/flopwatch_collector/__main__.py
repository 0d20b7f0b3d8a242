"""The collector's process: serve until told to stop."""

import argparse
import contextlib
import dataclasses
import errno
import gc
import ipaddress
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import uvicorn

from flopwatch import settings as settings_file
from flopwatch import tls
from flopwatch.settings import SettingError
from flopwatch_collector import app, config
from flopwatch_collector.api.application import Mount
from flopwatch_collector.store.port import StoreLocked, Unavailable

GRACE_SECONDS = 10
KEEP_ALIVE_SECONDS = 75
GARBAGE_ALLOCATIONS, GARBAGE_ROUNDS = 50_000, 20

log = logging.getLogger("flopwatch_collector")


class CannotStart(Exception):
    """The collector cannot be started, for the reason given."""


def main(argv: list[str], mount: Mount | None = None) -> int:
    """Run the collector; 0 after SIGTERM or Ctrl-C, 2 when it cannot start.

    ``mount`` adds the pages: the collector itself knows none.

    Raises:
        SettingError: a setting is wrong.
    """
    arguments = parser().parse_args(argv)
    settings = settings_of(arguments, os.environ)
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    try:
        return serve(settings, os.environ, mount=mount)
    except CannotStart as error:
        sys.stderr.write(f"flopwatch collector: {error}\n")
        return 2


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    made = argparse.ArgumentParser(prog="flopwatch collector", description="The collector.")
    made.add_argument(
        "--config", type=Path, help="the settings file (default: the system's, then the user's)"
    )
    made.add_argument("--host", help="address to listen on (collector.host)")
    made.add_argument("--port", type=int, help="port to listen on; 0 takes a free one (collector.port)")
    made.add_argument("--data-dir", type=Path, help="folder of the data (collector.data_dir)")
    made.add_argument(
        "--insecure",
        action="store_true",
        help="serve beyond this machine without a token (collector.insecure)",
    )
    made.add_argument("--price", type=float, help="price of a GPU-hour (costs.price_per_gpu_hour)")
    return made


def settings_of(arguments: argparse.Namespace, environ: Mapping[str, str]) -> config.Settings:
    """The settings of file, environment and command line, the last word last.

    Raises:
        SettingError: a setting is wrong.
    """
    path = arguments.config or settings_file.default_file(environ)
    settings = config.read(settings_file.load(path), environ)
    given = {
        "host": arguments.host,
        "port": arguments.port,
        "data_dir": arguments.data_dir,
        "insecure": True if arguments.insecure else None,
    }
    changed = {name: value for name, value in given.items() if value is not None}
    collector = dataclasses.replace(settings.collector, **changed)
    costs = settings.costs
    if arguments.price is not None:
        costs = dataclasses.replace(costs, price_per_gpu_hour=arguments.price)
    return dataclasses.replace(settings, collector=collector, costs=costs)


def serve(settings: config.Settings, environ: Mapping[str, str], *, mount: Mount | None = None) -> int:
    """Serve until SIGTERM or Ctrl-C; what was accepted is durable when it returns.

    Raises:
        CannotStart: the port or the data folder is taken, or nothing protects an open address.
        SettingError: a setting is wrong.
    """
    tls.check("collector", settings.collector.tls_cert, settings.collector.tls_key)
    with contextlib.closing(listening(settings.collector)) as listener:
        try:
            running = app.build(settings, environ=environ, mount=mount)
        except (StoreLocked, Unavailable, ValueError, OSError) as error:
            if isinstance(error, SettingError):
                raise
            folder = config.data_folder(settings.collector, environ)
            raise CannotStart(f"the data folder {folder} cannot be used: {error}") from error
        try:
            require_protection(settings.collector, has_token=running.is_protected())
            log.info("listening on %s", url(settings.collector, listener))
            run(running.app, settings.collector, listener)
        finally:
            running.stop()
    return 0


def run(application: object, settings: config.CollectorSettings, listener: socket.socket) -> None:
    """Serve an application on a bound socket until SIGTERM or Ctrl-C."""
    server = uvicorn.Server(
        uvicorn.Config(
            application,  # type: ignore[arg-type]  # any ASGI application
            access_log=False,
            log_config=None,
            server_header=False,
            proxy_headers=False,
            lifespan="on",
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
            ssl_certfile=settings.tls_cert,
            ssl_keyfile=settings.tls_key,
        )
    )
    # uvicorn raises the signal again after its shutdown: with a handler in place that is an ordinary end.
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with seldom_collected():
            server.run(sockets=[listener])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if not server.started:
        raise CannotStart("the application did not start; the log above says why")


@contextlib.contextmanager
def seldom_collected() -> Iterator[None]:
    """Search for cycles less often, and not in what was there at the start.

    Batches are many short-lived values without cycles. With Python's own thresholds the search stopped every
    thread for a tenth of a second every few seconds, and was a fifth of all CPU with 10,000 GPUs.
    """
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_ALLOCATIONS, before[1], GARBAGE_ROUNDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def listening(settings: config.CollectorSettings) -> socket.socket:
    """A socket bound to host and port.

    Raises:
        CannotStart: the port is in use or may not be used.
        SettingError: the host is no address of this machine.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise SettingError(
            "collector.host", settings.host, f"an address of this machine ({error})"
        ) from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise _not_bound(settings, error) from error
    return listener


def _not_bound(settings: config.CollectorSettings, error: OSError) -> Exception:
    if error.errno == errno.EADDRINUSE:
        return CannotStart(
            f"port {settings.port} on {settings.host} is in use; stop the program that holds it, "
            "or choose another with --port or the setting collector.port"
        )
    if error.errno == errno.EACCES:
        return SettingError("collector.port", settings.port, "a port this user may use, 1024 or more")
    return SettingError("collector.host", settings.host, f"an address of this machine ({error.strerror})")


def require_protection(settings: config.CollectorSettings, *, has_token: bool) -> None:
    """Refuse to serve other machines while everybody may push and read.

    Raises:
        CannotStart: the address is beyond loopback, there is no token, and ``insecure`` is not set.
    """
    if has_token or settings.insecure or is_loopback(settings.host):
        return
    raise CannotStart(
        f"{settings.host} can be reached from other machines and no access token exists, so everybody could push "
        "and read. Make one with 'flopwatch token create --role agent' (and --role viewer for people), "
        "or start with --insecure"
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]").partition("%")[0]).is_loopback
    except ValueError:
        return False


def url(settings: config.CollectorSettings, listener: socket.socket) -> str:
    """Where the collector is reached."""
    scheme = "https" if settings.tls_cert is not None else "http"
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{scheme}://{host}:{listener.getsockname()[1]}/"


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except SettingError as wrong:
        sys.stderr.write(f"flopwatch: {wrong}\n")
        sys.exit(2)
