"""One log file, opened only when it is a regular file: reading a pipe or a terminal would steal the job's output."""

import ctypes
import os
import stat
import struct
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

HEAD_BYTES = 256
STATX_BIRTH, EMPTY_PATH = 0x800, 0x1000
STATX_SIZE, BIRTH_OFFSET = 256, 80


class NotRegularError(OSError):
    """What stands behind a path is no regular file; it was not read."""


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """A file on this node, whatever its name is now."""

    device: int
    inode: int

    def __str__(self) -> str:
        return f"{self.device}:{self.inode}"


def identity_of(status: os.stat_result) -> FileIdentity:
    """The identity in a stat result."""
    return FileIdentity(status.st_dev, status.st_ino)


def birth(descriptor: int) -> float | None:
    """When an open file was made, by statx(2), which Python does not have; None where it is not known."""
    try:
        statx = ctypes.CDLL(None, use_errno=True).statx
    except AttributeError:
        return None
    answer = ctypes.create_string_buffer(STATX_SIZE)
    if statx(descriptor, b"", EMPTY_PATH, STATX_BIRTH, answer) != 0:
        return None
    (mask,) = struct.unpack_from("=I", answer, 0)
    if not mask & STATX_BIRTH:
        return None
    seconds, nanoseconds = struct.unpack_from("=qI", answer, BIRTH_OFFSET)
    return float(seconds + nanoseconds * 1e-9)


class LogFile:
    """An open log file and how far it was read.

    Raises:
        NotRegularError: the path leads to a pipe, a terminal, a socket or a folder.
        OSError: it cannot be opened.
    """

    def __init__(self, way: Path, shown_path: str) -> None:
        if not stat.S_ISREG(way.stat().st_mode):
            raise NotRegularError(f"{shown_path} is no regular file")
        # The path may lead elsewhere by now: never wait for a pipe's writer, never become a terminal's owner.
        self._descriptor = os.open(way, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        status = os.fstat(self._descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(self._descriptor)
            raise NotRegularError(f"{shown_path} is no regular file")
        self.identity = identity_of(status)
        self.path = shown_path
        self.offset = 0
        self.size_at_open = status.st_size
        self.born_seconds = birth(self._descriptor)
        """When the file was made; None where the file system does not say."""

    def status(self) -> os.stat_result:
        """The file's size and times now."""
        return os.fstat(self._descriptor)

    def read(self, limit: int) -> bytes:
        """The next bytes, at most ``limit``; empty at the end."""
        data = os.pread(self._descriptor, limit, self.offset)
        self.offset += len(data)
        return data

    def source_id(self) -> str | None:
        """The name under which every node knows this file; None until its first line is complete.

        It is made of the inode and the first line, which are the same on every node that mounts the file system,
        under whatever path and device number; no row can stand before the first line's end.
        """
        head = os.pread(self._descriptor, HEAD_BYTES, 0)
        ends = [position for mark in (b"\n", b"\r") if (position := head.find(mark)) >= 0]
        if not ends and len(head) < HEAD_BYTES:
            return None
        first = head[: min(ends)] if ends else head
        return "file:" + sha256(b"%d\0%s" % (self.identity.inode, first)).hexdigest()[:24]

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._descriptor)
