"""The load generator's process: a fleet pushes until its time is over; counts and waits as JSON on standard output."""

import argparse
import asyncio
import json
import random
import resource
import sys
import time
from dataclasses import dataclass, field

import uvloop
from tests.bench.load.clock import FleetClock
from tests.bench.load.fleet import Fleet, Made, Options
from tests.bench.load.remote_write import body_of
from tests.bench.load.sending import INGEST, REMOTE_WRITE, Answer, Connections, Target

MOST_IN_FLIGHT = 512
LATE_FLEET_SECONDS = (20.0, 90.0)
ATTEMPTS = 60


@dataclass(kw_only=True)
class Counts:
    """What was sent and what was answered."""

    made: int = 0
    acknowledged: int = 0
    gpu_rows: int = 0
    """Of acknowledged batches."""
    step_rows: int = 0
    samples: int = 0
    json_bytes: int = 0
    sent_bytes: int = 0
    repeats: int = 0
    repeats_known: int = 0
    """Repeats that were answered as duplicates."""
    wrongly_duplicate: int = 0
    retries: int = 0
    given_up: int = 0
    late: int = 0
    behind_seconds: float = 0.0
    """The most that a batch was sent after its time, because the generator could not keep up."""
    statuses: dict[int, int] = field(default_factory=dict)
    waits: list[tuple[float, float]] = field(default_factory=list)
    """(fleet seconds since the start, seconds from sending to the answer)."""
    unacknowledged: list[tuple[int, int]] = field(default_factory=list)
    refusal: str = ""
    """The last one that was for good."""


