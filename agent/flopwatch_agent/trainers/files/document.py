"""``trainer_state.json`` of the HF Trainer: steps and losses without any time."""

import json
from collections.abc import Mapping
from typing import Any

from flopwatch_agent.trainers.engine import Engine
from flopwatch_agent.trainers.grammar import Grammar, anchor
from flopwatch_agent.trainers.reading import Origin

MAX_DOCUMENT_BYTES = 64 << 20
"""A larger document is not read."""

TRAINER_STATE = Grammar(
    family="HF Trainer",
    anchor=anchor(r"(?!)"),
    order=("counter",),
    warms_up=False,
    no_time="trainer_state.json holds no times: read the log or TensorBoard, or use the flopwatch callback",
)
_COUNTERS = (
    ("num_tokens", "total_tokens"), ("num_input_tokens_seen", "total_tokens"), ("train_runtime", "elapsed_seconds"),
)  # fmt: skip


class JsonDocument:
    """Waits for the end of the document, then reads its log history."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, block: bytes, arrived: float | None) -> None:  # noqa: ARG002 - the format has no times
        """Keep a block."""
        self._size += len(block)
        if self._size <= MAX_DOCUMENT_BYTES:
            self._parts.append(block)
        else:
            self._parts.clear()

    def finish(self, arrived: float | None) -> None:
        """Read the document."""
        try:
            document = json.loads(b"".join(self._parts) or b"null")
        except (ValueError, RecursionError):
            self._engine.findings.say("unreadable_document", "the JSON document is incomplete or damaged")
            return
        history = document.get("log_history") if isinstance(document, dict) else None
        if not isinstance(history, list):
            return
        for name, fact in (("logging_steps", "log_interval"), ("max_steps", "total_steps")):
            if isinstance(document.get(name), int) and document[name] > 0:
                self._engine.book.set(fact, document[name], "trainer_state.json")
        for entry in history:
            if isinstance(entry, Mapping):
                self._take(entry, arrived)

    def _take(self, entry: Mapping[str, Any], arrived: float | None) -> None:
        step, loss = entry.get("step"), entry.get("loss")
        if not isinstance(step, int) or not isinstance(loss, int | float):
            return
        values = {"step": float(step), "loss": float(loss)}
        for key, quantity in _COUNTERS:
            if isinstance(entry.get(key), int | float):
                values[quantity] = float(entry[key])
        self._engine.offer(
            TRAINER_STATE, values, family="HF Trainer", origin=Origin(arrived_at_seconds=arrived)
        )
