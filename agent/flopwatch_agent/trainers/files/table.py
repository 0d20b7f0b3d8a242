"""``metrics.csv`` of Lightning's CSVLogger, and other tables with a step column."""

import csv

from flopwatch_agent.trainers.clocks import Stamp
from flopwatch_agent.trainers.engine import Engine
from flopwatch_agent.trainers.files.jsonlines import stamp_of
from flopwatch_agent.trainers.grammar import Grammar, anchor
from flopwatch_agent.trainers.marks import Mark
from flopwatch_agent.trainers.numbers import parse_number
from flopwatch_agent.trainers.reading import Origin

LIGHTNING = Grammar(
    family="Lightning",
    anchor=anchor(r"(?!)"),
    order=("printed", "between"),
    first_step=0,
    pauses_outside=True,
    no_time="add Lightning's ThroughputMonitor, or the flopwatch callback",
)

TABLE = Grammar(
    family="CSV table",
    anchor=anchor(r"(?!)"),
    order=("printed", "counter", "timestamps"),
    pauses_inside=True,
    no_time="write the seconds of a step (step_time_s) or the time of day (timestamp) into a column",
)
"""A table without Lightning's epochs: of any training loop."""

_LOSS = ("train_loss", "loss", "train/loss", "train_loss_step", "train_loss_epoch", "reduced_train_loss")
_COLUMNS = {
    "train/time": "fit_seconds",
    "train/device/mfu": "mfu",
    "train/device/flops_per_sec": "flops_per_second",
    "train/batches": "batches",
    "train/batches_per_sec": "batches_per_second",
    "train/device/batches_per_sec": "batches_per_second_per_gpu",
    "train/samples": "samples_per_rank",
    "train_step_timing in s": "seconds",
    "step_time": "seconds",
    "step_time_s": "seconds",
    "step_time_seconds": "seconds",
    "seconds_per_step": "seconds",
    "iteration-time": "seconds",
    "step_time_ms": "milliseconds",
    "iter_time_ms": "milliseconds",
    "elapsed_seconds": "elapsed_seconds",
    "elapsed_s": "elapsed_seconds",
}
_TIMES = ("timestamp", "_timestamp", "wall_time", "datetime", "created_at")
_MICRO_STEPS = {"iter", "iter_time"}
"""LitGPT's columns: its step is the number of a micro batch."""


class CsvTable:
    """A step's figures may lie on two rows: the loss with the step, the throughput with the batch count.

    Newer releases of Lightning write the throughput first, with epoch and step of its own.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._header: list[str] | None = None
        self._waiting: dict[str, float] | None = None
        self._ahead: dict[str, float] | None = None
        self._delimiter = ","
        self._grammar = LIGHTNING
        self._stamp: Stamp | None = None

    def feed(self, block: bytes, arrived: float | None) -> None:
        """Take a block of whole lines."""
        lines = [line for line in block.decode("utf-8", "replace").splitlines() if line]
        if self._header is None and lines:
            self._delimiter = next((mark for mark in ";\t" if mark in lines[0]), ",")
        for cells in csv.reader(lines, delimiter=self._delimiter):
            if self._header is None or cells == self._header:
                self._begin(cells)
            elif not set(self._header) >= _MICRO_STEPS:
                self._row(dict(zip(self._header, map(self._plain, cells), strict=False)), arrived)

    def _begin(self, cells: list[str]) -> None:
        self._header = [name.strip() for name in cells]
        self._grammar = LIGHTNING if "epoch" in self._header else TABLE
        if set(self._header) >= _MICRO_STEPS:
            text = "the table's step counts micro batches, not optimizer steps: it was left out"
            self._engine.findings.say("steps_are_micro_batches", text)

    def _plain(self, cell: str) -> str:
        """The cell with a decimal point: where semicolons separate, numbers have commas."""
        return cell.replace(",", ".") if self._delimiter == ";" and "." not in cell else cell

    def finish(self, arrived: float | None) -> None:
        """The last step may have had no throughput row, or nothing but that."""
        self._flush(arrived)
        self._flush_ahead(arrived)

    def _row(self, cells: dict[str, str], arrived: float | None) -> None:
        loss = next((cells[name] for name in _LOSS if cells.get(name)), None)
        figures = _figures(cells)
        if loss is not None:
            self._loss_row(cells, loss, figures, arrived)
        elif figures:
            self._figures_row(cells, figures, arrived)
        elif any(name.startswith("val") and cells[name] for name in cells):
            self._engine.mark(Mark(kind="eval", done=True), Origin(arrived_at_seconds=arrived))

    def _loss_row(
        self, cells: dict[str, str], loss: str, figures: dict[str, float], arrived: float | None
    ) -> None:
        self._flush(arrived)
        self._stamp = stamp_of(_moment(cells))
        step = parse_number(cells.get("step", ""))
        if step is None:
            return
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead["step"] != step:
            self._flush_values(ahead, arrived)
            ahead = None
        self._waiting = {**(ahead or {}), "step": step, **figures}
        value = parse_number(loss)
        if value is not None:
            self._waiting["loss"] = value
        if "fit_seconds" in self._waiting or "seconds" in self._waiting or not self._has_throughput():
            self._flush(arrived)

    def _figures_row(self, cells: dict[str, str], figures: dict[str, float], arrived: float | None) -> None:
        own = parse_number(cells.get("step", "")) if cells.get("epoch") else None
        if own is not None and (self._waiting is None or self._waiting["step"] != own):
            self._flush(arrived)
            self._flush_ahead(arrived)
            self._ahead = {"step": own, **figures}
        elif self._waiting is not None:
            self._waiting.update(figures)
            self._flush(arrived)

    def _has_throughput(self) -> bool:
        return any(name in _COLUMNS for name in self._header or ())

    def _flush(self, arrived: float | None) -> None:
        values, self._waiting = self._waiting, None
        if values is not None:
            self._flush_values(values, arrived)

    def _flush_ahead(self, arrived: float | None) -> None:
        values, self._ahead = self._ahead, None
        if values is not None:
            self._flush_values(values, arrived)

    def _flush_values(self, values: dict[str, float], arrived: float | None) -> None:
        flops = values.pop("flops_per_second", None)
        if flops is not None:
            values["tflops"] = flops / 1e12
        whole, own = values.get("batches_per_second"), values.get("batches_per_second_per_gpu")
        if whole and own:
            self._engine.book.set("world_size", round(whole / own), "throughput columns")
        batches = values.get("batches")
        if batches and batches % (values["step"] + 1) == 0:
            self._engine.book.set(
                "gradient_accumulation_steps", int(batches // (values["step"] + 1)), "metrics.csv"
            )
        if "milliseconds" in values:
            values["seconds"] = values.pop("milliseconds") / 1_000
        origin = Origin(stamp=self._stamp, arrived_at_seconds=arrived)
        self._engine.offer(self._grammar, values, family=self._grammar.family, origin=origin)


def _moment(cells: dict[str, str]) -> float | str | None:
    """The cell that tells when the row was written."""
    text = next((cells[name] for name in _TIMES if cells.get(name)), None)
    number = parse_number(text) if text else None
    return text if number is None else number


def _figures(cells: dict[str, str]) -> dict[str, float]:
    found = {}
    for name, quantity in _COLUMNS.items():
        value = parse_number(cells[name]) if cells.get(name) else None
        if value is not None:
            found[quantity] = value
    return found
