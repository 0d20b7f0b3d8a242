"""Standard output and error of a trainer: blocks of lines to readings."""

from flopwatch_agent.trainers.barrows import BAR_ONLY, BarSampler
from flopwatch_agent.trainers.bars import Bar, read_bars
from flopwatch_agent.trainers.clocks import Stamp, read_stamp
from flopwatch_agent.trainers.engine import Engine
from flopwatch_agent.trainers.families.catalogue import COMPANIONS, GRAMMARS, ROLLOUTS
from flopwatch_agent.trainers.framing import Record, Unframer
from flopwatch_agent.trainers.grammar import Grammar, match
from flopwatch_agent.trainers.history import History
from flopwatch_agent.trainers.lanes import Lane
from flopwatch_agent.trainers.marks import read_mark
from flopwatch_agent.trainers.prefilter import EVERYTHING, PROOFS, SIGNS, next_position, positions, wants
from flopwatch_agent.trainers.reading import Origin
from flopwatch_agent.trainers.sdkline import take_sdk_line
from flopwatch_agent.trainers.userformat import UserFormat

_MAX_LANES = 4_096
_SPLIT_MARKS = (b" stdout P ", b" stderr P ")
_SDK_PREFIX = "flopwatch: {"


class TextLog:
    """Finds what the trainer said among what everybody else said."""

    def __init__(self, engine: Engine, *, user_format: UserFormat | None = None) -> None:
        self._engine = engine
        self._unframer = Unframer()
        self._lanes: dict[str, Lane] = {}
        self._open_lanes = 0
        self._armed = user_format is not None
        self._history = History()
        self._grammars: list[Grammar] = ([user_format.grammar] if user_format else []) + list(GRAMMARS)
        self._user_literal = user_format.literal.encode() if user_format else None
        self._bars = BarSampler()
        self._arrived: float | None = None

    def feed(self, block: bytes, arrived: float | None) -> None:
        """Take a block of whole lines."""
        self._arrived = arrived
        start = 0 if self._armed else self._search(block)
        if start is not None:
            self._read(block, start)

    def finish(self, arrived: float | None) -> None:
        """The end of the file."""
        self.complete_blocks(arrived)

    def complete_blocks(self, arrived: float | None) -> None:
        """What is open counts as complete."""
        self._arrived = arrived
        for lane in self._lanes.values():
            for text in lane.flush():
                self._handle(Record(text=text))
        self._open_lanes = 0

    def _search(self, block: bytes) -> int | None:
        """Where a trainer shows itself for the first time; the part before it is read again for headers."""
        end = -1
        for place in positions(block, SIGNS):
            if place <= end:
                continue
            start, end = _line_around(block, place, end + 1)
            if _proves(block[start:end]):
                self._armed = True
                for kept in (*self._history.take(), block[:start]):
                    self._read(kept, 0)
                return start
        self._history.keep(block)
        return None

    def _read(self, block: bytes, start: int) -> None:
        every_line = any(mark in block for mark in _SPLIT_MARKS) or self._user_literal == b""
        places = [] if every_line else self._positions(block)
        while start < len(block):
            if not (every_line or self._busy):
                place = next_position(places, start)
                if place is None:
                    return
                start = _line_around(block, place, start)[0]
            end = _line_around(block, start, start)[1]
            if end > start:
                self._line(block[start:end])
            start = end + 1

    def _positions(self, block: bytes) -> list[int]:
        places = positions(block, EVERYTHING)
        if self._user_literal:
            place = block.find(self._user_literal)
            while place >= 0:
                places.append(place)
                place = block.find(self._user_literal, place + 1)
            places.sort()
        return places

    @property
    def _busy(self) -> bool:
        return self._open_lanes > 0 or self._engine.book.open or self._unframer.joining

    def _line(self, line: bytes) -> None:
        for record in self._unframer.unframe(line):
            lane = self._lanes.get(record.lane)
            is_open = lane is not None and lane.open
            if is_open or self._engine.book.open or self._wanted(record.text):
                self._record(record, lane)

    def _wanted(self, text: str) -> bool:
        encoded = text.encode("utf-8", "replace")
        return wants(encoded, EVERYTHING) or (
            self._user_literal is not None and self._user_literal in encoded
        )

    def _record(self, record: Record, lane: Lane | None) -> None:
        if lane is None:
            if len(self._lanes) >= _MAX_LANES:
                self._lanes.clear()
                self._open_lanes = 0
            lane = self._lanes[record.lane] = Lane()
        was_open = lane.open
        for text in lane.take(record.text):
            self._handle(Record(text=text, rank=record.rank, framing_time=record.framing_time))
        self._open_lanes += int(lane.open) - int(was_open)

    def _handle(self, record: Record) -> None:
        text, engine = record.text, self._engine
        if engine.book.open and engine.book.read(text):
            return
        origin = Origin(stamp=_stamp(record), arrived_at_seconds=self._arrived, rank=record.rank)
        if _SDK_PREFIX in text and take_sdk_line(engine, text, origin):
            return
        bars = read_bars(text) if "it/s" in text or "s/it" in text else []
        for bar in bars:
            engine.bar(bar)
        if self._rows(text, origin):
            return
        if bars:
            self._bar_rows(bars, text, origin)
            return
        self._other(text, origin)

    def _rows(self, text: str, origin: Origin) -> bool:
        for place, grammar in enumerate(self._grammars):
            hits = match(grammar, text)
            if hits:
                if place:
                    self._grammars.insert(0, self._grammars.pop(place))
                for hit in hits:
                    name = family_of(grammar, hit.text)
                    self._engine.offer(grammar, hit.values, family=name, origin=origin)
                return True
        return False

    def _bar_rows(self, bars: list[Bar], text: str, origin: Origin) -> None:
        if self._engine.family not in (None, *_names(BAR_ONLY)):
            return
        for bar in bars:
            values = self._bars.row_of(bar)
            if values is not None:
                self._engine.offer(BAR_ONLY, values, family=family_of(BAR_ONLY, text), origin=origin)

    def _other(self, text: str, origin: Origin) -> None:
        engine = self._engine
        for grammar in COMPANIONS:
            for hit in match(grammar, text):
                engine.companion(hit.values)
        for grammar in ROLLOUTS:
            for hit in match(grammar, text):
                engine.rollout(hit.values, origin)
        if "- arguments -" in text:
            engine.expect_main()
        for mark in read_mark(text):
            engine.mark(mark, origin)
        engine.book.read(text)


