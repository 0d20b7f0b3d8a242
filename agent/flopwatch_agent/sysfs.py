"""Read small kernel files under a root that tests can move; what cannot be read is None and counted."""

import os
from pathlib import Path

NUMBER_BYTES = 256


class KernelTree:
    """procfs or sysfs below ``root``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._prefix = (
            f"{root}/"  # joined as text: thousands of reads a minute, and a Path costs more than the read
        )
        self.unreadable = 0
        """Files that exist and could not be read."""

    def text(self, path: str) -> str | None:
        """The file's text without the last line break; None when it is not there or cannot be read."""
        try:
            return self.raw(path).decode("utf-8", "replace").rstrip("\n")
        except FileNotFoundError:
            return None
        except OSError:
            self.unreadable += 1
            return None

    def raw(self, path: str) -> bytes:
        """The file's bytes.

        Raises:
            OSError: it cannot be read; procfs and sysfs answer with many kinds.
        """
        descriptor = os.open(self._prefix + path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            parts = []
            while part := os.read(descriptor, 65_536):
                parts.append(part)
            return b"".join(parts)
        finally:
            os.close(descriptor)

    def number(self, path: str) -> int | None:
        """The file's whole number; None when it holds something else, such as ``N/A (no PMA)``."""
        try:
            descriptor = os.open(self._prefix + path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        except OSError:
            self.unreadable += 1
            return None
        try:
            return int(os.read(descriptor, NUMBER_BYTES))
        except ValueError:
            return None
        except OSError:
            self.unreadable += 1
            return None
        finally:
            os.close(descriptor)

    def names(self, path: str) -> tuple[str, ...]:
        """The names in a folder, sorted; empty when there is none."""
        try:
            return tuple(sorted(os.listdir(self._prefix + path)))  # noqa: PTH208 - names, not paths
        except FileNotFoundError:
            return ()
        except OSError:
            self.unreadable += 1
            return ()

    def link(self, path: str) -> str | None:
        """Where a symbolic link points, as written in it; None when it cannot be read."""
        try:
            return os.readlink(self._prefix + path)  # noqa: PTH115 - the text, not a path
        except OSError:
            return None

    def exists(self, path: str) -> bool:
        """Whether the file or folder is there."""
        return os.path.exists(self._prefix + path)  # noqa: PTH110 - as above
