"""Standard output and error of a trainer: blocks of lines to readings."""

from collections.abc import Iterator
from dataclasses import replace

from flopwatch_agent.trainers.barrows import BAR_ONLY, BarSampler
from flopwatch_agent.trainers.bars import Bar, counts_training, read_bars
from flopwatch_agent.trainers.clocks import Stamp, read_stamp
from flopwatch_agent.trainers.echoes import Echoes
from flopwatch_agent.trainers.engine import Engine
from flopwatch_agent.trainers.families.catalogue import COMPANIONS, GRAMMARS, ROLLOUTS
from flopwatch_agent.trainers.files.jsonlines import JsonLines, is_step_object
from flopwatch_agent.trainers.framing import LABEL_BYTES, Record, Unframer, has_split_lines, label_bytes
from flopwatch_agent.trainers.grammar import Grammar, match
from flopwatch_agent.trainers.history import History
from flopwatch_agent.trainers.lanes import Lane
from flopwatch_agent.trainers.lines import CONTAINER_LINE, line_bounds, lines_at
from flopwatch_agent.trainers.marks import read_mark
from flopwatch_agent.trainers.micro import MicroSteps
from flopwatch_agent.trainers.prefilter import (
    EVERYTHING,
    PROOFS,
    SIGNS,
    Anchor,
    next_position,
    positions,
    wants,
)
from flopwatch_agent.trainers.promises import promises
from flopwatch_agent.trainers.reading import Origin
from flopwatch_agent.trainers.sdkline import take_sdk_line
from flopwatch_agent.trainers.userformat import UserFormat
from flopwatch_agent.trainers.wrapped import WrappedRows, continued

_LONGEST_TEXT = 1 << 17
"""A longer record is no row of any trainer."""
_LONGEST_PREFIX = 100
"""What a logger writes before its message is not longer."""
_MAX_LANES = 4_096
_ZONE_STEP_SECONDS = 900.0
_WIDEST_ZONE_SECONDS = 15 * 3_600.0
_MICRO_BAR = (
    "the progress bar counts micro batches, so that neither steps nor their time are known: use OpenRLHF's"
    " --use_tensorboard or --use_wandb, or StepReporter"
)
_SDK_PREFIX = "flopwatch: {"


