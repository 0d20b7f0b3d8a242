"""What sources said of a run, joined."""

from dataclasses import replace

from flopwatch.wire import RunFacts


def joined_runs(old: tuple[RunFacts, ...], new: tuple[RunFacts, ...]) -> tuple[RunFacts, ...]:
    """Facts of all sources, one a (source, origin, launch); a newer one fills in and overrides an older."""
    joined = {(run.source, run.origin, run.session): run for run in old}
    for run in new:
        key = (run.source, run.origin, run.session)
        joined[key] = _filled(joined[key], run) if key in joined else run
    return tuple(joined.values())


def _filled(old: RunFacts, new: RunFacts) -> RunFacts:
    known = {name: value for name in RunFacts.__slots__ if (value := getattr(new, name)) is not None}
    if new.kind == "unknown":
        known["kind"] = old.kind
    if old.shape and new.shape:
        known["shape"] = {**old.shape, **new.shape}
    return replace(old, **known)
