"""``flopwatch tail FILE``: reads a trainer's log as the job's own user and hands its steps to the node's agent.

For file systems where the agent may not read what the user may. Nothing is lost while the agent is away: the file
is read no further than the agent has taken.
"""

import argparse
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from flopwatch.report import MAX_MESSAGE_BYTES, socket_candidates
from flopwatch_agent.attribution import pod_uid, slurm_job
from flopwatch_agent.log_file import LogFile, NotRegularError, identity_of
from flopwatch_agent.log_follow import Follower
from flopwatch_agent.log_formats import configured_formats
from flopwatch_agent.procfs import Procfs
from flopwatch_agent.sysfs import KernelTree
from flopwatch_agent.tail_messages import messages
from flopwatch_agent.trainers.reader import LogReader
from flopwatch_agent.trainers.rows import Output
from flopwatch_agent.trainers.userformat import UserFormat

POLL_SECONDS = 0.5
RETRY_SECONDS = 1.0
LAST_SECONDS = 10.0
"""How long the rest is offered to an agent that does not answer, once the job has ended."""
MESSAGE_SECONDS = 1 / 150
"""Pause after a message: an agent takes 200 a second of one sender."""
BYTES_A_POLL = 256 << 10
BIRTH_SLACK_SECONDS = 1.0
ALONE_SECONDS = 60.0
"""So long after the start other processes of the job may be still to come."""


@dataclass(slots=True)
class Tail:
    """One log on its way to the agent."""

    path: Path
    ended: Callable[[], bool]
    """Whether the job is over."""
    run_start_seconds: float
    whole_file: bool
    formats: tuple[UserFormat, ...] = ()
    """Step lines of in-house trainers."""
    stopped: threading.Event = field(default_factory=threading.Event)
    sender: socket.socket | None = None
    sent: int = 0
    dropped: int = 0

    def run(self) -> None:
        """Follow the file, and what takes its name after it, until the job ends.

        Raises:
            OSError: it cannot be read; ``NotRegularError``: it is no regular file.
        """
        first = True
        while (follower := self._opened(first=first)) is not None:
            first = False
            self._follow(follower)
            follower.file.close()
        if self.sender is not None:
            self.sender.close()

    def _opened(self, *, first: bool) -> Follower | None:
        """The file under its name, waited for; None when the job ended."""
        while not self._over():
            try:
                file = LogFile(self.path, str(self.path))
            except FileNotFoundError:
                self.stopped.wait(POLL_SECONDS)
                continue
            own = file.born_seconds is not None and (
                file.born_seconds >= self.run_start_seconds - BIRTH_SLACK_SECONDS
            )
            return Follower(
                file=file,
                job="",
                reader=LogReader(
                    utc_offset_seconds=float(time.localtime().tm_gmtoff), user_formats=self.formats
                ),
                run_start_seconds=self.run_start_seconds,
                history_end=0 if self.whole_file or own or not first else file.size_at_open,
            )
        return None

    def _follow(self, follower: Follower) -> None:
        """Send what the file brings until it is replaced or the job ends."""
        while True:
            last = self._over() or self._is_replaced(follower)
            output, taken = follower.poll(time.time(), BYTES_A_POLL)
            self._send(output, follower)
            if last and not taken:
                self._send(follower.finish(time.time()), follower)
                return
            if not taken:
                self.stopped.wait(POLL_SECONDS)

    def _over(self) -> bool:
        return self.stopped.is_set() or self.ended()

    def _is_replaced(self, follower: Follower) -> bool:
        """Whether another file has the name now, as after a rotation."""
        try:
            return identity_of(self.path.stat()) != follower.file.identity
        except OSError:
            return False

    def _send(self, output: Output, follower: Follower) -> None:
        for message in messages(output, follower.source_id or ""):
            body = json.dumps(message, separators=(",", ":")).encode()
            if len(body) > MAX_MESSAGE_BYTES or not self._delivered(body):
                self.dropped += 1
                continue
            self.sent += 1
            time.sleep(MESSAGE_SECONDS)

    def _delivered(self, body: bytes) -> bool:
        """Whether an agent took the message; waits for one, but not for long once the job has ended."""
        until: float | None = None
        while until is None or time.monotonic() < until:
            if until is None and self._over():
                until = time.monotonic() + LAST_SECONDS
            self.sender = self.sender or connected()
            if self.sender is not None:
                try:
                    self.sender.send(body)
                except OSError:
                    self.sender.close()
                    self.sender = None
                else:
                    return True
            time.sleep(RETRY_SECONDS)
        return False


