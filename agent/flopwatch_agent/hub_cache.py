"""A model's configuration in the cache of the Hugging Face Hub: ``models--ORG--NAME/snapshots/REVISION/config.json``.

A training script that names a model by its name on the Hub has its ``config.json`` there once it was downloaded.
"""

import itertools
import re
from collections.abc import Callable

from flopwatch_agent.job_paths import JobPath
from flopwatch_agent.small_files import regular_bytes

NAME = re.compile(r"[\w.-]{1,96}(?:/[\w.-]{1,96})?")
REVISION = re.compile(r"[0-9a-f]{40}")
MAX_REVISIONS = 64


def model_caches(variable: Callable[[str], str | None]) -> tuple[str, ...]:
    """Where a job's environment keeps downloaded models."""
    hub, home, user = variable("HF_HUB_CACHE"), variable("HF_HOME"), variable("HOME")
    if hub is not None:
        return (hub,)
    if home is not None:
        return (f"{home}/hub",)
    return (f"{user}/.cache/huggingface/hub",) if user is not None else ()


def is_model_name(text: str) -> bool:
    """Whether a word may be a model's name on the Hub, and is no path."""
    return NAME.fullmatch(text) is not None and not text.startswith((".", "/")) and ".." not in text


def cached_config(cache: JobPath, name: str) -> JobPath | None:
    """The ``config.json`` of a model in a cache; None where it is not, or the revision cannot be told.

    The cache keeps a file once, under ``blobs``, and makes every revision's file a link to it: the link is followed
    by its text, and only to that folder, since links in a container lead elsewhere outside of it.
    """
    model = cache.below("models--" + name.replace("/", "--"))
    snapshots = model.below("snapshots")
    revision = _revision(model) or _only(snapshots)
    if revision is None:
        return None
    path = snapshots.below(revision).below("config.json")
    try:
        blob = path.way.readlink()
    except OSError:
        return path
    return model.below("blobs").below(blob.name) if blob.parent.name == "blobs" else None


def _revision(model: JobPath) -> str | None:
    try:
        content = regular_bytes(model.way / "refs" / "main")
    except ValueError:
        return None
    text = (content or b"").decode("ascii", "replace").strip()
    return text if REVISION.fullmatch(text) else None


def _only(snapshots: JobPath) -> str | None:
    try:
        names = [item.name for item in itertools.islice(snapshots.way.iterdir(), MAX_REVISIONS)]
    except OSError:
        return None
    return names[0] if len(names) == 1 and REVISION.fullmatch(names[0]) else None
