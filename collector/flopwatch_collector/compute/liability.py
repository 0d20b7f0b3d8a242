"""Whose loss an interruption is: the platform's, the user's, or not known."""

import re
from collections.abc import Collection

import numpy as np

from flopwatch.answers.goodput import Liability
from flopwatch_collector.compute.job_state import session_ends
from flopwatch_collector.compute.timeline import JobTimeline
from flopwatch_collector.model import Columns

APPLICATION_XIDS = frozenset({13, 31, 43, 45})
"""XIDs that a faulty kernel of the application raises too: they say nothing of the hardware."""
AROUND_SECONDS = 120.0
"""An event so long before the last progress, or until the end of the session, explains it."""
_PLATFORM = re.compile(
    r"preempt|node[ _-]?fail|boot[ _-]?fail|node[ _-]?lost|evict|node shutdown|hardware|xid|ecc error",
    re.IGNORECASE,
)
_USER = re.compile(
    r"cancel|time[ _-]?out|timelimit|time limit|deadline|out[ _-]?of[ _-]?memory|oom|keyboardinterrupt",
    re.IGNORECASE,
)


def liability_of_exit(reason: str | None) -> Liability:
    """By the reason that a scheduler or a launcher gave for the end of a session."""
    if not reason:
        return "unknown"
    if _PLATFORM.search(reason):
        return "platform"
    return "user" if _USER.search(reason) else "unknown"


def liable(
    timeline: JobTimeline, end: float, events: Columns, where: tuple[Collection[int], Collection[int]]
) -> dict[int, Liability]:
    """By session that ended otherwise than normally: whose loss that is, where it is known.

    ``where`` are the nodes and GPUs of the run. A reason that was told decides; else what happened to them.
    """
    result: dict[int, Liability] = {}
    for session, until in session_ends(timeline, end):
        told = liability_of_exit(session.exit_reason)
        if told == "unknown" and (session.failed or session.exit_reason is None):
            own = timeline.steps["ts"][timeline.steps["session"] == session.number]
            since = float(own.max()) if own.size else until
            told = liability_of_events(events, (min(since, until), until), *where)
        if told != "unknown":
            result[session.number] = told
    return result


def liability_of_events(
    events: Columns, span: tuple[float, float], nodes: Collection[int], gpus: Collection[int]
) -> Liability:
    """``platform`` where an XID, or a fault of a node or GPU of the run, lies around the time it stopped."""
    if not events["ts"].size:
        return "unknown"
    first, last = span[0] - AROUND_SECONDS, span[1]
    near = (events["ts"] >= first) & (events["ts"] <= last)
    gpu = np.nan_to_num(events["gpu"].astype(np.float64)).astype(np.int64)
    node = np.nan_to_num(events["node"].astype(np.float64)).astype(np.int64)
    own = np.isin(gpu, list(gpus)) | ((gpu == 0) & np.isin(node, list(nodes)))
    for row in np.flatnonzero(near & own):
        kind, value = str(events["kind"][row]), str(events["value"][row])
        code = events["code"][row]
        known = not np.isnan(float(code)) if code is not None else False
        if kind == "xid" and not (known and int(code) in APPLICATION_XIDS):
            return "platform"
        if kind == "health" and value == "faulty":
            return "platform"
    return "unknown"
