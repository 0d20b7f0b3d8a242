"""The nodes: their numbers, their clocks, and when they were seen."""

from collections.abc import Mapping
from dataclasses import replace

from flopwatch.wire import Batch
from flopwatch_collector.ingest.place import OLDEST_SECONDS, Place, clock_offset
from flopwatch_collector.ingest.table import TOUCH_SECONDS, Table, next_number
from flopwatch_collector.model import Node


class Nodes:
    """The record of every node. Not safe for threads."""

    def __init__(self, table: Table[int, Node]) -> None:
        self._table = table
        self._numbers = {(node.cluster, node.name): node.number for node in table.records.values()}
        self._saved = {node.number: node.last_seen_seconds for node in table.records.values()}

    def learn(self, nodes: Mapping[int, Node]) -> None:
        """Take over what another collector saved."""
        self._table.learn(nodes)
        for node in nodes.values():
            self._numbers[node.cluster, node.name] = node.number
            self._saved[node.number] = node.last_seen_seconds

    def place(self, batch: Batch, received_at: float, sent_at: float | None) -> Place:
        """Where and when the batch was made; the node's record is brought up to date."""
        offset = clock_offset(batch.sampled_at_seconds, received_at, sent_at)
        first = min((sample.time_seconds for sample in batch.gpu_samples), default=batch.sampled_at_seconds)
        time = max(batch.sampled_at_seconds + offset, 0.0)
        number = self._numbers.get((batch.cluster, batch.node))
        place = Place(
            cluster=batch.cluster,
            node=next_number(self._table) if number is None else number,
            node_name=batch.node,
            time_seconds=time,
            first_seconds=max(min(first + offset, time), time - OLDEST_SECONDS, 0.0),
            received_seconds=received_at,
            offset_seconds=offset,
            interval_seconds=batch.interval_seconds,
            told=batch.reporter == "scheduler",
        )
        self._numbers[batch.cluster, batch.node] = place.node
        self._put(place, batch)
        return place

    def _put(self, place: Place, batch: Batch) -> None:
        if place.told and place.node in self._table.records:
            return
        old = self._table.records.get(place.node) or Node(
            number=place.node,
            cluster=place.cluster,
            name=place.node_name,
            first_seen_seconds=place.first_seconds,
            last_seen_seconds=0.0,
            reported=False,
        )
        new = replace(
            old,
            first_seen_seconds=min(old.first_seen_seconds, place.first_seconds),
            last_seen_seconds=max(old.last_seen_seconds, place.time_seconds),
            reported=not place.told,
        )
        if place.time_seconds >= old.last_seen_seconds:
            new = _described(new, place, batch)
        saved = self._saved.get(place.node)
        matters = saved is None or replace(new, last_seen_seconds=old.last_seen_seconds) != old
        save = matters or new.last_seen_seconds - (saved or 0.0) >= TOUCH_SECONDS
        if save:
            self._saved[place.node] = new.last_seen_seconds
        self._table.put(place.node, new, save=save)


def _described(node: Node, place: Place, batch: Batch) -> Node:
    """The node with what its newest batch says."""
    moved = abs(place.offset_seconds - node.clock_offset_seconds) > 1.0
    node = replace(
        node,
        interval_seconds=place.interval_seconds,
        clock_offset_seconds=place.offset_seconds if moved else node.clock_offset_seconds,
    )
    facts = batch.node_facts
    if facts is None:
        return node
    return replace(
        node,
        machine_id=facts.machine_id or node.machine_id,
        nvml=facts.nvml,
        driver_version=facts.driver_version or node.driver_version,
        permission_gaps=facts.permission_gaps,
    )
