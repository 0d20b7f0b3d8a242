"""A Kubernetes pod's own output: ``/var/log/pods/<namespace>_<pod>_<uid>/<container>/<restart>.log``."""

import os
import re
import stat
from pathlib import Path

from flopwatch_agent.log_file import FileIdentity, identity_of

POD_LOGS = Path("/var/log/pods")
CURRENT = re.compile(r"(\d+)\.log$")
MAX_CONTAINERS = 16


def pod_logs(root: Path, uid: str) -> dict[FileIdentity, Path]:
    """The file that each container of a pod writes now, of the newest restart; none where the kubelet has none.

    The files are the pod's output, written by the container runtime; links to it are followed.
    """
    found: dict[FileIdentity, Path] = {}
    for folder in _folders(root, "_" + uid):
        for container in _names(folder)[:MAX_CONTAINERS]:
            numbers = [int(match[1]) for name in _names(folder / container) if (match := CURRENT.match(name))]
            path = folder / container / f"{max(numbers)}.log" if numbers else None
            try:
                status = None if path is None else os.stat(path)  # noqa: PTH116 - follows links
            except OSError:
                continue
            if path is not None and status is not None and stat.S_ISREG(status.st_mode):
                found.setdefault(identity_of(status), path)
    return found


def _folders(root: Path, ending: str) -> list[Path]:
    return [root / name for name in _names(root) if name.endswith(ending)]


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names, not paths
    except OSError:
        return []
