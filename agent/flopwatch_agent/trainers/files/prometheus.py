"""Pages of a trainer's Prometheus endpoint, one scrape after the other."""

import re

from flopwatch_agent.trainers.clocks import Stamp
from flopwatch_agent.trainers.engine import Engine
from flopwatch_agent.trainers.grammar import Grammar, anchor
from flopwatch_agent.trainers.numbers import NUMBER
from flopwatch_agent.trainers.reading import Origin

_SAMPLE = re.compile(rf"(\w+)(?:\{{[^}}]*\}})? ({NUMBER})(?: \d+)?$")
_SCRAPE = re.compile(rf"# scrape_time ({NUMBER})")
GAUGES = {
    "trainer_step": "step",
    "trainer_loss": "loss",
    "trainer_throughput_tokens_per_sec": "tokens_per_second",
    "trainer_last_step_timestamp_seconds": "fit_seconds",
    "trainer_mfu_percent": "mfu",
    "trainer_lr": "learning_rate",
}
"""The gauges of prime-rl and the quantities they are."""

PRIME_RL_GAUGES = Grammar(family="prime-rl", anchor=anchor(r"(?!)"), order=("between",))


class Prometheus:
    """A scrape is complete when a gauge comes again, or at a scrape mark."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._values: dict[str, float] = {}
        self._last_step: float | None = None

    def feed(self, block: bytes, arrived: float | None) -> None:
        """Take a block of whole lines."""
        for line in block.decode("utf-8", "replace").splitlines():
            if _SCRAPE.match(line):
                self._complete(arrived)
                continue
            found = _SAMPLE.match(line)
            name = GAUGES.get(found[1]) if found else None
            if found and name:
                if name in self._values:
                    self._complete(arrived)
                self._values[name] = float(found[2])

    def finish(self, arrived: float | None) -> None:
        """The last scrape is complete."""
        self._complete(arrived)

    def _complete(self, arrived: float | None) -> None:
        values, self._values = self._values, {}
        step = values.get("step")
        if step is None or step == self._last_step:
            return
        self._last_step = step
        at = values.get("fit_seconds")
        if "mfu" in values:
            values["mfu"] /= 100
        stamp = Stamp(seconds=at, dated=True, zoned=True) if at is not None else None
        self._engine.offer(
            PRIME_RL_GAUGES, values, family="prime-rl", origin=Origin(stamp=stamp, arrived_at_seconds=arrived)
        )
