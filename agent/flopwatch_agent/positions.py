"""How far each log was read and sent, kept so that it agrees with the spool after any crash.

The positions that belong to a batch are written before the batch, under its number, and become the positions
once the batch is in the spool. A crash in between leaves positions without a batch: they are thrown away, and
the rows are read, and sent, again from where the last whole batch ended.
"""

import json
import os
from pathlib import Path

from flopwatch_agent.log_follow import Position

CURRENT = "log_positions.json"
MAX_KEPT = 2000


class Positions:
    """The positions below a folder, by ``device:inode``."""

    def __init__(self, folder: Path, committed_sequence: int) -> None:
        self._folder = folder
        self._kept: dict[str, Position] = {}
        self._prepared: tuple[int, dict[str, Position]] | None = None
        for path in sorted(folder.glob(f"{CURRENT}.*")):
            suffix = path.name.rpartition(".")[2]
            if suffix.isdigit() and int(suffix) <= committed_sequence:
                path.replace(folder / CURRENT)
            else:
                path.unlink()
        self._kept = read_positions(folder / CURRENT)

    def get(self, identity: str) -> Position | None:
        """Where to go on in a file; None for a file that was never read."""
        return self._kept.get(identity)

    def prepare(self, sequence: int, positions: dict[str, Position]) -> None:
        """Write what will hold once batch ``sequence`` is in the spool.

        Raises:
            OSError: the disk is full or cannot be written.
        """
        if self._prepared is not None:
            Path(self._prepared_file(self._prepared[0])).unlink(missing_ok=True)
            self._prepared = None
        if all(self._kept.get(identity) == position for identity, position in positions.items()):
            return
        merged = {**self._kept, **positions}
        for identity in positions:
            merged[identity] = merged.pop(identity)
        kept = dict(list(merged.items())[-MAX_KEPT:])
        rows = {key: [item.job, item.source_id, item.offset, item.history_end] for key, item in kept.items()}
        self._prepared = (sequence, kept)
        # Written under its own name: torn, it has no batch, and is thrown away.
        with open(self._prepared_file(sequence), "wb") as file:  # noqa: PTH123 - text, as below
            file.write(json.dumps(rows).encode())

    def commit(self, sequence: int) -> None:
        """Batch ``sequence`` is in the spool."""
        if self._prepared is not None:
            os.replace(self._prepared_file(sequence), f"{self._folder}/{CURRENT}")  # noqa: PTH105 - as below
            self._kept, self._prepared = self._prepared[1], None

    def _prepared_file(self, sequence: int) -> str:
        """Text: a Path costs more than writing."""
        return f"{self._folder}/{CURRENT}.{sequence}"


def read_positions(path: Path) -> dict[str, Position]:
    """The positions in a file; none when it is not there or was damaged."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        return {
            str(key): Position(
                job=str(row[0]), source_id=str(row[1]), offset=int(row[2]), history_end=int(row[3])
            )
            for key, row in rows.items()
        }
    except (OSError, ValueError, AttributeError, IndexError, TypeError):
        return {}
