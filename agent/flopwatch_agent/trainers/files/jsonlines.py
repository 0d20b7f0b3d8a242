"""One JSON object a line: metric logs of trainers, history exports of trackers."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from flopwatch_agent.trainers.clocks import Stamp, read_stamp
from flopwatch_agent.trainers.engine import Engine
from flopwatch_agent.trainers.grammar import Grammar, anchor
from flopwatch_agent.trainers.marks import Mark
from flopwatch_agent.trainers.numbers import parse_duration, parse_number
from flopwatch_agent.trainers.prefilter import Anchor, next_position, positions
from flopwatch_agent.trainers.reading import Origin

_NEVER = anchor(r"(?!)")
_ANCHORS = tuple(
    Anchor(literal)
    for literal in (
        b'"step"',
        b'"global_step/max_steps"',
        b'"_step"',
        b'"current_steps"',
        b'"global_step"',
        b'"num_updates"',
        b'"train/global_step"',
    )
)


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyGrammar:
    """How one kind of record names its quantities."""

    grammar: Grammar
    has: tuple[str, ...]
    """Keys that only this kind has."""
    keys: Mapping[str, tuple[str, ...]]
    """For each quantity the keys that mean it, the better first."""
    time: str | None = None
    evaluation: tuple[str, ...] = ()
    """Keys of records that tell of an evaluation."""


AUTOMODEL = KeyGrammar(
    grammar=Grammar(
        family="NeMo Automodel",
        rate_of_replicas=True,
        anchor=_NEVER,
        order=("tokens",),
        first_step=0,
        covers="one",
        pauses_inside=True,
    ),
    has=("step", "tps", "num_tokens_per_step"),
    keys={
        "step": ("step",),
        "loss": ("loss",),
        "tokens": ("num_tokens_per_step",),
        "tokens_per_second": ("tps",),
        "tokens_per_second_per_gpu": ("tps_per_gpu",),
    },
    time="timestamp",
    evaluation=("val_loss",),
)

LLAMAFACTORY = KeyGrammar(
    grammar=Grammar(family="LLaMA-Factory", anchor=_NEVER, order=("counter",), pauses_inside=True),
    has=("current_steps", "elapsed_time"),
    keys={
        "step": ("current_steps",),
        "loss": ("loss",),
        "elapsed_seconds": ("elapsed_time",),
        "total_tokens": ("total_tokens",),
        "total_steps": ("total_steps",),
        "epoch": ("epoch",),
    },
    evaluation=("eval_loss",),
)

MEGATRON_HISTORY = KeyGrammar(
    grammar=Grammar(family="Megatron-LM", anchor=_NEVER, covers="one", order=("printed",)),
    has=("_step", "lm loss"),
    keys={
        "step": ("iteration", "_step"),
        "loss": ("lm loss",),
        "seconds": ("iteration-time",),
        "tflops": ("throughput",),
        "batch": ("batch-size",),
        "world_size": ("world-size",),
    },
    time="_timestamp",
)

TRACKER_HISTORY = KeyGrammar(
    grammar=Grammar(
        family="Weights & Biases", anchor=_NEVER, order=("printed", "counter", "tokens"), covers="interval"
    ),
    has=("_step", "_timestamp"),
    keys={
        "step": ("train/global_step", "trainer/global_step", "global_step", "_step"),
        "loss": ("train/loss", "loss", "train_loss", "loss_metrics/global_avg_loss", "train/CE loss"),
        "seconds": (
            "time_metrics/end_to_end(s)",
            "train/step_time",
            "throughput/duration",
            "perf/step_time_seconds",
        ),
        "elapsed_seconds": ("train/train_runtime",),
        "total_tokens": ("train/num_input_tokens_seen",),
        "mfu_percent": ("mfu(%)", "throughput/mfu"),
        "mfu": ("throughput/device/mfu",),
        "tflops": ("tflops", "throughput/tflops/device", "perf/per_device_tflops_per_sec"),
        "tokens_per_second_per_gpu": ("throughput(tps)",),
        "data_seconds": ("time_metrics/data_loading(s)",),
    },
    time="_timestamp",
)

MS_SWIFT = KeyGrammar(
    grammar=Grammar(family="ms-swift", anchor=_NEVER, order=("mean_counter", "counter"), pauses_inside=True),
    has=("global_step/max_steps",),
    keys={
        "step": ("global_step/max_steps",),
        "loss": ("loss",),
        "mean_seconds": ("train_speed(s/it)",),
        "mean_rate": ("train_speed(iter/s)",),
        "elapsed_seconds": ("elapsed_time",),
    },
    evaluation=("eval_loss",),
)

KINDS = (MS_SWIFT, AUTOMODEL, LLAMAFACTORY, MEGATRON_HISTORY, TRACKER_HISTORY)


class JsonLines:
    """Reads JSON lines; the kind of record is chosen by the keys of each line."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def feed(self, block: bytes, arrived: float | None) -> None:
        """Take a block of whole lines; lines without a step are not decoded."""
        for line in _lines_with(block, positions(block, _ANCHORS)):
            document = _decoded(line)
            if document is not None:
                self._take(document, arrived)

    def finish(self, arrived: float | None) -> None:
        """Nothing waits."""

    def _take(self, document: Mapping[str, Any], arrived: float | None) -> None:
        for kind in KINDS:
            if all(key in document for key in kind.has):
                stamp = _stamp(document.get(kind.time)) if kind.time else None
                values = _values(kind, document)
                if "loss" not in values and any(key in document for key in kind.evaluation):
                    self._engine.mark(
                        Mark(kind="eval", done=True), Origin(stamp=stamp, arrived_at_seconds=arrived)
                    )
                elif "loss" in values and "step" in values:
                    self._offer(kind, values, stamp, arrived)
                return

    def _offer(
        self, kind: KeyGrammar, values: dict[str, float], stamp: Stamp | None, arrived: float | None
    ) -> None:
        for name in ("world_size", "total_steps"):
            if name in values:
                self._engine.book.set(name, int(values[name]), "history")
        if "batch" in values:
            self._engine.book.set("global_batch_size", int(values["batch"]), "history")
        if "mfu_percent" in values:
            values["mfu"] = values["mfu_percent"] / 100
        self._engine.offer(
            kind.grammar,
            values,
            family=kind.grammar.family,
            origin=Origin(stamp=stamp, arrived_at_seconds=arrived),
        )


def _lines_with(block: bytes, places: list[int]) -> Iterator[bytes]:
    end = -1
    while True:
        place = next_position(places, end + 1)
        if place is None:
            return
        start = block.rfind(b"\n", end + 1, place) + 1 or end + 1
        end = block.find(b"\n", place)
        end = len(block) if end < 0 else end
        yield block[start:end]


def _decoded(line: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _values(kind: KeyGrammar, document: Mapping[str, Any]) -> dict[str, float]:
    values: dict[str, float] = {}
    for quantity, keys in kind.keys.items():
        value = next((document[key] for key in keys if document.get(key) is not None), None)
        number = _number(value, duration=quantity == "elapsed_seconds")
        if number is not None:
            values[quantity] = number
    if math.isnan(values.get("step", 0.0)):
        values.pop("step")
    return values


def _number(value: object, *, duration: bool) -> float | None:
    if isinstance(value, str):
        return parse_duration(value) if duration else parse_number(value.partition("/")[0])
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _stamp(value: object) -> Stamp | None:
    if isinstance(value, int | float):
        return Stamp(seconds=float(value), dated=True, zoned=True)
    return read_stamp(value) if isinstance(value, str) else None
