"""How often a sender may ask: a token bucket each, of bounded number."""

from collections import OrderedDict
from dataclasses import dataclass

BURST_SECONDS = 10.0
MAX_SENDERS = 50_000


@dataclass(slots=True)
class _Bucket:
    level: float
    time_seconds: float


class RateLimit:
    """``rate_per_second`` on average, with bursts of ten seconds' worth, or of ``burst``."""

    def __init__(self, rate_per_second: float, burst: float | None = None) -> None:
        self._rate = rate_per_second
        self._burst = max(1.0, rate_per_second * BURST_SECONDS if burst is None else burst)
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def wait_seconds(self, sender: str, now: float, *, take: bool = True) -> float:
        """0 when the sender may ask now, and then it is counted; else how long it should wait."""
        bucket = self._buckets.get(sender)
        if bucket is None:
            bucket = self._buckets[sender] = _Bucket(self._burst, now)
            if len(self._buckets) > MAX_SENDERS:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(sender)
        passed = max(0.0, now - bucket.time_seconds)
        bucket.level = min(self._burst, bucket.level + passed * self._rate)
        bucket.time_seconds = now
        if bucket.level < 1.0:
            return (1.0 - bucket.level) / self._rate
        if take:
            bucket.level -= 1.0
        return 0.0
