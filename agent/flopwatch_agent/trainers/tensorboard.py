"""TensorBoard event files: the few parts of TFRecord and protobuf that scalars need."""

import struct

from flopwatch_agent.trainers.clocks import Stamp
from flopwatch_agent.trainers.engine import Engine
from flopwatch_agent.trainers.grammar import Grammar, anchor
from flopwatch_agent.trainers.protobuf import fields
from flopwatch_agent.trainers.reading import Origin

MAX_RECORD_BYTES = 8 << 20
"""A longer record (images, graphs) is skipped without being kept."""

_FRAME_BYTES = 12
_FOOTER_BYTES = 4
_FLOAT_TYPE = 1
_DOUBLE_TYPE = 2

EVENTS = Grammar(
    family="TensorBoard", anchor=anchor(r"(?!)"), order=("printed", "timestamps"), pauses_inside=True
)
TAGS = {
    "lm loss": "loss", "loss_metrics/global_avg_loss": "loss", "train/loss": "loss", "loss": "loss",
    "train_loss": "loss", "learning/loss": "loss", "train/train_loss": "loss", "reduced_train_loss": "loss",
    "train/lm_loss": "loss", "loss/train/total": "loss", "train/CE loss": "loss", "train/CrossEntropyLoss": "loss",
    "lm-loss-training/lm loss": "loss", "train_loss_step": "loss", "train/loss_step": "loss", "lm_loss": "loss",
    "iteration-time": "seconds", "time_metrics/end_to_end(s)": "seconds", "perf/step_time_seconds": "seconds",
    "runtime/iteration_time": "seconds", "train_step_timing in s": "seconds", "train/step_time": "seconds",
    "iteration-time/iteration-time": "seconds", "timing_s/step": "seconds", "time/step": "seconds",
    "throughput": "tflops", "throughput/tflops/device": "tflops", "tflops": "tflops",
    "perf/per_device_tflops_per_sec": "tflops", "TFLOPS_per_GPU": "tflops",
    "mfu(%)": "mfu_percent", "throughput/device/mfu": "mfu",
    "throughput(tps)": "tokens_per_second_per_gpu",
    "time_metrics/data_loading(s)": "data_seconds",
    "perf/per_device_tokens_per_sec": "tokens_per_second_per_gpu", "wps": "tokens_per_second_per_gpu",
    "perf/total_num_tokens": "tokens", "batch-size/batch-size": "batch",
    "batch-size": "batch", "world-size": "world_size",
    "train/num_input_tokens_seen": "total_tokens", "train/num_tokens": "total_tokens",
}  # fmt: skip
"""Scalars that say something of a step, by trainer's tag; twins over samples have other tags."""


def is_event_file(data: bytes) -> bool:
    """Whether the bytes begin an event file: its first record names the format."""
    return b"brain.Event:" in data[:64] and len(data) >= _FRAME_BYTES


class EventFile:
    """Reads an event file as it grows. A step is complete when the next one begins."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._rest = b""
        self._skip = 0
        self._step: int | None = None
        self._values: dict[str, float] = {}
        self._wall = 0.0
        self._arrived: float | None = None

    def feed(self, data: bytes, arrived: float | None) -> None:
        """Take the next bytes."""
        self._arrived = arrived
        if self._skip:
            dropped = min(self._skip, len(data))
            self._skip, data = self._skip - dropped, data[dropped:]
        self._rest += data
        while len(self._rest) >= _FRAME_BYTES:
            (length,) = struct.unpack_from("<Q", self._rest)
            whole = _FRAME_BYTES + length + _FOOTER_BYTES
            if length > MAX_RECORD_BYTES:
                dropped = min(whole, len(self._rest))
                self._skip, self._rest = whole - dropped, self._rest[dropped:]
                continue
            if len(self._rest) < whole:
                return
            self._event(self._rest[_FRAME_BYTES : _FRAME_BYTES + length])
            self._rest = self._rest[whole:]

    def finish(self) -> None:
        """The last step is complete."""
        self._complete()

    def _event(self, record: bytes) -> None:
        try:
            wall, step, scalars = _scalars(record)
        except (ValueError, struct.error, IndexError):
            self._engine.findings.say(
                "damaged_event", "the event file holds a damaged record; it was left out"
            )
            return
        if not scalars:
            return
        if step != self._step:
            self._complete()
            self._step = step
        self._wall = wall
        self._values.update(scalars)

    def _complete(self) -> None:
        values, self._values = self._values, {}
        if self._step is None or not ("loss" in values or "seconds" in values):
            return
        if "mfu_percent" in values:
            values["mfu"] = values["mfu_percent"] / 100
        if "world_size" in values:
            self._engine.book.set("world_size", int(values["world_size"]), "event file")
        if "batch" in values:
            self._engine.book.set("global_batch_size", int(values["batch"]), "event file")
        values["step"] = float(self._step)
        stamp = Stamp(seconds=self._wall, dated=True, zoned=True)
        self._engine.offer(
            EVENTS, values, family="TensorBoard", origin=Origin(stamp=stamp, arrived_at_seconds=self._arrived)
        )


def _scalars(record: bytes) -> tuple[float, int, dict[str, float]]:
    """Wall time, step and the known scalars of an event (fields 1, 2, 5)."""
    wall, step = 0.0, 0
    found: dict[str, float] = {}
    for field, value in fields(record):
        if field == 1 and isinstance(value, bytes) and len(value) == 8:
            (wall,) = struct.unpack("<d", value)
        elif field == 2 and isinstance(value, int):
            step = value
        elif field == 5 and isinstance(value, bytes):
            for inner, item in fields(value):
                if inner == 1 and isinstance(item, bytes):
                    tag, scalar = _summary_value(item)
                    if tag in TAGS and scalar is not None:
                        found.setdefault(TAGS[tag], scalar)
    return wall, step, found


def _summary_value(item: bytes) -> tuple[str, float | None]:
    tag, scalar = "", None
    for field, value in fields(item):
        if field == 1 and isinstance(value, bytes):
            tag = value.decode("utf-8", "replace")
        elif field == 2 and isinstance(value, bytes) and len(value) == 4:
            scalar = float(struct.unpack("<f", value)[0])
        elif field == 8 and isinstance(value, bytes):
            scalar = _tensor(value)
    return tag, scalar


def _tensor(item: bytes) -> float | None:
    """The single value of a tensor: in its content (field 4) or its lists of float (5) or double (6)."""
    kind, content = _FLOAT_TYPE, b""
    for field, value in fields(item):
        if field == 1 and isinstance(value, int):
            kind = value
        elif field in (4, 5, 6) and isinstance(value, bytes) and value:
            content = value
    if kind == _DOUBLE_TYPE and len(content) >= 8:
        return float(struct.unpack_from("<d", content)[0])
    return float(struct.unpack_from("<f", content)[0]) if kind == _FLOAT_TYPE and len(content) >= 4 else None