class TextLog:
    """Finds what the trainer said among what everybody else said."""

    def __init__(self, engine: Engine, *, user_formats: tuple[UserFormat, ...] = ()) -> None:
        self._engine = engine
        self._unframer = Unframer()
        self._lanes: dict[str, Lane] = {}
        self._open_lanes = 0
        self._armed = bool(user_formats)
        self._above = b""
        """The last line of the block before, while the trainer is not known, if a row may begin in it."""
        self._history = History()
        self._grammars: list[Grammar] = [form.grammar for form in user_formats] + list(GRAMMARS)
        self._user_literals = tuple(form.literal.encode() for form in user_formats)
        self._bars = BarSampler()
        self._echoes = Echoes()
        self._micro = MicroSteps()
        self._wrapped = WrappedRows()
        self._json = JsonLines(engine)
        self._spoke_json = False
        self._arrived: float | None = None
        self._config_lane = ""
        self._after_return = False
        self._label = b""

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
            for record in lane.flush():
                self._handle(record)
        self._open_lanes = 0

    def _search(self, block: bytes) -> int | None:
        """Where a trainer shows itself for the first time; the part before it is read again for headers."""
        if self._unframer.joining or has_split_lines(block):
            candidates: Iterator[tuple[int, int]] = (
                (begin, end) for begin, end, _ in self._lines_of_interest(block, SIGNS, 0)
            )
        else:
            candidates = lines_at(block, positions(block, SIGNS))
        if self._above and self._shows(self._above, block[slice(*line_bounds(block, 0))]):
            return self._arm(block, 0)
        self._above = b""
        for start, end in candidates:
            line = block[start:end]
            if not (self._unframer.joining or line.startswith(b'{"log"') or promises(line)):
                continue
            if self._shows(line, block[slice(*line_bounds(block, end + 1))]):
                return self._arm(block, start)
            self._above = line if end + 1 >= len(block) else b""
        self._history.keep(block)
        return None

    def _shows(self, line: bytes, below: bytes) -> bool:
        """Whether a line, with the one below it where a row is broken, can only be a trainer's."""
        rest = "" if self._unframer.joining else below.decode("utf-8", "replace")
        return any(_proves(continued(record.text, rest)) for record in self._unframer.unframe(line))

    def _arm(self, block: bytes, start: int) -> int:
        self._armed = True
        self._unframer = Unframer()
        for kept in (*self._history.take(), block[:start]):
            self._read(kept, 0)
        return start

    def _read(self, block: bytes, start: int) -> None:
        for begin, end, anchored in self._lines_of_interest(block, EVERYTHING, start):
            self._line(self._with_label(block, begin, end), anchored=anchored)
        self._carry_label(block)

    def _lines_of_interest(
        self, block: bytes, anchors: tuple[Anchor, ...], start: int
    ) -> Iterator[tuple[int, int, bool]]:
        """Lines with an anchor, as the third value says, and every line while something is open."""
        every_line = b"" in self._user_literals or has_split_lines(block)
        places = [] if every_line else self._places(block, anchors)
        while start < len(block):
            anchored = not (every_line or self._busy)
            if anchored:
                place = next_position(places, start)
                if place is None:
                    return
                start = line_bounds(block, place, start)[0]
            end = line_bounds(block, start, start)[1]
            if end > start:
                yield start, end, anchored
            start = end + 1

    def _places(self, block: bytes, anchors: tuple[Anchor, ...]) -> list[int]:
        return positions(block, (*anchors, *map(Anchor, self._user_literals)))

    def _with_label(self, block: bytes, begin: int, end: int) -> bytes:
        """The line; after a carriage return with the label of the line that it overwrites."""
        line = block[begin:end]
        overwrites = block[begin - 1 : begin] == b"\r" if begin else self._after_return
        if not overwrites or CONTAINER_LINE.match(line):
            return line
        feed = block.rfind(b"\n", 0, begin) + 1
        label = (
            label_bytes(block[feed : feed + LABEL_BYTES]) if feed or not self._after_return else self._label
        )
        return line if line.startswith(label) else label + line

    def _carry_label(self, block: bytes) -> None:
        """Keep the label of a line that goes on in the next block."""
        if not block:
            return
        if not block.endswith(b"\r"):
            self._after_return, self._label = False, b""
            return
        feed = block.rfind(b"\n") + 1
        if feed or not self._after_return:
            self._label = label_bytes(block[feed : feed + LABEL_BYTES])
        self._after_return = True

    @property
    def _busy(self) -> bool:
        return self._open_lanes > 0 or self._engine.book.open or self._unframer.joining or self._wrapped.open

    def _line(self, line: bytes, *, anchored: bool) -> None:
        records = self._unframer.unframe(line)
        for record in records:
            lane = self._lanes.get(record.lane)
            is_open = self._engine.book.open or (lane is not None and lane.open)
            goes_on = self._wrapped.open and self._wrapped.awaits(record.lane)
            chosen = anchored and len(records) == 1
            if chosen or is_open or goes_on or self._wanted(record.text):
                self._record(record, lane)

    def _wanted(self, text: str) -> bool:
        encoded = text.encode("utf-8", "replace")
        return wants(encoded, EVERYTHING) or any(literal in encoded for literal in self._user_literals)

    def _record(self, record: Record, lane: Lane | None) -> None:
        if lane is None:
            if len(self._lanes) >= _MAX_LANES:
                self._lanes.clear()
                self._open_lanes = 0
            lane = self._lanes[record.lane] = Lane()
        was_open = lane.open
        for complete in lane.take(record):
            self._handle(complete)
        self._open_lanes += int(lane.open) - int(was_open)

    def _handle(self, record: Record) -> None:
        text, engine = record.text, self._engine
        if len(text) > _LONGEST_TEXT:
            return
        origin = Origin(stamp=_stamp(record), arrived_at_seconds=self._arrived, rank=record.rank)
        if _SDK_PREFIX in text and take_sdk_line(engine, text, origin):
            return
        bars = read_bars(text) if "/" in text and ("<" in text or "\u2022" in text) else []
        for bar in bars:
            engine.bar(bar, record.rank)
        if self._rows(text, origin) or self._object(text, origin) or self._wrapped_row(record):
            engine.book.close()
            return
        if engine.book.open and record.lane == self._config_lane and engine.book.read(text):
            return
        if bars:
            self._bar_rows(bars, text, origin)
            return
        self._other(record, origin)

    def _wrapped_row(self, record: Record) -> bool:
        """A row that goes over several lines, complete with this one."""
        whole = self._wrapped.joined(record) if self._wrapped.open else None
        if whole is None:
            self._wrapped.begin(record)
            return False
        origin = Origin(
            stamp=_stamp(replace(record, text=whole)), arrived_at_seconds=self._arrived, rank=record.rank
        )
        complete = self._rows(whole, origin)
        if complete:
            self._wrapped.complete(record.lane)
        return complete

    def _rows(self, text: str, origin: Origin) -> bool:
        for place, grammar in enumerate(self._grammars):
            hits = match(grammar, text) if grammar.literal in text else None
            if hits:
                if place:
                    self._grammars.insert(0, self._grammars.pop(place))
                for before, hit in zip((None, *hits), hits, strict=False):
                    name = family_of(grammar, hit.text)
                    values = self._micro.values_of(hit) if grammar.micro else hit.values
                    if values is not None:
                        said = (
                            origin if before is None else _torn_origin(text, before.where, hit.where, origin)
                        )
                        self._engine.offer(grammar, values, family=name, origin=said)
                return True
        return False

    def _object(self, text: str, origin: Origin) -> bool:
        """A line that is one JSON object with a step, of a trainer that prints nothing else."""
        if not text.startswith('{"') or not (self._spoke_json or self._engine.family is None):
            return False
        found = self._json.take_line(text, origin)
        self._spoke_json = self._spoke_json or found
        return found

    def _bar_rows(self, bars: list[Bar], text: str, origin: Origin) -> None:
        if self._engine.family not in (None, *_names(BAR_ONLY)):
            return
        for bar in bars:
            if bar.micro:
                self._engine.findings.say("step_time_unknown", _MICRO_BAR)
                continue
            values = self._bars.row_of(bar)
            if values is not None:
                self._engine.offer(BAR_ONLY, values, family=family_of(BAR_ONLY, text), origin=origin)

    def _other(self, record: Record, origin: Origin) -> None:
        text, engine = record.text, self._engine
        for grammar in COMPANIONS:
            for hit in match(grammar, text):
                engine.companion(hit.values, family=grammar.family, own=grammar.secondary)
        for grammar in ROLLOUTS:
            for hit in match(grammar, text):
                engine.rollout(hit.values, origin)
        self._expect(text)
        for mark in read_mark(text):
            if not self._echoes.repeats(mark.said, record.lane):
                engine.mark(mark, origin)
        if not engine.book.open and engine.book.read(text):
            self._config_lane = record.lane

    def _expect(self, text: str) -> None:
        """A header tells which family's lines will come."""
        arguments = "- arguments -" in text or text.strip() == "arguments:"
        if arguments:
            self._engine.book.begin_arguments()
        if arguments or "***** Running training" in text:
            self._engine.expect_main()


