"""Which machine and which boot this is."""

import uuid
from hashlib import sha256
from pathlib import Path

from flopwatch_agent.sysfs import KernelTree


def boot_id(proc: KernelTree) -> str:
    """The kernel's id of this boot; a random one where there is none, which then lasts as long as the agent."""
    return proc.text("sys/kernel/random/boot_id") or str(uuid.uuid4())


def machine_id(path: Path = Path("/etc/machine-id")) -> str | None:
    """A name of the machine that lasts over boots: a hash, for the file itself is not to leave the machine."""
    try:
        text = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    return sha256(b"flopwatch\0" + text.encode()).hexdigest()[:32] if text else None
