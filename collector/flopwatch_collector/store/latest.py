"""The newest sample of every GPU, kept in memory."""

import threading

import numpy as np
import numpy.typing as npt

from flopwatch_collector.model import GPU_COLUMNS, Columns

Floats = npt.NDArray[np.float64]

_TIME, _GPU = GPU_COLUMNS.index("ts"), GPU_COLUMNS.index("gpu")


class Latest:
    """A row a GPU, in the order of their numbers; written by one thread, read by any."""

    def __init__(self, samples: Columns) -> None:
        self._lock = threading.Lock()
        self._table: Floats = np.empty((len(GPU_COLUMNS), 0))
        self.update(samples)

    def update(self, samples: Columns) -> None:
        """Take over samples that are not older than what is known; of equal times the last one given."""
        if not len(samples["ts"]):
            return
        incoming = np.stack([np.asarray(samples[name], dtype=np.float64) for name in GPU_COLUMNS])
        order = np.lexsort((incoming[_TIME], incoming[_GPU]))
        numbers = incoming[_GPU][order]
        newest = order[np.append(numbers[1:] != numbers[:-1], True)]
        with self._lock:
            self._merge(incoming[:, newest])

    def _merge(self, incoming: Floats) -> None:
        known = self._table[_GPU]
        at = np.searchsorted(known, incoming[_GPU])
        old = np.zeros(len(at), dtype=bool)
        inside = at < len(known)
        old[inside] = known[at[inside]] == incoming[_GPU][inside]
        fresher = old.copy()
        fresher[old] = incoming[_TIME][old] >= self._table[_TIME][at[old]]
        self._table[:, at[fresher]] = incoming[:, fresher]
        if not old.all():
            self._table = np.insert(self._table, at[~old], incoming[:, ~old], axis=1)

    def table(self) -> Columns:
        """A copy, ``GPU_COLUMNS``."""
        with self._lock:
            copy = self._table.copy()
        return dict(zip(GPU_COLUMNS, copy, strict=True))
