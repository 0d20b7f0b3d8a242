"""One run: a collector's process, a generator's process, both watched, and the store counted afterwards."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.bench.load.clock import FleetClock
from tests.bench.load.rivals import Rival
from tests.bench.load.watching import Watch

ROOT = Path(__file__).resolve().parents[3]
READY_SECONDS = 60.0
HOUR = 3_600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """What is run."""

    gpus: int
    seconds: float
    """Of the fleet's time."""
    speed: float = 1.0
    warm_seconds: float = 20.0
    """Of the fleet's time, not measured: every node is new then."""
    keep_alive: bool = True
    gzip_level: int = 6
    late_ratio: float = 0.01
    repeat_ratio: float = 0.01
    job_seconds: float = 1_800.0
    hour_after_seconds: float = 60.0
    """The fleet's clock begins so long before a full hour."""
    watch_seconds: float = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What came of it."""

    load: Load
    clock: FleetClock
    begin_seconds: float
    generator: dict[str, Any]
    watch: Watch
    names: dict[int, str]
    """Threads of the system by their names in the collector."""
    wall: tuple[float, float]
    """When measuring began and ended."""


def run(load: Load, folder: Path) -> Outcome:
    """Start both processes, wait for the end of the load, stop the collector."""
    clock = clock_of(load)
    folder.mkdir(parents=True, exist_ok=True)
    with serving(clock, folder) as (process, port):
        watch = Watch(process.pid, folder / "data", load.watch_seconds)
        outcome = under_load(load, clock, Target(port=port, folder=folder), watch)
        watch.stop()
        return replace(outcome, names=_names(folder))


def run_against(rival: Rival, load: Load) -> Outcome:
    """The same against another server, which takes remote writes."""
    watch = Watch(rival.process.pid, None, load.watch_seconds)
    outcome = under_load(
        load, clock_of(load), Target(port=rival.port, folder=rival.folder, remote_write=True), watch
    )
    watch.stop()
    return outcome


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """Whom the generator sends to, and where its log goes."""

    port: int
    folder: Path
    remote_write: bool = False


def under_load(load: Load, clock: FleetClock, target: Target, watch: Watch) -> Outcome:
    """Run the generator to its end."""
    begin = clock.now() + load.speed
    generator = json.loads(_generate(load, clock, begin, target))
    end = time.time()
    if load.speed == 1.0:
        end = min(end, _wall(clock, begin + load.seconds))
    return Outcome(
        load=load,
        clock=clock,
        begin_seconds=begin,
        generator=generator,
        watch=watch,
        names={},
        wall=(_wall(clock, begin + load.warm_seconds), end),
    )


def clock_of(load: Load) -> FleetClock:
    """A clock that begins as long before a full hour as the load says."""
    hour = (time.time() // HOUR) * HOUR
    return FleetClock(
        start_seconds=hour - load.hour_after_seconds, wall_start_seconds=time.time(), speed=load.speed
    )


def _wall(clock: FleetClock, fleet_seconds: float) -> float:
    return clock.wall_start_seconds + (fleet_seconds - clock.start_seconds) / clock.speed


def _names(folder: Path) -> dict[int, str]:
    return {int(key): name for key, name in json.loads((folder / "threads.json").read_text()).items()}


@contextlib.contextmanager
def serving(clock: FleetClock, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A collector that takes requests on the port; stopped at the end."""
    with (folder / "collector.log").open("ab") as log:
        process = subprocess.Popen(
            [
                sys.executable, "-m", "tests.bench.load.serving", "--folder", str(folder),
                "--start", repr(clock.start_seconds), "--wall-start", repr(clock.wall_start_seconds),
                "--speed", repr(clock.speed),
            ],
            cwd=ROOT, env=os.environ, stderr=log,
        )  # fmt: skip
    try:
        yield process, _port(process, folder)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _port(process: subprocess.Popen[bytes], folder: Path) -> int:
    path, deadline = folder / "port", time.monotonic() + READY_SECONDS
    while not path.exists() or not path.read_text() or not (folder / "threads.json").exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(
                f"the collector did not start: {(folder / 'collector.log').read_text()[-2000:]}"
            )
        time.sleep(0.05)
    return int(path.read_text())


def _generate(load: Load, clock: FleetClock, begin: float, target: Target) -> bytes:
    command = [
        sys.executable, "-m", "tests.bench.load.generator", "--port", str(target.port), "--gpus", str(load.gpus),
        "--seconds", repr(load.seconds), "--start", repr(clock.start_seconds),
        "--wall-start", repr(clock.wall_start_seconds), "--begin", repr(begin), "--speed", repr(load.speed),
        "--keep-alive" if load.keep_alive else "--no-keep-alive", "--gzip-level", str(load.gzip_level),
        "--late-ratio", repr(load.late_ratio), "--repeat-ratio", repr(load.repeat_ratio),
        "--job-seconds", repr(load.job_seconds), *(["--remote-write"] if target.remote_write else []),
    ]  # fmt: skip
    limit = clock.wall_seconds(load.seconds) * 3 + 300
    log = target.folder / "generator.log"
    with log.open("ab") as errors:
        done = subprocess.run(
            command, check=False, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, timeout=limit
        )
    if done.returncode:
        raise RuntimeError(f"the load generator failed: {log.read_text()[-2000:]}")
    return done.stdout
