"""A metric of MLflow's file store: ``timestamp_ms value step`` a line, one file a metric."""

import re

from flopwatch_agent.trainers.clocks import Stamp
from flopwatch_agent.trainers.engine import Engine
from flopwatch_agent.trainers.grammar import Grammar, anchor
from flopwatch_agent.trainers.numbers import NUMBER
from flopwatch_agent.trainers.reading import Origin

METRIC_LINE = re.compile(rf"(\d{{13}}) ({NUMBER}) (\d+)(?: \S.*)?$")
_MILLISECONDS_FROM = 300.0
"""A value this many times the time between two lines is in milliseconds."""

ITERATION_TIME = Grammar(family="MLflow", anchor=anchor(r"(?!)"), covers="one", pauses_outside=True)


class MetricFile:
    """Reads a file of step times. Its lines carry the value only: the unit follows from the time stamps."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._before: tuple[float, int] | None = None
        self._scale = 1.0

    def feed(self, block: bytes, arrived: float | None) -> None:
        """Take a block of whole lines."""
        for line in block.decode("utf-8", "replace").splitlines():
            found = METRIC_LINE.match(line)
            if found:
                self._take(int(found[1]) / 1_000, float(found[2].replace(",", "")), int(found[3]), arrived)

    def finish(self, arrived: float | None) -> None:
        """Nothing waits."""

    def _take(self, at: float, value: float, step: int, arrived: float | None) -> None:
        before, self._before = self._before, (at, step)
        if before is not None and step > before[1] and at > before[0]:
            between = (at - before[0]) / (step - before[1])
            self._scale = 1e-3 if value / between > _MILLISECONDS_FROM else 1.0
        stamp = Stamp(seconds=at, dated=True, zoned=True)
        values = {"step": float(step), "seconds": value * self._scale}
        origin = Origin(stamp=stamp, arrived_at_seconds=arrived)
        self._engine.offer(ITERATION_TIME, values, family="MLflow", origin=origin)
