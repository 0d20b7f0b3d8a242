"""A socket in the data folder, through which the process that holds it does work for others.

Whoever may open the folder as its owner or as root may ask; nobody over the network can. A request is one line of JSON,
``{"do": …, "options": {…}}``; the answer is lines of ``{"doing": …, "done_ratio": …}`` and at last ``{"result": …}`` or
``{"problem": …}``.
"""

import contextlib
import logging
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from flopwatch_collector.store.port import NotSupported, Progress, TooSlow, Unavailable
from flopwatch_collector.store.work import Answer, Work

SOCKET = "socket"
MOST_REQUEST_BYTES = 64 * 1024
REQUEST_SECONDS = 10.0
"""Whoever connects and says nothing, or hears nothing, is given up after this."""
TELL_SECONDS = 0.2
"""Progress is told no more often."""
_PEER = struct.Struct("3i")

logger = logging.getLogger(__name__)


class Refused(Exception):
    """The holder of the folder did not do what was asked, for the reason given."""


class Stopping(Exception):
    """The collector ends, and with it the work that is going on."""


class Desk:
    """Serves requests, each in a thread of its own, until it is closed.

    Where the folder cannot have a socket, nobody can ask, and the log says so.
    """

    def __init__(self, folder: Path, work: Work) -> None:
        self._folder = folder
        self._work = work
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._serving: set[threading.Thread] = set()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._thread = threading.Thread(target=self._accept, name="flopwatch-store-desk", daemon=True)
        try:
            self._listen()
        except OSError as problem:
            logger.warning("'flopwatch store' cannot ask this process: no socket in %s: %s", folder, problem)
            self._listener.close()
            self._closing.set()
        else:
            self._thread.start()

    def _listen(self) -> None:
        (self._folder / SOCKET).unlink(missing_ok=True)
        os.fchmod(self._listener.fileno(), 0o600)
        with _short(self._folder) as address:
            self._listener.bind(address)
        self._listener.listen(8)

    def close(self) -> None:
        """Take no more requests, and end those that are being done."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        with self._lock:
            serving = tuple(self._serving)
        for thread in serving:
            thread.join()
        self._listener.close()
        (self._folder / SOCKET).unlink(missing_ok=True)

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                if not self._closing.is_set():
                    logger.exception("the store's socket takes no more requests")
                return
            thread = threading.Thread(
                target=self._serve, args=(connection,), name="flopwatch-store-request", daemon=True
            )
            with self._lock:
                self._serving.add(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(REQUEST_SECONDS)
        try:
            with connection, contextlib.suppress(BrokenPipeError, ConnectionResetError, TimeoutError):
                _send(connection, self._answer(connection))
        finally:
            with self._lock:
                self._serving.discard(threading.current_thread())

    def _answer(self, connection: socket.socket) -> dict[str, Any]:
        try:
            # Read first, also from whom nothing is taken: a socket closed before that takes the answer with it.
            with connection.makefile("rb") as lines:
                line = lines.readline(MOST_REQUEST_BYTES)
            _require_owner(connection)
            request = msgspec.json.decode(line)
            return {
                "result": self._work.do(request["do"], request.get("options", {}), self._told(connection))
            }
        except (
            ValueError, KeyError, OSError, Unavailable, NotSupported, TooSlow, Stopping, msgspec.DecodeError,
        ) as problem:  # fmt: skip
            return {"problem": str(problem)}
        except Exception as problem:
            logger.exception("work on the store failed")
            return {"problem": f"{type(problem).__name__}: {problem}; the collector's log says where"}

    def _told(self, connection: socket.socket) -> Progress:
        """Progress to whoever asked; work goes on when he has left, and stops when the collector ends."""
        last = -TELL_SECONDS

        def progress(doing: str, done_ratio: float) -> None:
            nonlocal last
            if self._closing.is_set():
                raise Stopping("the collector ends; ask again when it is up")
            if time.monotonic() - last >= TELL_SECONDS:
                last = time.monotonic()
                with contextlib.suppress(OSError):
                    _send(connection, {"doing": doing, "done_ratio": done_ratio})

        return progress


def _require_owner(connection: socket.socket) -> None:
    _, user, _ = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    if user not in (0, os.geteuid()):
        raise Unavailable(f"user {user} may not ask this; allowed: the collector's own user, and root")


def _send(connection: socket.socket, message: Mapping[str, Any]) -> None:
    connection.sendall(msgspec.json.encode(message) + b"\n")


@contextlib.contextmanager
def _short(folder: Path) -> Iterator[str]:
    """The socket's address: as short as the system wants it, however long the folder's path is."""
    handle = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{handle}/{SOCKET}"
    finally:
        os.close(handle)


def ask(folder: Path, name: str, options: Mapping[str, Any], progress: Progress) -> Answer:
    """Have the process that holds a folder do work.

    Raises:
        Refused: it could not be asked, or did not do it; the message says why.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            with _short(folder) as address:
                connection.connect(address)
            _send(connection, {"do": name, "options": options})
            with connection.makefile("rb") as lines:
                for line in lines:
                    message = msgspec.json.decode(line)
                    if "result" in message:
                        return dict(message["result"])
                    if "problem" in message:
                        raise Refused(message["problem"])
                    progress(message["doing"], message["done_ratio"])
        except OSError as problem:
            raise Refused(f"the process that holds {folder} cannot be asked: {problem}") from problem
    raise Refused(f"the process that holds {folder} ended before it was done")
