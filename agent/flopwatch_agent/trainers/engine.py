"""Readings to rows: sessions, duplicates, time, tokens, steadiness."""

from collections.abc import Mapping
from dataclasses import replace

from flopwatch_agent.trainers.bars import Bar
from flopwatch_agent.trainers.clocks import event_seconds
from flopwatch_agent.trainers.companions import Companions
from flopwatch_agent.trainers.crosscheck import known_factors
from flopwatch_agent.trainers.derive import global_batch_size
from flopwatch_agent.trainers.epochcount import EpochCount
from flopwatch_agent.trainers.estimate import (
    Context,
    Estimate,
    estimate,
    infer_facts,
    seconds_between,
    tokens_of_step,
)
from flopwatch_agent.trainers.facts import Fact, FactBook, integer
from flopwatch_agent.trainers.findings import FindingBook, check_row
from flopwatch_agent.trainers.grammar import Grammar
from flopwatch_agent.trainers.marks import Mark
from flopwatch_agent.trainers.pauses import PauseBook
from flopwatch_agent.trainers.reading import NOWHERE, Launch, Origin, Reading, comes_late
from flopwatch_agent.trainers.rowbuilder import build_row, first_line_correction, steps_covered
from flopwatch_agent.trainers.rows import MarkKind, PhaseMark, Row, SessionInfo
from flopwatch_agent.trainers.sessions import place, resolve, resumed_from
from flopwatch_agent.trainers.steady import REPEATED_FIRST_STEP, usual_seconds, why_not_steady
from flopwatch_agent.trainers.steps import numbered, step_of

_MOST_ROLLOUTS = 10_000
_MOST_BESIDE_REPORTS = 100
"""Rows of a trainer beside the reports of its script, which come once a second at most."""


