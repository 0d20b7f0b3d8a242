"""The past of nodes, fleet and budgets as rehearsals of rules need it, from the ledger's windows and from events."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from flopwatch.query import Day
from flopwatch_collector.compute.buckets import CODE, WINDOW_SECONDS
from flopwatch_collector.compute.liability import APPLICATION_XIDS
from flopwatch_collector.model import Columns, FleetState
from flopwatch_collector.past import FleetMoment, GpuEvent, NodePast, NodeStretch, Past
from flopwatch_collector.views import fleet as fleet_view
from flopwatch_collector.views.past_samples import raw_past
from flopwatch_collector.views.sources import Sources
from flopwatch_collector.views.told_standing import STANDINGS, told
from flopwatch_collector.watched import BudgetHealth

PIECE_SECONDS = 21_600.0
"""Windows are read in pieces of less than a day, which are never kept by the day only."""
LOOKED_AT = ("FAULT", "UNKNOWN")
DECLARING = ("drain", "maintenance", "health")
DAY_SECONDS = 86_400.0
Budgets = Callable[[float], tuple[BudgetHealth, ...]]


def past_of(sources: Sources, days: tuple[Day, ...], budgets: Budgets, span: tuple[float, float]) -> Past:
    """What is kept of the span; ``days`` are those of the verdict, the last of them that of the end."""
    start, end = (edge // WINDOW_SECONDS * WINDOW_SECONDS for edge in span)
    state = sources.fleet.state()
    stretches = _stretches(sources, state, start, end)
    events = _xids(sources, state, start, end)
    raw = raw_past(sources.store, state, start, end)
    return Past(
        start_seconds=start,
        end_seconds=end,
        cluster=",".join(sorted({node.cluster for node in state.nodes.values()})),
        nodes=tuple(
            NodePast(
                cluster=state.nodes[number].cluster,
                node=state.nodes[number].name,
                gpus=sum(1 for gpu in state.gpus.values() if gpu.node == number and gpu.to_seconds is None),
                stretches=tuple(stretches.get(number, ())),
                events=tuple(events.get(number, ())),
                throttles=tuple(raw.throttles.get(number, ())),
                errors=tuple(raw.errors.get(number, ())),
            )
            for number in sorted(set(stretches) | set(events) | set(raw.throttles) | set(raw.errors))
            if number in state.nodes
        ),
        moments=tuple(_moments(sources, days, budgets, (start, end))),
        suspects=tuple(raw.suspects),
        known=True,
        raw_start_seconds=raw.start_seconds,
    )


def _stretches(
    sources: Sources, state: FleetState, start: float, end: float
) -> Mapping[int, list[NodeStretch]]:
    """By node: the times in which all its GPUs were in one of the buckets."""
    declared = _Declared(events=sources.store.events(0.0, end, DECLARING), state=state)
    found: dict[int, list[NodeStretch]] = {}
    begin = start
    while begin < end:
        until = min(end, begin + PIECE_SECONDS)
        rows = sources.accounting.ledger_rows(begin, until)
        for at, node, bucket in _whole(rows):
            out = bucket == "FAULT" and declared.out(node, at + WINDOW_SECONDS)
            _put(found.setdefault(node, []), NodeStretch(
                start_seconds=at, end_seconds=at + WINDOW_SECONDS, bucket=bucket, out=out
            ))  # fmt: skip
        begin = until
    return found


def _whole(rows: Columns) -> Iterator[tuple[float, int, str]]:
    """(window, node, bucket) where one of the buckets took all of a node's time, oldest first."""
    if not rows["ts"].size:
        return
    first, width = float(rows["ts"].min()), int(rows["node"].max()) + 1
    windows = np.rint((rows["ts"] - first) / WINDOW_SECONDS).astype(np.int64)
    keys, place = np.unique(windows * width + rows["node"], return_inverse=True)
    total = np.bincount(place, weights=rows["gpu_milliseconds"])
    for bucket in LOOKED_AT:
        own = np.where(rows["bucket"] == CODE[bucket], rows["gpu_milliseconds"], 0)
        amount = np.bincount(place, weights=own)
        for key in keys[(amount > 0) & (amount == total)].tolist():
            yield first + key // width * WINDOW_SECONDS, key % width, bucket


@dataclass(kw_only=True, slots=True)
class _Declared:
    """What pushed events said of nodes over time; each state of affairs is found once."""

    events: Columns
    state: FleetState
    _found: dict[int, Mapping[int, str]] = field(default_factory=dict)

    def out(self, node: int, at: float) -> bool:
        """Whether a node was out of service then."""
        count = int(np.searchsorted(self.events["ts"], at, side="right"))
        if count not in self._found:
            before = {name: values[:count] for name, values in self.events.items()}
            self._found[count] = told(before, self.state)
        return STANDINGS.get(self._found[count].get(node, "")) == "out"


def _put(stretches: list[NodeStretch], one: NodeStretch) -> None:
    """Add a window, to the newest stretch where it goes on."""
    last = stretches[-1] if stretches else None
    same = last is not None and (last.end_seconds, last.bucket, last.out) == (
        one.start_seconds, one.bucket, one.out,
    )  # fmt: skip
    if last is not None and same:
        one = NodeStretch(
            start_seconds=last.start_seconds, end_seconds=one.end_seconds, bucket=one.bucket, out=one.out
        )
        stretches.pop()
    stretches.append(one)


def _xids(sources: Sources, state: FleetState, start: float, end: float) -> Mapping[int, list[GpuEvent]]:
    events = sources.store.events(start, end, ("xid",))
    found: dict[int, list[GpuEvent]] = {}
    for row in range(events["ts"].size):
        gpu = state.gpus.get(int(np.nan_to_num(events["gpu"][row])))
        code = events["code"][row]
        if gpu is not None and np.isfinite(code) and int(code) not in APPLICATION_XIDS:
            one = GpuEvent(time_seconds=float(events["ts"][row]), gpu=gpu.uuid, code=int(code))
            found.setdefault(gpu.node, []).append(one)
    return found


def _moments(
    sources: Sources, days: tuple[Day, ...], budgets: Budgets, span: tuple[float, float]
) -> Iterator[FleetMoment]:
    """Once a day, and at the end: the verdict over the days until then, and the budgets."""
    back = min(len(days) - 1, int((span[1] - span[0]) // DAY_SECONDS))
    for ago in range(back, -1, -1):
        at = span[1] - ago * DAY_SECONDS
        known = days[: len(days) - ago]
        yield FleetMoment(
            time_seconds=at,
            verdict=fleet_view.verdict_of(sources, known) if known else None,
            budgets=budgets(at),
        )
