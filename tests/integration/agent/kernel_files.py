"""Builds procfs and sysfs trees from the recorded ones in tests/fixtures/sysfs."""

from pathlib import Path

RECORDED = Path(__file__).parents[2] / "fixtures" / "sysfs"


def build(root: Path, *names: str) -> Path:
    """The recorded trees below ``root``."""
    for name in names:
        for line in (RECORDED / f"{name}.tree").read_text().splitlines():
            if line.startswith("#") or not line.strip():
                continue
            path, _, content = line.partition(" =")
            write(root, path, content.removeprefix(" "))
    return root


def write(root: Path, path: str, content: str = "") -> None:
    target = root / path
    if path.endswith("/"):
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content + "\n")
