"""Prometheus endpoints of trainers: found by the job's arguments, or named by ``agent.trainer_endpoints``.

An endpoint on this node belongs to the job whose process listens there; a port is never asked that no process of a job
listens on in the agent's own network, and never one that was not named as an endpoint: a rendezvous store that is sent
HTTP may end the job. A configured endpoint on another machine is a job of its own while it answers.
"""

import dataclasses
import os
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

from flopwatch.wire import JobSighting
from flopwatch_agent.attribution import safe_name
from flopwatch_agent.endpoint_stream import EndpointStream
from flopwatch_agent.procfs import Procfs
from flopwatch_agent.source import ObservedJob

SCRAPE_SECONDS = 10.0
LIVE_SECONDS = 1800.0
LISTENING = "0A"
LOOPBACK = frozenset(("127.0.0.1", "localhost", "::1"))
MAX_ENDPOINTS = 32
MAX_DESCRIPTORS = 1024


class TrainerEndpoints:
    """The endpoints that are read, in a thread of their own."""

    def __init__(
        self, urls: tuple[str, ...], procfs: Procfs, node: str, every: float = SCRAPE_SECONDS
    ) -> None:
        self._procfs, self._node, self._every = procfs, node, every
        self._here = tuple(url for url in urls if is_here(url))
        self._elsewhere = tuple(url for url in urls if not is_here(url))
        self._streams: dict[str, EndpointStream] = {}
        self._jobs: dict[str, ObservedJob] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="endpoints", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """End after the present page."""
        self._stop.set()

    def of_job(self, job: ObservedJob, now: float) -> tuple[EndpointStream, ...]:
        """The endpoints of a live job."""
        if job.sighting.ref in self._jobs:
            urls: tuple[str, ...] = (job.sighting.ref.removeprefix("endpoint:"),)
        else:
            urls = tuple(dict.fromkeys((*self._here, *map(local_url, job.metrics_ports))))
            urls = tuple(url for url in urls if self._listens(job, port_of(url))) if urls else ()
        return tuple(stream for url in urls if (stream := self._stream(url, now)) is not None)

    def alone(self, now: float) -> tuple[tuple[ObservedJob, ...], tuple[ObservedJob, ...]]:
        """(jobs that stand for an endpoint elsewhere that answers, those that ended since the last call)."""
        live = {}
        for url in self._elsewhere:
            stream = self._stream(url, now)
            answered = None if stream is None else stream.answered_seconds
            if answered is not None and now - answered < LIVE_SECONDS:
                live[f"endpoint:{url}"] = single(url)
        ended = [
            dataclasses.replace(
                job, sighting=dataclasses.replace(job.sighting, end_time_seconds=now), ended=True
            )
            for ref, job in self._jobs.items()
            if ref not in live
        ]
        self._jobs = live
        return tuple(live.values()), tuple(ended)

    def scrape(self, now: float) -> None:
        """Read every page once."""
        for stream in list(self._streams.values()):
            if not stream.closed and not self._stop.is_set():
                stream.scrape(now)

    def _run(self) -> None:
        while not self._stop.wait(self._every):
            self.scrape(time.time())

    def _stream(self, url: str, now: float) -> EndpointStream | None:
        """The stream of an address; a new one after it was let go."""
        known = self._streams.get(url)
        if known is None or known.closed:
            if known is None and len(self._streams) >= MAX_ENDPOINTS:
                self._streams = {key: item for key, item in self._streams.items() if not item.closed}
                if len(self._streams) >= MAX_ENDPOINTS:
                    return None
            known = self._streams[url] = EndpointStream(url, self._node, now)
        return known

    def _listens(self, job: ObservedJob, port: int) -> bool:
        """Whether a process of the job listens on a port of the network that the agent is in."""
        for process in job.processes:
            if self._procfs.tree.link(f"{process.pid}/ns/net") != self._procfs.tree.link("self/ns/net"):
                continue
            sockets = set(self._listening(process.pid, port))
            if sockets and sockets & self._open_sockets(process.pid):
                return True
        return False

    def _listening(self, pid: int, port: int) -> Iterator[str]:
        """Names of the sockets that listen on a port, as ``/proc/PID/fd`` has them."""
        ending = f":{port:04X}"
        for table in ("tcp", "tcp6"):
            for line in (self._procfs.tree.text(f"{pid}/net/{table}") or "").splitlines()[1:]:
                fields = line.split()
                if len(fields) > 9 and fields[3] == LISTENING and fields[1].endswith(ending):
                    yield f"socket:[{fields[9]}]"

    def _open_sockets(self, pid: int) -> set[str]:
        names = self._procfs.tree.names(f"{pid}/fd")[:MAX_DESCRIPTORS]
        return {self._procfs.tree.link(f"{pid}/fd/{name}") or "" for name in names}


def is_here(url: str) -> bool:
    """Whether an address is of this node."""
    host = urlsplit(url).hostname or ""
    return host in LOOPBACK or host == os.uname().nodename


def local_url(port: int) -> str:
    """Where a trainer on this node serves its metrics."""
    return f"http://127.0.0.1:{port}/metrics"


def port_of(url: str) -> int:
    """The port of an address."""
    return urlsplit(url).port or 80


def single(url: str) -> ObservedJob:
    """The job that an endpoint elsewhere stands for."""
    parts = urlsplit(url)
    name = safe_name(f"{parts.hostname}-{port_of(url)}") or "endpoint"
    return ObservedJob(sighting=JobSighting(ref=f"endpoint:{url}", name=name))
