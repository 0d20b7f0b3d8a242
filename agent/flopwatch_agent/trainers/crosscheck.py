"""Holds printed step times against the time stamps of their lines, and names the factor between them."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

ENOUGH_ROWS = 10
SHORTEST_SECONDS = 20.0
"""Time stamps often show whole seconds: less time than this proves nothing."""
NEAR = 0.08
"""A factor fits when the ratio is so near to it."""
DOUBT_RATIO = 1.5
"""From this ratio on, without a known factor, the two are said to differ."""


@dataclass(kw_only=True, slots=True)
class CrossCheck:
    """The latest rows of a session: seconds between their lines, and seconds they claim."""

    rows: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=ENOUGH_ROWS))
    factor: float | None = None
    """Once found it holds for the session."""
    name: str | None = None

    def add(self, *, observed_seconds: float, claimed_seconds: float) -> None:
        """Add a row without evaluation or checkpoint before it."""
        self.rows.append((observed_seconds, claimed_seconds))

    def ratio(self) -> float | None:
        """Observed over claimed time, once there is enough of both and both halves agree."""
        observed = sum(row[0] for row in self.rows)
        claimed = sum(row[1] for row in self.rows)
        if len(self.rows) < ENOUGH_ROWS or observed < SHORTEST_SECONDS or claimed <= 0:
            return None
        half = list(self.rows)[: ENOUGH_ROWS // 2]
        first = sum(row[0] for row in half) / max(sum(row[1] for row in half), 1e-12)
        whole = observed / claimed
        return whole if abs(first / whole - 1.0) <= NEAR else None

    def settle(self, factors: Mapping[str, float]) -> float | None:
        """The factor by which claimed times are wrong: when exactly one known value fits, else ``None``."""
        ratio = self.ratio()
        if self.factor is not None or ratio is None:
            return self.factor
        fitting = {
            name: value for name, value in factors.items() if value != 1 and abs(ratio / value - 1.0) <= NEAR
        }
        if len(set(fitting.values())) == 1:
            self.name, self.factor = next(iter(fitting.items()))
        return self.factor


def known_factors(facts: Mapping[str, object]) -> dict[str, float]:
    """What a step time is known to be wrong by: units, and sizes that were multiplied or forgotten."""
    factors = {"milliseconds taken for seconds": 1e-3, "seconds taken for milliseconds": 1e3}
    for fact, words in (
        ("log_interval", "log interval"),
        ("gradient_accumulation_steps", "gradient accumulation steps"),
        ("world_size", "world size"),
        ("tensor_parallel", "tensor-parallel size"),
    ):
        value = facts.get(fact)
        if isinstance(value, int) and value > 1:
            factors[words] = float(value)
            factors[f"1 / {words}"] = 1.0 / value
    return factors
