"""The Unix socket that ``StepReporter`` sends to. Who sent a datagram is the kernel's word, not the sender's."""

import contextlib
import logging
import os
import socket
import stat
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

logger = logging.getLogger(__name__)

CREDENTIALS = struct.Struct("3i")
MAX_MESSAGE_BYTES = 16_384
MESSAGES_A_SECOND = 200.0
BURST = 1000.0
MAX_PEERS = 1024
MAX_WAITING = 20_000


@dataclass(frozen=True, slots=True)
class Datagram:
    """One message and its sender."""

    pid: int
    uid: int
    body: bytes


@dataclass(slots=True)
class Allowance:
    """A token bucket: how much a peer may still send."""

    left: float = BURST
    at: float = field(default_factory=time.monotonic)

    def take(self, moment: float) -> bool:
        """Whether one more message is allowed now."""
        self.left = min(BURST, self.left + (moment - self.at) * MESSAGES_A_SECOND)
        self.at = moment
        if self.left < 1.0:
            return False
        self.left -= 1.0
        return True


class SdkSocket:
    """Listens in a thread; messages wait, bounded, until they are taken.

    Raises:
        OSError: the socket cannot be made at its path.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.refused_by_rate = 0
        self.refused_by_size = 0
        self.overflowed = 0
        self.on_stranger: Callable[[], None] = nobody_cares
        """Called with the first message of a process: one of an instant must be looked at while it lives."""
        self._waiting: deque[Datagram] = deque()
        self._allowances: dict[int, Allowance] = {}
        self._socket = bound(path)
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="sdk-socket", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def stop(self) -> None:
        """End, and remove the socket's file."""
        self._stopped = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(2.0)
        self._socket.close()
        self.path.unlink(missing_ok=True)

    def take(self) -> list[Datagram]:
        """The messages since the last call, oldest first."""
        return [self._waiting.popleft() for _ in range(len(self._waiting))]

    def _run(self) -> None:
        while not self._stopped:
            try:
                body, ancillary, flags, _ = self._socket.recvmsg(
                    MAX_MESSAGE_BYTES, socket.CMSG_SPACE(CREDENTIALS.size)
                )
            except OSError as error:
                if not self._stopped:
                    logger.warning("the SDK socket %s failed: %s", self.path, error)
                return
            if not ancillary and self._stopped:
                return
            self._accept(body, ancillary, truncated=bool(flags & socket.MSG_TRUNC))

    def _accept(self, body: bytes, ancillary: list[tuple[int, int, bytes]], *, truncated: bool) -> None:
        if truncated:
            self.refused_by_size += 1
            return
        sender = next((data for _, kind, data in ancillary if kind == socket.SCM_CREDENTIALS), None)
        if sender is None or len(sender) < CREDENTIALS.size:
            return
        pid, uid, _ = CREDENTIALS.unpack(sender[: CREDENTIALS.size])
        if len(self._allowances) > MAX_PEERS:
            self._allowances.clear()
        is_new = pid not in self._allowances
        if not self._allowances.setdefault(pid, Allowance()).take(time.monotonic()):
            self.refused_by_rate += 1
            return
        if len(self._waiting) >= MAX_WAITING:
            self._waiting.popleft()
            self.overflowed += 1
        self._waiting.append(Datagram(pid, uid, body))
        if is_new:
            self.on_stranger()


def nobody_cares() -> None:
    """What happens at a process's first message where nobody asked."""


def bound(path: Path) -> socket.socket:
    """A datagram socket at a path that every user may send to; a socket that a dead agent left there is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and stat.S_ISSOCK(path.lstat().st_mode):
        if answers(path):
            raise FileExistsError(f"{path} is in use by another agent")
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        listener.bind(str(path))
        os.chmod(path, 0o666)  # noqa: PTH101, S103 - jobs of every user report here; the kernel names the sender
    except OSError:
        listener.close()
        raise
    return listener


def answers(path: Path) -> bool:
    """Whether a live process holds the socket."""
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
    try:
        probe.connect(str(path))
    except OSError:
        return False
    finally:
        probe.close()
    return True
