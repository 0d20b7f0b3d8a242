"""Bytes of a trainer's log in, rows out."""

from dataclasses import replace

from flopwatch.wire import JobKind, RunFacts
from flopwatch_agent.trainers.derive import run_facts
from flopwatch_agent.trainers.described import described_shape
from flopwatch_agent.trainers.engine import Engine
from flopwatch_agent.trainers.finalize import finalized
from flopwatch_agent.trainers.formats import FORMATS, Format, sniff
from flopwatch_agent.trainers.lines import LineCutter
from flopwatch_agent.trainers.rows import Output, Parsed
from flopwatch_agent.trainers.tensorboard import EventFile, is_event_file
from flopwatch_agent.trainers.textlog import TextLog
from flopwatch_agent.trainers.userformat import UserFormat
from flopwatch_agent.trainers.wandbfile import WandbFile, is_run_file

IDLE_SECONDS = 2.0
"""After so long without new bytes a block of lines counts as complete."""

_SNIFFED_BYTES = 64
KINDS = ("auto", "stdout", "jsonl", "json", "csv", "prometheus", "metric-file", "tensorboard", "wandb")

BINARY: dict[str, type[EventFile] | type[WandbFile]] = {"tensorboard": EventFile, "wandb": WandbFile}


class LogReader:
    """Reads one log as it grows. However its bytes are split, the rows are the same."""

    def __init__(
        self,
        *,
        kind: str = "auto",
        utc_offset_seconds: float = 0.0,
        user_formats: tuple[UserFormat, ...] = (),
    ) -> None:
        """Read a log.

        Args:
            kind: what the file's name tells (one of ``KINDS``), or ``auto``: by content.
            utc_offset_seconds: how far east of Greenwich the writer's clock is, for times without a zone.
            user_formats: the expressions for in-house trainers' step lines.

        Raises:
            ValueError: the kind is none of ``KINDS``.
        """
        if kind not in KINDS:
            raise ValueError(f"kind is {kind!r}; allowed: {', '.join(KINDS)}")
        self._kind = kind
        self._engine = Engine(utc_offset_seconds=utc_offset_seconds)
        self._cutter = LineCutter()
        self._text = TextLog(self._engine, user_formats=user_formats)
        self._format: Format | None = FORMATS[kind](self._engine) if kind in FORMATS else None
        self._events: EventFile | WandbFile | None = BINARY[kind](self._engine) if kind in BINARY else None
        self._first = b"" if kind == "auto" else None
        self._sniffing = kind == "auto"
        self._maybe_text = False
        """A pretty-printed document at the beginning may be the head of a log."""
        self._last_arrival: float | None = None
        self._taken: tuple[int, int, int] = (0, 0, 0)
        self._runs: dict[int, RunFacts] = {}
        self._basis: tuple[object, ...] = ()
        """What the last run facts were made of: making them costs more than comparing."""

    def feed(self, data: bytes, arrived_at_seconds: float | None = None) -> None:
        """Take the next bytes of the file. No bytes, some seconds after the last, complete an open block."""
        if not data:
            self._idle(arrived_at_seconds)
            return
        self._last_arrival = arrived_at_seconds
        if self._first is not None:
            self._first += data
            if len(self._first) < _SNIFFED_BYTES and not _is_text(self._first):
                return
            data, self._first = self._first, None
            self._begin(data)
        self._bytes(data, arrived_at_seconds)

    def finish(self) -> None:
        """The file has ended: what is incomplete is taken as it is."""
        if self._first is not None:
            data, self._first = self._first, None
            self._begin(data)
            self._bytes(data, self._last_arrival)
        if self._events is not None:
            self._events.finish()
        else:
            rest = self._cutter.finish()
            if rest:
                self._block(rest, self._last_arrival)
            self._text.finish(self._last_arrival)
            if self._format is not None:
                self._format.finish(self._last_arrival)
        self._engine.finish()

    def take(self) -> Output:
        """What became known since the last call."""
        engine = self._engine
        rows, phases, sessions = self._taken
        self._taken = (len(engine.rows), len(engine.pauses.phases), len(engine.sessions))
        runs = self._new_runs() if engine.book.facts else ()
        if self._taken == (rows, phases, sessions) and not runs:
            return Output(family=engine.family)
        output = Output(
            steps=tuple(engine.rows[rows:]),
            phases=tuple(engine.pauses.phases[phases:]),
            runs=runs,
            sessions=tuple(engine.sessions[sessions:]),
            findings=engine.findings.take(),
            family=engine.family,
        )
        self._forget()
        return output

    def everything(self) -> Parsed:
        """All that a finished file tells, with what only its end could show."""
        engine = self._engine
        facts = tuple(engine.session_facts[index] for index in sorted(engine.session_facts))
        parsed = Parsed(
            steps=tuple(engine.rows),
            phases=tuple(engine.pauses.phases),
            runs=tuple(self._facts_of(index) for index in sorted(engine.session_facts)),
            sessions=tuple({item.session: item for item in engine.sessions}.values()),
            findings=engine.findings.take(),
            facts=facts,
            rollouts=tuple(engine.rollouts),
            family=engine.family,
        )
        return finalized(parsed)

    def _begin(self, data: bytes) -> None:
        if is_event_file(data):
            self._events = EventFile(self._engine)
        elif is_run_file(data):
            self._events = WandbFile(self._engine)

    def _bytes(self, data: bytes, arrived: float | None) -> None:
        if self._events is not None:
            self._events.feed(data, arrived)
            return
        for block in self._cutter.feed(data):
            self._block(block, arrived)

    def _block(self, block: bytes, arrived: float | None) -> None:
        if self._sniffing:
            name = sniff(block)
            if name is None:
                return
            self._sniffing = False
            self._maybe_text = name == "json"
            self._format = FORMATS[name](self._engine) if name in FORMATS else None
        if self._format is not None:
            self._format.feed(block, arrived)
        if self._format is None or self._maybe_text:
            self._text.feed(block, arrived)

    def _idle(self, now: float | None) -> None:
        last = self._last_arrival
        if now is not None and last is not None and now - last >= IDLE_SECONDS:
            self._text.complete_blocks(last)

    def _new_runs(self) -> tuple[RunFacts, ...]:
        engine, index = self._engine, self._engine.session
        book = engine.book
        known = (index, dict(engine.session_facts.get(index, book.facts)), book.origin, book.shape)
        basis = (*known, engine.family, engine.kind)
        if basis == self._basis:
            return ()
        self._basis = basis
        facts = self._facts_of(index)
        if self._runs.get(index) == facts:
            return ()
        self._runs[index] = facts
        return (facts,)

    def _facts_of(self, index: int) -> RunFacts:
        engine = self._engine
        kind: JobKind = "rl" if engine.kind == "rl" else "unknown"
        facts = engine.session_facts.get(index, engine.book.facts)
        found = run_facts(facts, family=engine.family, origin=engine.book.origin, session=index, kind=kind)
        return replace(found, shape=engine.book.shape or described_shape(facts))

    def _forget(self) -> None:
        """Rows that were taken are not kept: a log may be followed for months."""
        self._engine.rows.clear()
        self._engine.pauses.phases.clear()
        del self._engine.sessions[:-1]
        for ended in [index for index in self._engine.session_facts if index < self._engine.session]:
            del self._engine.session_facts[ended]
            self._runs.pop(ended, None)
        self._taken = (0, 0, len(self._engine.sessions))


def _is_text(data: bytes) -> bool:
    """Whether the bytes hold a line, so that no binary format can begin with them."""
    return b"\n" in data and b"\0" not in data and not data.startswith(b":W&B")


def parse_whole(data: bytes, kind: str = "auto", *, user_format: UserFormat | None = None) -> Parsed:
    """All rows of a finished file, ``superseded`` and ``steady`` as its end shows them."""
    reader = LogReader(kind=kind, user_formats=() if user_format is None else (user_format,))
    reader.feed(data, None)
    reader.finish()
    return reader.everything()
