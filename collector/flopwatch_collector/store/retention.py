"""What is older than the settings say goes, by unlinking whole files."""

from collections.abc import Iterable, Mapping

from flopwatch_collector.store import listing
from flopwatch_collector.store.closing import SUMMARIES
from flopwatch_collector.store.columns import microseconds
from flopwatch_collector.store.ground import Ground
from flopwatch_collector.store.layout import RawFile, removed, size_of
from flopwatch_collector.store.port import RollupKind, StoreSettings
from flopwatch_collector.store.rollup import Rollups

DAY_SECONDS = 86_400.0


def expired_raw(ground: Ground, now: float, settings: StoreSettings) -> frozenset[RawFile]:
    """Closed files all of whose rows are too old, and the oldest hours beyond the most bytes that raw rows may take."""
    limit = microseconds(now - settings.raw_days * DAY_SECONDS)
    current = ground.catalogue.peek().files
    files = [file for table, closed in current.items() if table not in SUMMARIES for file in closed]
    old = frozenset(file for file in files if file.end < limit)
    if settings.raw_bytes is None:
        return old
    return old | _beyond(settings.raw_bytes, [file for file in files if file not in old])


def _beyond(most_bytes: float, files: Iterable[RawFile]) -> frozenset[RawFile]:
    """Files of the hours that arrived first, until the rest is small enough."""
    hours: dict[int, list[RawFile]] = {}
    for file in files:
        hours.setdefault(file.number, []).append(file)
    sizes = {number: sum(size_of(file.path) for file in hour) for number, hour in hours.items()}
    total, gone = sum(sizes.values()), set[RawFile]()
    for number in sorted(hours):
        if total <= most_bytes:
            break
        total -= sizes[number]
        gone.update(hours[number])
    return frozenset(gone)


def drop_raw(ground: Ground, gone: frozenset[RawFile]) -> int:
    """Forget closed files and remove them when no reader uses them; returns bytes freed."""
    if not gone:
        return 0
    ground.catalogue.swap(lambda catalogue: catalogue.without(gone))
    ground.catalogue.wait_for_readers()
    with ground.listing:
        listing.forget(ground.folder.root, gone)
        return removed(file.path for file in gone)


def drop_rollups(rollups: Iterable[Rollups], now: float, settings: StoreSettings) -> int:
    """Remove files all of whose windows are too old; returns bytes freed."""
    days: Mapping[RollupKind, float] = {
        "job5m": settings.rollup_days,
        "ledger5m": settings.rollup_days,
        "job1h": settings.hourly_days,
        "ledger1d": settings.hourly_days,
    }
    freed = 0
    for rollup in rollups:
        limit = microseconds(now - days[rollup.kind] * DAY_SECONDS)
        freed += rollup.drop(frozenset(file for file in rollup.state.peek().files if file.end < limit))
    return freed
