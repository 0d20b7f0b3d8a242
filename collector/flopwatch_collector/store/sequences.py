"""Which batches have arrived, exactly: runs of sequence numbers by (node, spool)."""

from bisect import bisect_right

from flopwatch_collector.model import BatchId


class Sequences:
    """Runs that touch are joined, so a spool that arrives in order is one run whatever its length."""

    def __init__(self) -> None:
        self._runs: dict[tuple[str, str], list[list[int]]] = {}

    def __contains__(self, batch: BatchId) -> bool:
        runs = self._runs.get((batch.node, batch.spool), [])
        at = bisect_right(runs, batch.sequence, key=lambda run: run[0]) - 1
        return at >= 0 and batch.sequence <= runs[at][1]

    def add(self, batch: BatchId) -> None:
        """Remember a batch."""
        self.add_run(batch.node, batch.spool, batch.sequence, batch.sequence)

    def add_run(self, node: str, spool: str, first: int, last: int) -> None:
        """Remember all batches from ``first`` to ``last``."""
        runs = self._runs.setdefault((node, spool), [])
        begin = bisect_right(runs, first, key=lambda run: run[0])
        if begin and runs[begin - 1][1] >= first - 1:
            begin -= 1
            first = runs[begin][0]
        end = begin
        while end < len(runs) and runs[end][0] <= last + 1:
            last = max(last, runs[end][1])
            end += 1
        runs[begin:end] = [[first, last]]

    def runs(self, node: str, spool: str) -> list[list[int]]:
        """Runs of a spool that have arrived, in order, as [first, last]."""
        return [list(run) for run in self._runs.get((node, spool), ())]
