"""The number of a step, where a trainer counts within an epoch and does not say how many steps one has."""

import math
from collections.abc import Mapping

from flopwatch_agent.trainers.grammar import Grammar

_MOST_EPOCHS = 1_024
_SAME = 0.02
"""Two products of printed figures are the same number within this."""


class EpochCount:
    """Goes on counting where the epoch before ended, as far as its lines tell."""

    def __init__(self) -> None:
        self._before: dict[int, int] = {}
        """Steps before each epoch that was seen."""
        self._passed: dict[int, int] = {}
        """Steps of each epoch as far as they were seen."""
        self._batch: int | None = None
        self._samples: int | None = None

    def count(self, values: Mapping[str, float], grammar: Grammar) -> dict[str, float] | None:
        """The quantities with the step over all epochs; ``None`` where the row is none or its step cannot be known.

        ``covered`` is added where the line tells the first step of its interval, ``uncounted`` where steps lie
        before the row that no line told of.
        """
        found = dict(values)
        if grammar.begun_by and grammar.begun_by not in found:
            return None
        if "interval_begin" in found and "step_in_epoch" in found:
            found["covered"] = found["step_in_epoch"] - found.pop("interval_begin") + 1
        if "step" in found:
            return found
        if "samples_in_epoch" in found:
            return self._by_samples(found)
        if "step_in_epoch" in found and ("epoch_number" in found or "epoch_index" in found):
            self._by_epochs(found, grammar.first_step)
        return found

    def _by_epochs(self, found: dict[str, float], first_step: int) -> None:
        epoch = int(found["epoch_number"] if "epoch_number" in found else found["epoch_index"])
        inside = int(found["step_in_epoch"])
        if epoch not in self._before:
            earlier = max((known for known in self._before if known < epoch), default=None)
            self._before[epoch] = 0
            if earlier is not None:
                passed = self._passed[earlier] * (epoch - earlier)
                self._before[epoch] = self._before[earlier] + passed
                found["uncounted"] = 1.0
            if len(self._before) > _MOST_EPOCHS:
                del self._before[min(self._before)]
        self._passed[epoch] = max(self._passed.get(epoch, 0), inside + 1 - first_step)
        found["step"] = float(self._before[epoch] + inside)

    def _by_samples(self, found: dict[str, float]) -> dict[str, float] | None:
        """From samples: an epoch's first line is of one step, two lines have one step's batch in common."""
        samples, whole = int(found["samples_in_epoch"]), int(found["samples_per_epoch"])
        if self._batch is None or samples % self._batch:
            self._batch = self._batch_of(samples, found)
        before, self._samples = self._samples, samples
        if not self._batch:
            return None
        each, epoch = whole // self._batch, int(found.get("epoch_index", 0))
        found["step"] = float(epoch * each + samples // self._batch)
        begin = before if before is not None and before < samples else 0
        found["covered"] = float((samples - begin) // self._batch)
        return found

    def _batch_of(self, samples: int, found: Mapping[str, float]) -> int | None:
        rate, seconds = found.get("samples_per_second"), found.get("seconds")
        if rate and seconds and abs(rate * seconds / samples - 1.0) <= _SAME:
            return samples
        before = self._samples
        return math.gcd(samples, before) if before and samples != before else None
