"""Paths as a job's process means them: from its working folder, under its own root, for its own user."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from flopwatch_agent.permissions import allows, may_read
from flopwatch_agent.procfs import Procfs
from flopwatch_agent.source import JobProcess


@dataclass(frozen=True, slots=True)
class JobPath:
    """A path of a process, and how the agent reaches it."""

    way: Path
    """From the agent's root."""
    inside: str
    """As the process writes it, absolute."""
    root: Path | None = None
    """The process's root where it is not the agent's, as in a container."""

    def below(self, name: str) -> "JobPath":
        """The path of something in this folder."""
        return JobPath(self.way / name, f"{self.inside.rstrip('/')}/{name}", self.root)

    def may_be_read_by(self, process: JobProcess) -> bool:
        """Whether the process's user could open it for reading.

        Under another root no link is followed: it would lead out of that root and into the agent's.
        """
        if self.root is None:
            return may_read(self.way, process.uid, process.groups)
        return may_read_below(self.root, self.inside, process.uid, process.groups)


def job_path(procfs: Procfs, process: JobProcess, text: str) -> JobPath | None:
    """The path that ``text`` is to the process; None when its working folder cannot be known."""
    inside = text if text.startswith("/") else f"{_working_folder(procfs, process.pid)}/{text}"
    if not inside.startswith("/"):
        return None
    root = procfs.tree.root / f"{process.pid}/root"
    try:
        is_ours = os.path.samestat(os.stat(root), os.stat("/"))  # noqa: PTH116 - follows the link to the root
    except OSError:
        is_ours = True
    return JobPath(Path(inside), inside) if is_ours else JobPath(root / inside.lstrip("/"), inside, root)


def _working_folder(procfs: Procfs, pid: int) -> str:
    """As the process sees it: the kernel shows it from the agent's root where it can be reached from there."""
    folder, root = procfs.tree.link(f"{pid}/cwd") or "", procfs.tree.link(f"{pid}/root") or "/"
    return (folder.removeprefix(root) or "/") if root != "/" else folder


def may_read_below(root: Path, inside: str, uid: int, groups: frozenset[int]) -> bool:
    """Whether a user could read a path below a root, without a link on the way."""
    here, status = root, None
    try:
        for part in Path(inside).parts[1:]:
            if part == ".." or not allows(os.stat(here), uid, groups, 1):  # noqa: PTH116 - the root is a link
                return False
            here = here / part
            status = here.lstat()
            if stat.S_ISLNK(status.st_mode):
                return False
    except OSError:
        return False
    return status is not None and allows(status, uid, groups)
