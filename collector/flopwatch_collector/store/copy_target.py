"""Opens where ``flopwatch store copy`` copies to."""

import os
import time
from contextlib import ExitStack
from pathlib import Path

from flopwatch_collector.config import CollectorSettings
from flopwatch_collector.store import engines
from flopwatch_collector.store.copying import Target

DAY = 86_400.0


def opened(settings: CollectorSettings, folder: Path, source: Path, parts: ExitStack) -> Target:
    """The target that the settings name; its control state is the folder's own file, or PostgreSQL.

    Raises:
        StoreLocked: a collector uses the folder of the target's control state.
        Unavailable: ClickHouse or PostgreSQL cannot be reached.
        SettingError: a secret cannot be read.
    """
    made = engines.clickhouse(settings, folder, time.time, parts)
    shared = engines.control_url(settings) is not None
    same_file = not shared and os.path.realpath(folder) == os.path.realpath(source)
    return Target(
        store=made.store,
        client=made.client,
        arrivals=made.arrivals,
        control=made.control,
        own_control=not same_file,
        oldest_seconds=time.time() - settings.raw_days * DAY,
    )
