"""What was declared of GPUs and nodes over time: maintenance, faults, spares."""

from collections.abc import Iterable, Mapping
from typing import Literal

import numpy as np

from flopwatch_collector.model import Columns, Gpu

State = Literal["maintenance", "faulty", "spare", "stranded"]
"""``stranded``: the scheduler cannot give out a GPU because the CPU or memory beside it is taken."""
Interval = tuple[int, int, int]
"""(GPU, start, end), milliseconds."""
_BEGINS: Mapping[tuple[str, str], State] = {
    ("maintenance", "begin"): "maintenance", ("spare", "begin"): "spare", ("health", "faulty"): "faulty",
    ("drain", "begin"): "faulty", ("stranded", "begin"): "stranded",
}  # fmt: skip
_ENDS: Mapping[tuple[str, str], State] = {
    ("maintenance", "end"): "maintenance", ("spare", "end"): "spare", ("health", "ok"): "faulty",
    ("drain", "end"): "faulty", ("stranded", "end"): "stranded",
}  # fmt: skip
BROKEN = frozenset({"lost", "reset_required"})
"""States of a GPU that answer for themselves: it is out of order."""


def declared(
    events: Columns, gpus: Mapping[int, Gpu], span: tuple[int, int], silent_since: Mapping[int, float]
) -> dict[State, list[Interval]]:
    """Intervals of each state by GPU, disjoint and in order; a state of a node is that of all its GPUs.

    ``silent_since`` gives, for GPUs out of order now, the time of their newest sample.
    """
    by_node: dict[int, list[int]] = {}
    for gpu in gpus.values():
        by_node.setdefault(gpu.node, []).append(gpu.number)
    marks: dict[State, dict[int, list[tuple[int, int]]]] = {
        "maintenance": {}, "faulty": {}, "spare": {}, "stranded": {},
    }  # fmt: skip
    for row in np.argsort(events["ts"], kind="stable"):
        key = (str(events["kind"][row]), str(events["value"][row]))
        state, step = _BEGINS.get(key), 1
        if state is None:
            state, step = _ENDS.get(key), -1
        if state is None:
            continue
        own = int(np.nan_to_num(events["gpu"][row]))
        targets: Iterable[int] = [own] if own else by_node.get(int(np.nan_to_num(events["node"][row])), ())
        for number in targets:
            marks[state].setdefault(number, []).append((round(float(events["ts"][row]) * 1000.0), step))
    for number, since in silent_since.items():
        marks["faulty"].setdefault(number, []).append((round(since * 1000.0), 1))
    return {state: _intervals(by_gpu, span) for state, by_gpu in marks.items()}


def _intervals(by_gpu: Mapping[int, list[tuple[int, int]]], span: tuple[int, int]) -> list[Interval]:
    result = []
    for gpu, marks in sorted(by_gpu.items()):
        since: int | None = None
        for time, step in [*sorted(marks), (span[1], -1)]:
            if step > 0 and since is None:
                since = time
            elif step < 0 and since is not None:
                start, end = max(since, span[0]), min(time, span[1])
                if end > start:
                    result.append((gpu, start, end))
                since = None
    return result
