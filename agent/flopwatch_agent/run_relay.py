"""The command of ``flopwatch run``: started, its output passed on byte for byte and kept, its signals and status.

Standard input and the controlling terminal stay the command's own. Where this process writes to a terminal the
command gets one too; newlines are translated once, by the real one.
"""

import contextlib
import errno
import fcntl
import os
import resource
import select
import signal
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

FORWARDED = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
)
FROM_KERNEL = 0x80
"""``si_code`` of a signal that the terminal sent to the whole group, so that the command has it already."""
CHUNK_BYTES = 65_536
QUIET_SECONDS = 1.0
"""A process that outlives the command may hold its output open: so long without a byte is its end."""


@dataclass(slots=True)
class Stream:
    """One way out of the command: a pipe or a terminal, where it is passed on to, and the file that keeps it."""

    reader: int
    writer: int
    target: int | None
    """Where it is passed on to; None when nobody takes it."""
    log: int | None
    """The file; None when it cannot be written."""
    path: Path
    numbers: tuple[int, ...]
    """Descriptors of the command that write to it."""
    is_terminal: bool = False
    last_seconds: float = 0.0


def opened(folder: Path, stem: str) -> tuple[Stream, ...]:
    """Both outputs; one stream for both where they go to the same place, so that their order is kept.

    Raises:
        OSError: a file in the folder, a pipe or a terminal cannot be made.
    """
    same = os.path.sameopenfile(1, 2)
    if same:
        return (stream(folder / f"{stem}.log", (1, 2)),)
    return (stream(folder / f"{stem}.out.log", (1,)), stream(folder / f"{stem}.err.log", (2,)))


def stream(path: Path, numbers: tuple[int, ...]) -> Stream:
    """A pipe, or a terminal where this process has one."""
    terminal = os.isatty(numbers[0])
    reader, writer = raw_terminal(numbers[0]) if terminal else os.pipe()
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    return Stream(
        reader=reader,
        writer=writer,
        target=numbers[0],
        log=log,
        path=path,
        numbers=numbers,
        is_terminal=terminal,
    )


def raw_terminal(like: int) -> tuple[int, int]:
    """A pseudo-terminal of the same size that changes no byte."""
    controller, terminal = os.openpty()
    attributes = termios.tcgetattr(terminal)
    attributes[1] &= ~termios.OPOST
    termios.tcsetattr(terminal, termios.TCSANOW, attributes)
    resize(like, controller)
    return controller, terminal


def resize(source: int, target: int) -> None:
    """Give a terminal the size of another."""
    with contextlib.suppress(OSError):
        size = fcntl.ioctl(source, termios.TIOCGWINSZ, b"\0" * 8)
        fcntl.ioctl(target, termios.TIOCSWINSZ, size)


def copy(one: Stream, broken: Callable[[Stream], object]) -> None:
    """Pass on and keep everything until all writers are gone; ``broken`` when nobody takes it any more."""
    while True:
        try:
            data = os.read(one.reader, CHUNK_BYTES)
        except OSError as error:
            if error.errno != errno.EIO:  # a terminal without writers
                raise
            return
        if not data:
            return
        one.last_seconds = time.monotonic()
        keep(one, data)
        if one.target is not None and not passed_on(one.target, data):
            one.target = None
            broken(one)
            return


def keep(one: Stream, data: bytes) -> None:
    """Write to the file; a full disk ends the file, never the command."""
    if one.log is None:
        return
    try:
        write_all(one.log, data)
    except OSError as error:
        os.close(one.log)
        one.log = None
        note(f"{one.path} holds no more of the output: {error.strerror}")


def passed_on(target: int, data: bytes) -> bool:
    """Whether the reader of this process's own output took it."""
    try:
        write_all(target, data)
    except OSError:
        return False
    return True


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte, however slowly they are taken."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:
            select.select([], [descriptor], [])


def note(text: str) -> None:
    """One line for people, beside the command's own output; lost where nobody takes it."""
    with contextlib.suppress(OSError):
        write_all(2, f"flopwatch run: {text}\n".encode())


def block() -> set[signal.Signals]:
    """Hold back the signals that are for the command; returns the mask as it was."""
    return {signal.Signals(item) for item in signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)}


def spawn(
    argv: tuple[str, ...], environ: dict[str, str], streams: Iterable[Stream], mask: set[signal.Signals]
) -> int:
    """Start the command; returns its pid.

    Raises:
        OSError: it is not there, or may not be run.
    """
    actions = [(os.POSIX_SPAWN_DUP2, one.writer, number) for one in streams for number in one.numbers]
    python_ignores = [signal.SIGPIPE, signal.SIGXFSZ]
    return os.posix_spawnp(
        argv[0], argv, environ, file_actions=actions, setsigmask=mask, setsigdef=python_ignores
    )


class Relay:
    """Threads between the command and the outside; ``broken`` tells that a stream's reader is gone."""

    def __init__(self, pid: int, streams: tuple[Stream, ...], broken: Callable[[int], object]) -> None:
        self._pid = pid
        self._streams = streams
        self._broken = broken
        self._lock = threading.Lock()
        self._ended = False
        self._threads = [threading.Thread(target=self._copy, args=(one,), daemon=True) for one in streams]

    def run(self) -> int:
        """Relay until the command ends; returns its wait status."""
        for one in self._streams:
            os.close(one.writer)
        threading.Thread(target=self._forward, daemon=True).start()
        for thread in self._threads:
            thread.start()
        os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)
        with self._lock:
            self._ended = True
        _, status = os.waitpid(self._pid, 0)
        self._drain()
        return status

    def _copy(self, one: Stream) -> None:
        copy(one, self._close)

    def _close(self, one: Stream) -> None:
        """Nobody reads this stream any more: the command is to see that, as it would without us."""
        self._broken(self._streams.index(one))
        os.close(one.reader)

    def _drain(self) -> None:
        ended = time.monotonic()
        for thread, one in zip(self._threads, self._streams, strict=True):
            while thread.is_alive() and time.monotonic() - max(one.last_seconds, ended) < QUIET_SECONDS:
                thread.join(0.02)

    def _forward(self) -> None:
        while True:
            info = signal.sigwaitinfo(FORWARDED)
            if info.si_signo == signal.SIGWINCH:
                for one in self._streams:
                    if one.is_terminal:
                        resize(one.numbers[0], one.reader)
            if info.si_code == FROM_KERNEL:
                continue
            with self._lock:
                if not self._ended:
                    os.kill(self._pid, info.si_signo)


def exit_like(status: int) -> int:
    """The command's exit status; where a signal ended it, end by the same one."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return code
    sys.stdout.flush()
    number = -code
    with contextlib.suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    if os.WCOREDUMP(status):
        without_core()
    os.kill(os.getpid(), number)
    return 128 + number  # as the first process of a container nothing ends it


def without_core() -> None:
    """The command's core dump is the one that matters."""
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
