"""Work that people ask of a store that is open: the same whether this process holds it or a collector does."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from flopwatch_collector.store.exporting import Export, Names, export
from flopwatch_collector.store.port import Control, Progress, Store

Answer = dict[str, Any]
CopyControl = Callable[[Path], None]


class Work:
    """Asked for by name, with a mapping of options; answers are mappings that JSON can carry."""

    def __init__(self, store: Store, control: Control, copy_control: CopyControl | None = None) -> None:
        self._store = store
        self._control = control
        self._copy_control = copy_control
        self._known: dict[str, Callable[[Mapping[str, Any], Progress], Answer]] = {
            "stats": self._stats,
            "check": self._check,
            "compact": self._compact,
            "export": self._export,
            "backup": self._backup,
        }

    def do(self, name: str, options: Mapping[str, Any], progress: Progress) -> Answer:
        """Do it and say what came of it.

        Raises:
            ValueError: there is no such work, or an option is wrong.
            OSError: a file or folder cannot be used.
            Unavailable: something cannot be written or reached.
            NotSupported: the store cannot do it.
            TooSlow: a question took too long.
        """
        if name not in self._known:
            raise ValueError(f"no such work: {name!r}; known: {', '.join(self._known)}")
        return self._known[name](options, progress)

    def _stats(self, _: Mapping[str, Any], __: Progress) -> Answer:
        return asdict(self._store.stats()) | {"first_sample_seconds": self._store.first_sample_seconds()}

    def _check(self, _: Mapping[str, Any], progress: Progress) -> Answer:
        return {"problems": [asdict(problem) for problem in self._store.check(progress)]}

    def _compact(self, _: Mapping[str, Any], progress: Progress) -> Answer:
        return {"freed_bytes": self._store.compact(progress)}

    def _export(self, options: Mapping[str, Any], progress: Progress) -> Answer:
        try:
            wanted = msgspec.convert(dict(options), Export, dec_hook=lambda kind, value: kind(value))
        except msgspec.ValidationError as problem:
            raise ValueError(f"export: {problem}") from None
        done = export(self._store, Names.of(self._control), wanted, progress)
        return asdict(done) | {"output": str(done.output)}

    def _backup(self, options: Mapping[str, Any], progress: Progress) -> Answer:
        saved = self._store.backup(Path(options["destination"]), self._copy_control, progress)
        return asdict(saved) | {"folder": str(saved.folder)}
