"""Network ports of a node: rates of the newest minute, the state of the link, errors that are new."""

import numpy as np

from flopwatch.answers.nodes import PortRow
from flopwatch_collector.compute.layout import take
from flopwatch_collector.model import Columns
from flopwatch_collector.store.port import Store

LOOK_SECONDS = 300.0
"""Ports that sent nothing for so long are not shown; errors are new that came within it."""
RATE_SECONDS = 60.0


def ports_of(store: Store, node: int, now: float) -> tuple[PortRow, ...]:
    """The ports by role and name: those that carry training first."""
    rows = store.port_samples(now - LOOK_SECONDS, now + RATE_SECONDS, [node])
    found = [port_row(take(rows, rows["port"] == name)) for name in sorted(set(rows["port"].tolist()))]
    order = ("rdma", "ethernet")
    return tuple(sorted(found, key=lambda row: (order.index(row.role) if row.role in order else 9, row.port)))


def port_row(rows: Columns) -> PortRow:
    """One port from its samples, oldest first."""
    recent = take(rows, rows["ts"] >= rows["ts"][-1] - RATE_SECONDS)
    link = _newest(rows["link_up"])
    return PortRow(
        port=str(rows["port"][-1]),
        role=str(rows["role"][-1]),
        transmit_bytes_per_second=rate(recent, "transmit_bytes"),
        receive_bytes_per_second=rate(recent, "receive_bytes"),
        link_up=None if link is None else link > 0,
        link_rate_bits_per_second=_newest(rows["link_rate_bits_per_second"]),
        errors=_whole(_newest(rows["errors"])),
        new_errors=_whole(grown(rows["errors"])),
        waits_per_second=rate(recent, "waits"),
    )


def rate(rows: Columns, name: str) -> float | None:
    """Growth of a counter a second; a counter that fell began anew, its gap counts for nothing."""
    known = np.isfinite(rows[name])
    values, times = rows[name][known], rows["ts"][known]
    steps, gaps = np.diff(values), np.diff(times)
    kept = (steps >= 0) & (gaps > 0)
    return float(steps[kept].sum() / gaps[kept].sum()) if kept.any() else None


def grown(values: np.typing.NDArray[np.float64]) -> float | None:
    """How much a counter grew, without falls; None with fewer than two values."""
    known = values[np.isfinite(values)]
    if known.size < 2:
        return None
    steps = np.diff(known)
    return float(steps[steps > 0].sum())


def _newest(values: np.typing.NDArray[np.float64]) -> float | None:
    known = values[np.isfinite(values)]
    return float(known[-1]) if known.size else None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
