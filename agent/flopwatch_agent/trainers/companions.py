"""Parts of a row that other lines print before it."""

from collections.abc import Mapping

_OF_THE_EPOCH = "epoch_number"
"""Holds for the rows to come too."""


class Companions:
    """Keeps what lines said of the row that is to come."""

    def __init__(self) -> None:
        self._values: dict[str, float] = {}
        self._family = ""

    def add(self, values: Mapping[str, float], family: str) -> None:
        """Take a line's part. A line with the step begins anew; a time is the completing line's to tell."""
        before = self._values if self._family == family else {}
        if "step_in_epoch" in values:
            before = _of_epoch(before)
        found = {name: value for name, value in values.items() if name != "seconds"}
        self._values, self._family = {**before, **found}, family

    def complete(self, values: Mapping[str, float], family: str) -> tuple[dict[str, float], str]:
        """The row's values with what was said of it, and the family that prints rows so."""
        if not self._values:
            return dict(values), family
        merged = {**self._values, **values}
        self._values = _of_epoch(self._values)
        return merged, self._family


def _of_epoch(values: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in values.items() if name == _OF_THE_EPOCH}
