"""A collector's alerting that dies by SIGKILL as soon as a message is durable, before anything is sent.

Arguments: folder, receiver's address, begin of the story, whether to die.
"""

import os
import signal
import sys
from pathlib import Path

from tests.integration.alerting.test_engine import STEP, job

from flopwatch_collector.alerting.delivery.notifier import Notifier, Pending
from flopwatch_collector.alerting.delivery.webhook import Webhook
from flopwatch_collector.alerting.engine import AlertEngine
from flopwatch_collector.config import AlertSettings
from flopwatch_collector.facts import Facts
from flopwatch_collector.store.control_sqlite import SqliteControl


class DyingNotifier(Notifier):
    """Dies where the messages of a change are to be handed to the workers."""

    def hand_over(self, pending: Pending) -> None:
        if pending.entries:
            os.kill(os.getpid(), signal.SIGKILL)


def main(folder: Path, url: str, begin: float) -> None:
    control = SqliteControl(folder / "control.db")
    notifier = DyingNotifier([Webhook(name="oncall", url=url)], control)
    engine = AlertEngine(control, notifier, AlertSettings(mfu_low_for_seconds=120.0, group_wait_seconds=0.0))
    engine.start()
    for number in range(100):
        now = begin + number * STEP
        engine.evaluate(Facts(now=now, jobs=(job(now, 0.31),), nodes=(), verdict=None, cluster="a"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
