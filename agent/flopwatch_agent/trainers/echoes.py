"""What several ranks say, each once: only the first of them tells something new."""

from collections import OrderedDict

_MOST_TEXTS = 64


class Echoes:
    """Remembers by which writers a text was said."""

    def __init__(self) -> None:
        self._writers: OrderedDict[str, set[str]] = OrderedDict()

    def repeats(self, text: str, writer: str) -> bool:
        """Whether another writer has said it and this one had not yet; where lines have no label nothing is an echo."""
        if not writer:
            return False
        writers = self._writers.setdefault(text, set())
        self._writers.move_to_end(text)
        if len(self._writers) > _MOST_TEXTS:
            self._writers.popitem(last=False)
        echo = bool(writers) and writer not in writers
        if not echo:
            writers.clear()
        writers.add(writer)
        return echo
