"""``/api/v1/nodes``: which nodes there are, and what an operator declares of them."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from flopwatch_collector.api import bodies
from flopwatch_collector.api.access import Caller
from flopwatch_collector.api.errors import FieldProblem, Refused, documented
from flopwatch_collector.api.leases import Seconds
from flopwatch_collector.api.query import CallerNeed, each_once
from flopwatch_collector.ingest.decode import shorten, shown
from flopwatch_collector.model import FleetState, Gpu, Node
from flopwatch_collector.schedulers.declared import Declaration, Standing, Window
from flopwatch_collector.schedulers.node_states import NodeStates, gpus_named

SILENT_INTERVALS = 6.0
MOST_WINDOWS = 200
Text = Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]
NodeName = Annotated[str, Path(min_length=1, max_length=253)]


class DeclareBody(BaseModel):
    """What holds of a node, or of one of its GPUs; or, with ``end``, what no longer does."""

    model_config = ConfigDict(extra="forbid", strict=True)

    declaration: Literal["maintenance", "spare", "drain", "faulty"]
    end: bool = False
    """End what is declared, at ``from_seconds``."""
    cluster: Text | None = None
    """Only needed where several clusters have a node of this name."""
    gpu: Text | None = None
    """Slot, index or UUID; absent: the whole node."""
    from_seconds: Seconds | None = None
    """Absent: now."""
    until_seconds: Seconds | None = None
    """Absent: until it is ended."""
    reason: Text = ""


class StandingEntry(BaseModel):
    """Something that holds of a node or GPU."""

    declaration: Declaration
    gpu: str | None
    since_seconds: float
    until_seconds: float | None
    source: str
    text: str


class NodeEntry(BaseModel):
    """A node."""

    node: str
    cluster: str
    gpus: int
    """Slots with a GPU, seen or expected."""
    reporting: bool
    last_seen_seconds: float | None
    """None: no agent has ever reported."""
    states: list[StandingEntry]


class NodesAnswer(BaseModel):
    """All nodes."""

    nodes: list[NodeEntry]


class WindowEntry(BaseModel):
    """A declaration, and who made and ended it."""

    window_id: str
    declaration: Declaration
    cluster: str
    node: str
    gpu: str | None
    from_seconds: float
    until_seconds: float | None
    reason: str
    declared_by: str | None
    declared_seconds: float
    ended_by: str | None
    ended_seconds: float | None


class NodeAnswer(NodeEntry):
    """A node with the declarations of operators, the newest first."""

    windows: Annotated[list[WindowEntry], Field(max_length=MOST_WINDOWS)]


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeParts:
    """What the routes work with."""

    states: NodeStates
    state: Callable[[], FleetState]
    read: CallerNeed
    operate: CallerNeed
    clock: Callable[[], float] = time.time


def router(parts: NodeParts) -> APIRouter:
    """Nodes and their declarations."""
    api = APIRouter(tags=["nodes"], dependencies=[Depends(each_once)])
    refusals = (401, 403, 404, 409, 422, 429, 500, 503)

    @api.get(
        "/api/v1/nodes", dependencies=[Depends(parts.read)], responses=documented(401, 403, 422, 429, 500)
    )
    async def nodes() -> NodesAnswer:
        """Every node, and what holds of it."""
        state, now = parts.state(), parts.clock()
        standing = await asyncio.to_thread(parts.states.standing)
        known = sorted(state.nodes.values(), key=lambda node: (node.cluster, node.name))
        return NodesAnswer(nodes=[NodeEntry(**_entry(node, state, standing, now)) for node in known])

    @api.get("/api/v1/nodes/{node}", dependencies=[Depends(parts.read)], responses=documented(*refusals))
    async def node(node: NodeName, cluster: str | None = None) -> NodeAnswer:
        """One node, and who declared what of it."""
        return await asyncio.to_thread(_answer, parts, _found(parts.state(), node, cluster))

    @api.post(
        "/api/v1/nodes/{node}/declarations",
        responses=documented(400, *refusals, 413, 415),
        openapi_extra=bodies.schema(DeclareBody),
    )
    async def declare(
        node: NodeName, request: Request, caller: Annotated[Caller, Depends(parts.operate)]
    ) -> NodeAnswer:
        """Declare a node or GPU in maintenance, spare, drained or faulty, or end that."""
        body = await bodies.read(request, DeclareBody)
        known = _found(parts.state(), node, body.cluster)
        return await bodies.durably(_declare, parts, known, body, caller.name)

    return api


def _found(state: FleetState, name: str, cluster: str | None) -> Node:
    """The node of that name.

    Raises:
        Refused: 404: there is none; 409: several clusters have one.
    """
    found = [node for node in state.nodes.values() if node.name == name and cluster in (None, node.cluster)]
    if len(found) > 1:
        names = ", ".join(sorted(node.cluster for node in found))
        raise Refused(
            409, "ambiguous", f"several clusters have a node {shorten(repr(name))}: name one of {names}"
        )
    if not found:
        raise Refused(404, "not_found", f"there is no node {shorten(repr(name))}")
    return found[0]


def _declare(parts: NodeParts, node: Node, body: DeclareBody, by: str | None) -> NodeAnswer:
    """Keep a declaration, and tell the ledger at once.

    Raises:
        Refused: 422: a GPU or time that cannot be meant; 409: there is nothing to end.
        Unavailable: it cannot be made durable now.
    """
    now = parts.clock()
    start = now if body.from_seconds is None else body.from_seconds
    if body.until_seconds is not None and body.until_seconds <= start:
        raise bodies.invalid(
            FieldProblem(
                field="until_seconds", value=shown(body.until_seconds), allowed="later than from_seconds"
            )
        )
    gpu = None if body.gpu is None else _gpu(parts.state(), node, body.gpu)
    window = Window(
        window_id="",
        declaration=body.declaration,
        cluster=node.cluster,
        node=node.name,
        gpu=gpu,
        from_seconds=start,
        until_seconds=body.until_seconds,
        reason=body.reason,
        declared_by=by,
        declared_seconds=now,
    )
    if not body.end:
        parts.states.declare(window)
    elif not parts.states.end(window, now, by):
        raise Refused(409, "nothing_to_end", _nothing(parts.states.standing(), window))
    parts.states.turn(now)
    return _answer(parts, node)


def _nothing(standing: list[Standing], window: Window) -> str:
    others = [
        each
        for each in standing
        if (each.cluster, each.node) == (window.cluster, window.node) and each.source != "operator"
    ]
    said = "; ".join(f"{each.source} says {each.declaration} ({each.text})" for each in others)
    return f"no operator declared {window.declaration} of {window.node}" + (f": {said}" if said else "")


def _gpu(state: FleetState, node: Node, name: str) -> str:
    found = gpus_named(state, node.number, [name])
    if len(found) != 1:
        slots = ", ".join(gpu.slot for gpu in _present(state, node)) or "none"
        raise bodies.invalid(
            FieldProblem(field="gpu", value=shown(name), allowed=f"one GPU of {node.name}: {slots}")
        )
    return found[0].uuid


def _present(state: FleetState, node: Node) -> list[Gpu]:
    own = [gpu for gpu in state.gpus.values() if gpu.node == node.number and gpu.to_seconds is None]
    return sorted(own, key=lambda gpu: gpu.slot)


def _entry(node: Node, state: FleetState, standing: list[Standing], now: float) -> dict[str, Any]:
    seen = node.last_seen_seconds if node.last_seen_seconds > 0.0 and node.reported else None
    return {
        "node": node.name,
        "cluster": node.cluster,
        "gpus": len({gpu.slot for gpu in _present(state, node)}),
        "reporting": seen is not None and now - seen <= SILENT_INTERVALS * node.interval_seconds,
        "last_seen_seconds": seen,
        "states": [
            StandingEntry(
                declaration=each.declaration,
                gpu=each.gpu,
                since_seconds=each.since_seconds,
                until_seconds=each.until_seconds,
                source=each.source,
                text=each.text,
            )
            for each in standing
            if (each.cluster, each.node) == (node.cluster, node.name)
        ],
    }


def _answer(parts: NodeParts, node: Node) -> NodeAnswer:
    entry = _entry(node, parts.state(), parts.states.standing(), parts.clock())
    own = [each for each in parts.states.windows() if (each.cluster, each.node) == (node.cluster, node.name)]
    windows = [
        WindowEntry(**{name: getattr(each, name) for name in WindowEntry.model_fields})
        for each in own[:MOST_WINDOWS]
    ]
    return NodeAnswer(**entry, windows=windows)