def connected() -> socket.socket | None:
    """A connection to the agent's socket; None where none answers."""
    for path in socket_candidates(os.environ):
        made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        try:
            made.connect(path)
        except OSError:
            made.close()
            continue
        made.settimeout(RETRY_SECONDS)
        return made
    return None


def main(argv: list[str]) -> int:
    """Follow until the job ends; 0, or 2 when the file cannot be read."""
    options = _parser().parse_args(argv)
    formats = configured_formats(options.config, os.environ)
    procfs = Procfs(KernelTree(Path("/proc")))
    job = options.pid or os.getppid()
    process = procfs.process(job, time.time())
    tail = Tail(
        path=options.file,
        ended=_end_of(procfs, options.pid),
        run_start_seconds=time.time() if process is None else process.start_time_seconds,
        whole_file=options.all,
        formats=formats,
    )
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: tail.stopped.set())
    if connected() is None:
        looked = ", ".join(socket_candidates(os.environ))
        sys.stderr.write(f"flopwatch tail: no agent answers at {looked}; waiting for one\n")
    try:
        tail.run()
    except NotRegularError as error:
        sys.stderr.write(f"flopwatch tail: {error}; it was not read\n")
        return 2
    except OSError as error:
        sys.stderr.write(f"flopwatch tail: {options.file} cannot be read: {error.strerror or error}\n")
        return 2
    if tail.dropped:
        sys.stderr.write(f"flopwatch tail: {tail.dropped} messages were not taken by an agent\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="flopwatch tail", description=__doc__)
    parser.add_argument("file", type=Path, help="the log; it is waited for")
    parser.add_argument(
        "--pid", type=int, help="end with this process (default: with the job, else the parent)"
    )
    parser.add_argument(
        "--all", action="store_true", help="what stands in the file already is of this run too"
    )
    parser.add_argument(
        "--config", type=Path, help="settings file whose [[agent.log_format]] is used (default: the system's)"
    )
    return parser


def _end_of(procfs: Procfs, pid: int | None) -> Callable[[], bool]:
    """How the end of the job is known: a named process, the job's last process, or the parent."""
    if pid is not None:
        started = procfs.key(pid)
        return lambda: started is None or not is_alive(procfs, started)
    own = procfs.tree.text("self/cgroup") or ""
    if slurm_job(own) is not None or pod_uid(own) is not None:
        return LastOfGroup(procfs, own, os.getpid()).is_alone
    parent = os.getppid()
    return lambda: os.getppid() != parent


def is_alive(procfs: Procfs, key: tuple[int, int]) -> bool:
    """Whether that very process lives now."""
    procfs.forget_except(frozenset())
    return procfs.is_alive(*key)


class LastOfGroup:
    """Whether a process is the last of its control group: the rest of the job is gone."""

    def __init__(self, procfs: Procfs, cgroup: str, pid: int) -> None:
        self._procfs, self._cgroup, self._pid = procfs, cgroup, pid
        self._began = self._asked = time.monotonic()
        self._alone = False

    def is_alone(self) -> bool:
        """The answer as of the last few seconds; in the first minute other processes may be to come."""
        now = time.monotonic()
        if now - self._began > ALONE_SECONDS and now - self._asked > POLL_SECONDS * 10:
            self._asked = now
            self._alone = alone(self._procfs, self._cgroup, self._pid)
        return self._alone


def alone(procfs: Procfs, cgroup: str, pid: int) -> bool:
    """Whether no other live process is in the control group."""
    procfs.forget_except(frozenset())
    others = (other for other in procfs.pids() if other != pid and procfs.key(other) is not None)
    return all(procfs.tree.text(f"{other}/cgroup") != cgroup for other in others)
