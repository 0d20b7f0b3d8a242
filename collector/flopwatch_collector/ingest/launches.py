"""Launches of jobs, as their sources number them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from flopwatch.wire import SessionMark
from flopwatch_collector.ingest.place import Place
from flopwatch_collector.ingest.table import Table, next_number
from flopwatch_collector.model import SOURCE_KINDS, Launch

T = TypeVar("T")
LOG = SOURCE_KINDS.index("log")


class Launches:
    """The number of each launch: one a (job, source id, session). Not safe for threads."""

    def __init__(self, table: Table[int, Launch]) -> None:
        self._table = table
        self._numbers = {
            (launch.job, launch.source_id, launch.session): launch.number for launch in table.records.values()
        }

    def learn(self, launches: Mapping[int, Launch]) -> None:
        """Take over what another collector saved."""
        self._table.learn(launches)
        for launch in launches.values():
            self._numbers[launch.job, launch.source_id, launch.session] = launch.number

    def number(self, job: int, source: int, source_id: str, session: int) -> int:
        """The launch that a step or a phase belongs to; the first one makes it known."""
        key = (job, source_id, session)
        number = self._numbers.get(key)
        if number is not None:
            return number
        number = next_number(self._table)
        self._numbers[key] = number
        self._table.put(
            number, Launch(number=number, job=job, source=source, source_id=source_id, session=session)
        )
        return number

    def mark(self, place: Place, job: int, mark: SessionMark, source: int | None) -> None:
        """Note when a launch began or ended; what a mark does not know stays."""
        known = LOG if source is None else source
        old = self._table.records[self.number(job, known, mark.source_id, mark.session)]
        new = replace(
            old,
            begin_seconds=_known(place.shifted(mark.begin_seconds), old.begin_seconds),
            end_seconds=_known(place.shifted(mark.end_seconds), old.end_seconds),
            exit_reason=mark.exit_reason or old.exit_reason,
            restart_number=_known(mark.restart_number, old.restart_number),
            resumed_from_step=_known(mark.resumed_from_step, old.resumed_from_step),
        )
        if new != old:
            self._table.put(old.number, new)


def _known(new: T | None, old: T | None) -> T | None:
    return old if new is None else new
