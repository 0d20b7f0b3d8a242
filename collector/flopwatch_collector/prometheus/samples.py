"""A sample of a series, and a book of which series there are, so that one that ends is marked stale."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from flopwatch.metrics import Metric

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """One value of one series."""

    metric: Metric
    values: tuple[str, ...]
    """Of the metric's labels, in their order; an empty text is no label."""
    value: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """One sample on the wire. ``value`` ``None`` is Prometheus's stale marker: the series ends here."""

    labels: Labels
    value: float | None
    time_milliseconds: int


def labels_of(reading: Reading, more: Mapping[str, str]) -> Labels:
    """The labels with the metric's name, sorted by name as remote write wants them; empty ones left out."""
    pairs = zip(reading.metric.labels, reading.values, strict=True)
    named = {**more, **{name: value for name, value in pairs if value}}
    return (("__name__", reading.metric.name), *sorted(named.items()))


class SeriesBook:
    """Makes samples of readings, strictly later each time, and ends series that are no longer there."""

    def __init__(self, more: Mapping[str, str]) -> None:
        self._more = dict(more)
        self._known: frozenset[Labels] = frozenset()
        self._last_milliseconds = 0

    def at(self, readings: Iterable[Reading], now: float) -> list[Sample]:
        """Samples of ``now``; none at all when the clock has not moved on since the last ones."""
        stamp = round(now * 1000)
        if stamp <= self._last_milliseconds:
            return []
        self._last_milliseconds = stamp
        values = {labels_of(reading, self._more): reading.value for reading in readings}
        ended = sorted(self._known - values.keys())
        self._known = frozenset(values)
        return [
            *(Sample(labels=labels, value=None, time_milliseconds=stamp) for labels in ended),
            *(
                Sample(labels=labels, value=value, time_milliseconds=stamp)
                for labels, value in values.items()
            ),
        ]
