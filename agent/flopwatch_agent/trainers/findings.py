"""Doubts about a log, each said once."""

from collections.abc import Mapping

from flopwatch_agent.trainers.crosscheck import DOUBT_RATIO, CrossCheck
from flopwatch_agent.trainers.facts import Fact
from flopwatch_agent.trainers.reading import Reading
from flopwatch_agent.trainers.rows import LogFinding
from flopwatch_agent.trainers.steps import counts_lines


class FindingBook:
    """Collects findings; one of each code for a file."""

    def __init__(self) -> None:
        self._said: set[str] = set()
        self._new: list[LogFinding] = []

    def say(self, code: str, text: str, **values: float) -> None:
        """Note a finding unless one of its code was noted before."""
        if code not in self._said:
            self._said.add(code)
            self._new.append(LogFinding(code=code, text=text, values=values))

    def foreign_rows(self, step: int) -> None:
        """Note a row that opened no session, as no second one agreed."""
        text = "the log holds step lines that are not of this run (quoted or old); they were left out"
        self.say("foreign_rows", text, step=float(step))

    def clocks_differ(self, check: CrossCheck, factor: float | None) -> None:
        """Note step times that the time stamps contradict: by a known factor, or by none."""
        ratio = check.ratio()
        if factor is not None:
            text = f"step times are wrong by a factor of {factor:g} ({check.name}), by the time stamps; corrected"
            self.say("unit_mismatch", text, factor=factor)
        elif ratio is not None and not 1 / DOUBT_RATIO < ratio < DOUBT_RATIO:
            text = (
                f"lines are {ratio:.2f} times as far apart as their step times say, and no known factor fits"
            )
            self.say("estimators_differ", text, ratio=ratio)

    def take(self) -> tuple[LogFinding, ...]:
        """The findings since the last call."""
        new, self._new = tuple(self._new), []
        return new


def check_row(book: FindingBook, reading: Reading, facts: Mapping[str, Fact]) -> None:
    """Note what the trainer's own figures cannot be, and a step that no figure tells."""
    values = reading.values
    if "epoch" in values and counts_lines(reading, facts):
        book.say(
            "steps_unknown",
            "the log prints neither steps nor how many there are: its lines are numbered",
        )
    mfu, tflops, peak = values.get("mfu"), values.get("tflops"), facts.get("peak_flops")
    if mfu is not None and mfu > 1.0:
        text = f"the trainer prints an MFU of {mfu:.1%}: its peak or its FLOP count is wrong"
        implied = {"implied_peak_flops": tflops * 1e12 / mfu} if tflops else {}
        book.say("reported_mfu_above_one", text, reported_mfu=mfu, **implied)
    if mfu and tflops and isinstance(peak, int | float) and abs(tflops * 1e12 / mfu / peak - 1.0) > 0.05:
        book.say(
            "reported_peak_differs",
            "the trainer's TFLOP/s and MFU do not belong to the peak that it says it uses",
            implied_peak_flops=tflops * 1e12 / mfu,
            stated_peak_flops=float(peak),
        )