def family_of(grammar: Grammar, text: str) -> str:
    """The family's name, or that of the relative who alone prints such a line."""
    for literal, name in grammar.relatives:
        if literal in text:
            return name
    return grammar.family


def _names(grammar: Grammar) -> tuple[str, ...]:
    return (grammar.family, *(name for _, name in grammar.relatives))


def _stamp(record: Record) -> Stamp | None:
    """The time in the line where it has a zone, else the container's, else the line's local time."""
    own = read_stamp(record.text)
    if own is not None and own.dated and own.zoned:
        return own
    return record.framing_time or own


def _proves(line: bytes) -> bool:
    """Whether the line can only be a trainer's."""
    if any(proof in line for proof in PROOFS):
        return True
    text = line.decode("utf-8", "replace")
    if any(match(grammar, text) for grammar in GRAMMARS):
        return True
    return any(bar.training for bar in read_bars(text))


def _line_around(block: bytes, place: int, low: int = 0) -> tuple[int, int]:
    """Begin and end of the line that holds ``place``, its terminator excluded; ``low`` is where a line begins."""
    start = block.rfind(b"\n", low, place) + 1 or low
    start = block.rfind(b"\r", start, place) + 1 or start
    end = block.find(b"\n", place)
    end = len(block) if end < 0 else end
    carriage = block.find(b"\r", place, end)
    return start, end if carriage < 0 else carriage
