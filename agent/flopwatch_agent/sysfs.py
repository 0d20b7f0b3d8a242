"""Read small kernel files under a root that tests can move; what cannot be read is None and counted."""

import os
from pathlib import Path

NUMBER_BYTES = 256
HELD_BYTES = 1 << 16


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


class HeldFiles:
    """Files that are read again and again: opened once and read from their beginning each time.

    What was opened stays open until ``close``, also when its name is gone: close when a device came or went.
    """

    def __init__(self, tree: KernelTree) -> None:
        self._tree = tree
        self._open: dict[str, int] = {}
        self._absent: set[str] = set()

    def bytes(self, path: str) -> bytes | None:
        """The file's first bytes; None when it cannot be read, and then it is not tried again before ``close``."""
        descriptor = self._open.get(path)
        if descriptor is None:
            if path in self._absent:
                return None
            try:
                descriptor = os.open(f"{self._tree.root}/{path}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            except OSError as error:
                self._absent.add(path)
                self._tree.unreadable += not isinstance(error, FileNotFoundError)
                return None
            self._open[path] = descriptor
        try:
            return os.pread(descriptor, HELD_BYTES, 0)
        except OSError:
            self._tree.unreadable += 1
            os.close(self._open.pop(path))
            self._absent.add(path)
            return None

    def number(self, path: str) -> int | None:
        """The file's whole number, also of ``number@time``; None when it holds something else."""
        content = self.bytes(path)
        if content is None:
            return None
        try:
            return int(content)
        except ValueError:
            head = content.partition(b"@")[0].strip()
            return int(head) if head.isdigit() else None

    def close(self) -> None:
        """Close all; each is opened anew when it is read again."""
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()
        self._absent.clear()
