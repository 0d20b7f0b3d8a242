"""Small files of jobs, read whole, and only when they are regular files: opening a pipe would wait for its writer."""

import os
import stat
from pathlib import Path

MAX_BYTES = 1 << 20


def regular_bytes(path: Path) -> bytes | None:
    """A regular file's content; None for anything else.

    Raises:
        ValueError: it is larger than a model's configuration can be.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        content = os.read(descriptor, MAX_BYTES + 1)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if len(content) > MAX_BYTES:
        raise ValueError("larger than 1 MiB")
    return content