class Engine:
    """Takes what grammars, bars and marks read, in the order of the file; gives rows."""

    def __init__(self, *, utc_offset_seconds: float) -> None:
        self.book = FactBook()
        self.findings = FindingBook()
        self.rows: list[Row] = []
        self.pauses = PauseBook()
        self.sessions: list[SessionInfo] = []
        self.rollouts: list[dict[str, float]] = []
        self.rollout_count = 0
        self.session_facts: dict[int, dict[str, Fact]] = {}
        self.family: str | None = None
        self.kind: str = "unknown"
        self._utc_offset = utc_offset_seconds
        self._launch = Launch()
        self._announced = False
        self._resumed = False
        self._hint: int | None = None
        self._begin: Origin | None = None
        self._held: Reading | None = None
        self._waiting: Reading | None = None
        self._bar: Bar | None = None
        self._first_bar: Bar | None = None
        self._undrawn: Reading | None = None
        self._companions = Companions()
        self._own_companions: dict[str, Companions] = {}
        self._epochs = EpochCount()
        self._main_expected = False
        self._unreported = _MOST_BESIDE_REPORTS

    @property
    def session(self) -> int:
        """Index of the session that facts read now belong to."""
        return self._launch.index + (1 if self._announced else 0)

    def bar(self, bar: Bar, rank: int | None = None) -> None:
        """A progress bar was drawn, by the rank that the line names."""
        if not (bar.plain or bar.training):
            return
        if self._undrawn is None or rank == self._undrawn.rank:
            self._number_by(bar)
        previous = self._launch.previous
        known = previous.bar.total if previous and previous.bar else bar.total
        if bar.total == (integer(self.book.facts, "total_steps") or known):
            self._bar = bar
            if self._announced:
                self._first_bar = self._first_bar or bar
            elif self._launch.first_bar is None or self._launch.first_bar.total != bar.total:
                self._launch.first_bar = bar

    def companion(self, values: Mapping[str, float], *, family: str, own: bool = False) -> None:
        """Part of a row that another line completes; ``own``: of the same family only."""
        companions = self._own_companions.setdefault(family, Companions()) if own else self._companions
        companions.add(values, family)

    def expect_main(self) -> None:
        """A header told that a family with better lines is coming."""
        self._main_expected = True

    def rollout(self, values: Mapping[str, float], origin: Origin) -> None:
        """A rollout of reinforcement learning has ended."""
        self._number_by(None)
        if self.rollouts and self.rollouts[-1].get("rollout") == values.get("rollout"):
            return
        rate, trained = values.get("tokens_per_second"), values.get("actor_train_time_s")
        found = {name: value for name, value in values.items() if name != "tokens_per_second"}
        if rate and trained:
            found["tokens"] = float(round(rate * trained))
        self.rollouts.append(found)
        self.rollout_count += 1
        del self.rollouts[:-_MOST_ROLLOUTS]
        seconds = values.get("step_time_s", 0.0) - values.get("train_time_s", 0.0)
        self._pause(Mark(kind="generation", seconds=max(seconds, 0.0)), origin)

    def mark(self, mark: Mark, origin: Origin = NOWHERE) -> None:
        """An evaluation, checkpoint, launch or resume line."""
        self._number_by(None)
        if mark.kind in ("launch", "resume"):
            self._begins(mark, origin)
        elif mark.kind != "skip" and self._launch.rows:
            self._pause(mark, origin)
            self._launch.pauses.add(mark.kind)

    def _pause(self, mark: Mark, origin: Origin) -> None:
        previous = self._launch.previous
        kind: MarkKind = (
            "generation" if mark.kind == "generation" else "eval" if mark.kind == "eval" else "checkpoint"
        )
        step = previous.step if previous else None
        phase = PhaseMark(kind=kind, session=self._launch.index, after_step=step)
        self.pauses.mark(mark, phase, self._when(origin))

    def offer(
        self, grammar: Grammar, values: Mapping[str, float], *, family: str, origin: Origin = NOWHERE
    ) -> None:
        """A grammar has read a row."""
        if self._undrawn is not None and values == self._undrawn.values:
            return
        self._number_by(None)
        companions = self._own_companions.get(grammar.family, self._companions)
        completed, family = companions.complete(values, family)
        counted = self._epochs.count(numbered(completed), grammar)
        if counted is None or counted.get("step", 0.0) < 0:
            return
        merged = counted
        if "step" not in merged and self._repeats(merged, origin):
            return
        bar = self._bar if "bar" in grammar.order else None
        relaunched = self._announced or self._restarted(merged)
        step = step_of(merged, bar, self._launch, self.book.facts, relaunched=relaunched)
        reading = Reading(grammar=grammar, values=merged, step=step, family=family, origin=origin, bar=bar)
        unnumbered = "step" not in merged and "bar" in grammar.order
        first = bar is None and not self._launch.rows and not self.book.facts
        if unnumbered and (first or (bar is not None and step == bar.n)):
            self._undrawn = reading
        else:
            self._sort_out(reading)

    def _number_by(self, bar: Bar | None) -> None:
        """Let go a row numbered by its bar. tqdm skips drawings of quick steps but draws anew right after a row."""
        reading, self._undrawn = self._undrawn, None
        if reading is None:
            return
        if bar is not None and self._launch.numbers(bar, reading):
            reading = replace(reading, step=bar.n, bar=bar)
        self._sort_out(reading)

    def finish(self) -> None:
        """The end of the file: what waited is a row, what was held is none."""
        self._number_by(None)
        self._flush_waiting()
        if self._held is not None:
            self.findings.foreign_rows(self._held.step)
            self._held = None
        self.session_facts.setdefault(self._launch.index, dict(self.book.facts))
        if self._launch.rows and not self._announced:
            self.session_facts[self._launch.index] = dict(self.book.facts)

    def _repeats(self, values: Mapping[str, float], origin: Origin) -> bool:
        """Whether another rank, or the same line once more, says what was said; for rows without a number."""
        previous, rank = self._launch.previous, self._launch.rank
        if previous is None:
            return False
        return values == previous.values or (None not in (rank, origin.rank) and rank != origin.rank)

    def _restarted(self, values: Mapping[str, float]) -> bool:
        """Whether a counter of the session went back."""
        previous = self._launch.previous
        if previous is None:
            return False
        return any(
            name in values and name in previous.values and values[name] < previous.values[name]
            for name in ("epoch", "elapsed_seconds")
        )

    def _sort_out(self, reading: Reading) -> None:
        self._unreported = 0 if reading.grammar.reported else self._unreported + 1
        if self._unreported and self._unreported <= _MOST_BESIDE_REPORTS:
            return
        if reading.grammar.secondary:
            if self._main_expected or comes_late(reading, self._waiting):
                return
            waiting = self._waiting
            if waiting is not None and waiting.step == reading.step:
                reading = replace(reading, values={**waiting.values, **reading.values})
                self._waiting = None
            self._flush_waiting()
            if reading.get("samples_per_second") is None:
                self._waiting = reading
                return
        else:
            self._main_expected, self._waiting = True, None
        self._place(reading)

    def _flush_waiting(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not self._main_expected:
            self._place(waiting)

    def _place(self, reading: Reading) -> None:
        if self._launch.repeats(reading):
            self._forget_marks()
        elif self._settles_held(reading):
            self._put(reading)

    def _settles_held(self, reading: Reading) -> bool:
        """Decide on the row that waits for this one; false where this is the same row once more."""
        held = self._held
        if held is None:
            return True
        verdict = "held_false" if self._announced else resolve(held, reading, self._launch)
        if verdict == "again":
            return False
        self._held = None
        if verdict == "held_new":
            self._open(held)
        elif verdict == "held_same":
            self._accept(held)
        else:
            self.findings.foreign_rows(held.step)
        return True

    def _put(self, reading: Reading) -> None:
        announced = self._announced or (self._resumed and self._launch.ended_at(self._hint))
        where = place(reading, self._launch, announced=announced, resumed=self._resumed)
        if where == "hold":
            self._held = reading
        elif where == "new":
            self._open(reading)
        elif where == "same":
            self._accept(reading)

    def _open(self, reading: Reading) -> None:
        old = self._launch
        self.session_facts.setdefault(old.index, dict(self.book.facts))
        base = resumed_from(reading, old, self._hint, integer(self.book.facts, "log_interval"))
        last = old.previous.step if old.previous else base
        self._end_session()
        self._launch = Launch(
            index=old.index + 1, base_step=base, announced=self._announced, interval=old.interval,
            printed=old.printed,
        )  # fmt: skip
        self._launch.begin_stamp = self._begin.stamp if self._begin else None
        self._launch.first_bar, self._first_bar = self._first_bar, None
        self._launch.base_total = dict(old.totals).get(base)
        self.sessions.append(
            SessionInfo(
                session=old.index + 1,
                begin_time_seconds=self._when(self._begin or reading.origin),
                resumed_from_step=base,
                lost_steps=max(last - base, 0),
            )
        )
        self._accept(reading)

    def _begins(self, mark: Mark, origin: Origin) -> None:
        if self._launch.rows:
            if not (self._announced or self._resumed):
                self.session_facts[self._launch.index] = dict(self.book.facts)
                self._hint, self._begin = None, None
            self._announced = self._announced or mark.kind == "launch"
            self._resumed = True
        else:
            self._launch.announced = True
        self._begin = origin if origin.stamp or origin.arrived_at_seconds else self._begin
        self._hint = self._hint if mark.step is None else mark.step
        if not self._launch.rows:
            self._launch.begin_stamp = self._begin.stamp if self._begin else None
            self._launch.base_step = self._hint

    def _accept(self, reading: Reading) -> None:
        launch = self._launch
        base = launch.fresh_base(reading, header_seen=bool(self.book.facts))
        if launch.base_step is None or launch.base_step >= reading.step:
            launch.base_step = base if base is not None and base < reading.step else None
        if launch.index == 0 and launch.rows == 0:
            self._first_session(reading)
        context = self._context(reading)
        correction = first_line_correction(context)
        timed = estimate(context)
        factor = self._checked(context, timed)
        if correction is None and factor is not None and timed.seconds is not None:
            correction = timed.seconds * factor
        covered = steps_covered(context, timed)
        seconds = correction if correction is not None else timed.seconds
        why = why_not_steady(reading, launch, seconds=seconds, base_step=launch.base_step, covered=covered)
        if correction is not None and factor is None:
            why = REPEATED_FIRST_STEP
        row = build_row(context, timed, correction=correction, covered=covered, why=why)
        at = self._when(reading.origin)
        rollout = (
            {"rollout": float(self.rollout_count)} if self.kind == "rl" and not reading.grammar.order else {}
        )
        batch = global_batch_size(self.book.facts) if reading.family == "DeepSpeed" else None
        self.rows.append(
            replace(row, end_time_seconds=at, extras={**row.extras, **rollout}, samples=batch or row.samples)
        )
        usual = usual_seconds(launch) or row.step_seconds
        before = launch.previous.step if launch.previous else None
        self.pauses.step(
            end=at, seconds=usual and usual * (covered or 1), session=launch.index, before=before
        )
        self._advance(reading, row)

    def _checked(self, context: Context, timed: Estimate) -> float | None:
        """The factor by which printed times are wrong, by the time stamps of the lines."""
        check = self._launch.check
        observed = seconds_between(context)
        claims = timed.basis in ("printed", "derived_tokens", "derived_samples", "derived_rate")
        if not claims or timed.seconds is None:
            return None
        single = context.reading.grammar.covers == "one" and (context.advanced or 1) > 1
        if observed is not None and not (self._launch.pauses or single or context.reading.grammar.window):
            check.add(observed_seconds=observed, claimed_seconds=timed.seconds)
        factor = self._launch.settled(known_factors(self.book.facts))
        self.findings.clocks_differ(check, factor)
        return factor

    def _context(self, reading: Reading) -> Context:
        launch = self._launch
        origin = launch.previous.step if launch.previous else launch.base_step
        if "uncounted" in reading.values:
            origin = None
        context = Context(
            reading=reading, launch=launch, base_step=launch.base_step,
            advanced=reading.step - origin if origin is not None else None, tokens=None, facts=self.book.facts,
        )  # fmt: skip
        context = replace(context, tokens=tokens_of_step(context))
        inferred = infer_facts(context)
        for name, value in inferred.items():
            self.book.set(name, value, "step lines")
        return replace(context, tokens=tokens_of_step(context)) if inferred else context

    def _first_session(self, reading: Reading) -> None:
        self.family, self.kind = reading.family, reading.grammar.kind
        resumed = self._hint or None
        begin = self._when(self._begin or reading.origin)
        self.sessions.append(SessionInfo(session=0, begin_time_seconds=begin, resumed_from_step=resumed))

    def _advance(self, reading: Reading, row: Row) -> None:
        launch = self._launch
        if launch.previous is not None and reading.step > launch.previous.step:
            launch.interval = reading.step - launch.previous.step
        arrived = reading.origin.arrived_at_seconds
        if launch.previous is not None and arrived is not None:
            launch.bursts = launch.bursts or launch.previous.origin.arrived_at_seconds == arrived
        launch.previous = reading
        launch.note_bar(reading.bar)
        launch.rank = reading.rank if launch.rank is None else launch.rank
        launch.rows += 1
        launch.rated = launch.rated or reading.get("samples_per_second") is not None
        launch.note(reading)
        total = reading.get("total_tokens")
        if total is not None:
            launch.totals.append((reading.step, total))
        launch.pauses.clear()
        if row.step_seconds is not None:
            launch.timed_rows += 1
            if row.steady:
                launch.steady_seconds.append(row.step_seconds)
        elif reading.grammar.no_time and not reading.grammar.untimed_is_warm_up and launch.rows > 1:
            self.findings.say(
                "step_time_unknown", f"the log does not tell the step time: {reading.grammar.no_time}"
            )
        check_row(self.findings, reading, self.book.facts)
        self.family = reading.family
        self._forget_marks()

    def _forget_marks(self) -> None:
        self._announced = self._resumed = False
        self._hint = self._begin = None

    def _end_session(self) -> None:
        previous = self._launch.previous
        if previous is not None and self.sessions:
            at = self._when(previous.origin)
            if self.sessions[-1].session == self._launch.index:
                self.sessions.append(replace(self.sessions[-1], end_time_seconds=at))

    def _when(self, origin: Origin) -> float | None:
        return event_seconds(origin.stamp, origin.arrived_at_seconds, self._utc_offset)
