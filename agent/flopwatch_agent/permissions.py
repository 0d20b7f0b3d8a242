"""May a job's own user read a file? The agent may read more than users, so it asks before it reads for them."""

import os
from pathlib import Path


def allows(status: os.stat_result, uid: int, groups: frozenset[int], wanted: int = 4) -> bool:
    """Whether mode bits give a user ``wanted`` (4 read, 1 search). Access lists are not asked: the mode decides."""
    if uid == 0:
        return True
    if status.st_uid == uid:
        return bool(status.st_mode >> 6 & wanted)
    if status.st_gid in groups:
        return bool(status.st_mode >> 3 & wanted)
    return bool(status.st_mode & wanted)


def may_read(path: Path, uid: int, groups: frozenset[int]) -> bool:
    """Whether the user could open the file for reading: every folder on its way searched, as written and resolved."""
    if uid == 0:
        return True
    try:
        ways = {*path.parents, *path.resolve().parents}
        reachable = all(allows(os.stat(folder), uid, groups, 1) for folder in ways)  # noqa: PTH116 - follows links
        return reachable and allows(os.stat(path), uid, groups)  # noqa: PTH116 - follows links
    except OSError:
        return False