class Run:
    """One run against one collector."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._clock = FleetClock(
            start_seconds=arguments.start, wall_start_seconds=arguments.wall_start, speed=arguments.speed
        )
        self._target = Target(
            host=arguments.host,
            port=arguments.port,
            keep_alive=arguments.keep_alive,
            gzip_level=arguments.gzip_level,
            token=arguments.token,
            path=REMOTE_WRITE if arguments.remote_write else INGEST,
        )
        self._connections = Connections(self._target)
        self._random = random.Random(arguments.seed)  # noqa: S311 - which batches are late is no secret
        self._free = asyncio.Semaphore(MOST_IN_FLIGHT)
        self._busy: dict[int, asyncio.Lock] = {}
        self.counts = Counts()

    async def run(self) -> None:
        """Send until the fleet's time is over, then wait for what is under way."""
        options = Options(
            gpus=self._arguments.gpus, start_seconds=self._arguments.begin, seed=self._arguments.seed,
            job_seconds=self._arguments.job_seconds,
        )  # fmt: skip
        end = self._arguments.begin + self._arguments.seconds
        async with asyncio.TaskGroup() as tasks:
            for made in Fleet(options).batches():
                if made.at_seconds >= end:
                    break
                await self._until(made.at_seconds)
                await self._free.acquire()
                tasks.create_task(self._deliver(made))
        self._connections.close()

    async def _until(self, fleet_seconds: float) -> None:
        wait = self._clock.wall_seconds(fleet_seconds - self._clock.now())
        if wait > 0:
            await asyncio.sleep(wait)
            return
        self.counts.behind_seconds = max(self.counts.behind_seconds, -wait)
        if self.counts.made % 20 == 0:
            await asyncio.sleep(0)

    async def _deliver(self, made: Made) -> None:
        self.counts.made += 1
        packed = body_of(made) if self._arguments.remote_write else self._target.packed(made.body)
        if self._random.random() < self._arguments.late_ratio:
            self.counts.late += 1
            self._free.release()
            await asyncio.sleep(self._clock.wall_seconds(self._random.uniform(*LATE_FLEET_SECONDS)))
            await self._free.acquire()
        try:
            taken = await self._push(made, packed)
            if taken and self._random.random() < self._arguments.repeat_ratio:
                await self._repeat(made, packed)
        finally:
            self._free.release()

    async def _push(self, made: Made, packed: bytes) -> bool:
        """Whether the batch was acknowledged, as an agent tries: again after a refusal that asks for it."""
        counts = self.counts
        for attempt in range(ATTEMPTS):
            answer = await self._once(made, packed)
            if answer.status in (200, 204):
                counts.wrongly_duplicate += answer.duplicate and attempt == 0
                self._acknowledged(made, packed)
                return True
            if answer.status not in (0, 429, 503):
                counts.refusal = answer.body[:300].decode("utf-8", "replace")
                break
            counts.retries += 1
            await asyncio.sleep(answer.retry_after_seconds)
        counts.given_up += 1
        counts.unacknowledged.append((made.node, made.sequence))
        return False

    async def _repeat(self, made: Made, packed: bytes) -> None:
        answer = await self._once(made, packed)
        self.counts.repeats += 1
        self.counts.repeats_known += answer.status == 200 and answer.duplicate

    async def _once(self, made: Made, packed: bytes) -> Answer:
        # An agent sends one batch at a time.
        async with self._busy.setdefault(made.node, asyncio.Lock()):
            began = time.perf_counter()
            sent_at = self._clock.now() if self._arguments.speed == 1.0 else None
            answer = await self._connections.push(made.node, self._target.request(packed, sent_at))
            taken = time.perf_counter() - began
        statuses = self.counts.statuses
        statuses[answer.status] = statuses.get(answer.status, 0) + 1
        self.counts.waits.append((self._clock.now() - self._arguments.begin, taken))
        return answer

    def _acknowledged(self, made: Made, packed: bytes) -> None:
        counts = self.counts
        counts.acknowledged += 1
        counts.gpu_rows += made.gpu_rows
        counts.step_rows += made.step_rows
        counts.samples += made.samples
        counts.json_bytes += len(made.body)
        counts.sent_bytes += len(packed)

    def report(self) -> dict[str, object]:
        """Counts, with the generator's own cost."""
        usage = resource.getrusage(resource.RUSAGE_SELF)
        known = {name: getattr(self.counts, name) for name in Counts.__dataclass_fields__}
        return {
            **known,
            "connections": self._connections.opened,
            "cpu_seconds": usage.ru_utime + usage.ru_stime,
            "resident_bytes": usage.ru_maxrss * 1024,
        }


def parser() -> argparse.ArgumentParser:
    """Options of the process."""
    made = argparse.ArgumentParser(prog="python -m tests.bench.load.generator", description=__doc__)
    made.add_argument("--host", default="127.0.0.1")
    made.add_argument("--port", type=int, required=True)
    made.add_argument("--token")
    made.add_argument("--gpus", type=int, required=True)
    made.add_argument("--seconds", type=float, required=True, help="how much of the fleet's time")
    made.add_argument(
        "--start", type=float, required=True, help="epoch seconds of the fleet's clock at --wall-start"
    )
    made.add_argument("--wall-start", type=float, required=True, help="epoch seconds when that is")
    made.add_argument(
        "--begin", type=float, required=True, help="epoch seconds of the fleet's clock at the first batch"
    )
    made.add_argument("--speed", type=float, default=1.0)
    made.add_argument("--keep-alive", action=argparse.BooleanOptionalAction, default=True)
    made.add_argument("--gzip-level", type=int, default=6)
    made.add_argument("--late-ratio", type=float, default=0.01)
    made.add_argument("--repeat-ratio", type=float, default=0.01)
    made.add_argument("--job-seconds", type=float, default=1800.0)
    made.add_argument("--seed", type=int, default=7)
    made.add_argument(
        "--remote-write", action="store_true", help="send the same samples to a Prometheus instead"
    )
    return made


def main() -> int:
    """Run, and print the report."""
    run = Run(parser().parse_args())
    uvloop.run(run.run())
    json.dump(run.report(), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
