"""A collector's alerting that dies by SIGKILL as soon as a message is durable, before anything is sent.

Arguments: folder, receiver's address, begin of the story; ``--after N`` dies after N evaluations instead.
"""

import argparse
import os
import signal
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


def main(options: argparse.Namespace) -> None:
    control = SqliteControl(options.folder / "control.db")
    notifier = DyingNotifier([Webhook(name="oncall", url=options.url)], control)
    settings = AlertSettings(mfu_low_for_seconds=120.0, group_wait_seconds=options.group_wait)
    engine = AlertEngine(control, notifier, settings)
    engine.start()
    for number in range(options.after):
        now = options.begin + number * STEP
        engine.evaluate(Facts(now=now, jobs=(job(now, 0.31),), nodes=(), verdict=None, cluster="a"))
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("url")
    parser.add_argument("begin", type=float)
    parser.add_argument("--after", type=int, default=100)
    parser.add_argument("--group-wait", type=float, default=0.0)
    main(parser.parse_args())