def family_of(grammar: Grammar, text: str) -> str:
    """The family's name, or that of the relative who alone prints such a line."""
    for literal, name in grammar.relatives:
        if literal in text:
            return name
    return grammar.family


def _torn_origin(text: str, before: int, where: int, origin: Origin) -> Origin:
    """The origin of a row that stands behind another in one line: with the time between them, where there is one."""
    stamp = read_stamp(text[max(before, where - _LONGEST_PREFIX) : where])
    return origin if stamp is None else replace(origin, stamp=stamp)


def _names(grammar: Grammar) -> tuple[str, ...]:
    return (grammar.family, *(name for _, name in grammar.relatives))


def _stamp(record: Record) -> Stamp | None:
    """The time in the line; a container's time beside it tells its zone, or its date."""
    own, framing = read_stamp(record.text), record.framing_time
    if own is None or framing is None or own.zoned:
        return own or framing
    if not own.dated:
        return framing
    shift = round((framing.seconds - own.seconds) / _ZONE_STEP_SECONDS) * _ZONE_STEP_SECONDS
    if abs(shift) > _WIDEST_ZONE_SECONDS:
        return own
    return Stamp(seconds=own.seconds + shift, dated=True, zoned=True)


def _proves(text: str) -> bool:
    """Whether the line can only be a trainer's."""
    for proof in PROOFS:
        if proof in text:
            return True
    for grammar in GRAMMARS:
        if grammar.literal in text and match(grammar, text):
            return True
    if is_step_object(text):
        return True
    return counts_training(text) and any(bar.training for bar in read_bars(text))
