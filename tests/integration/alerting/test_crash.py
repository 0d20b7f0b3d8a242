import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.integration.alerting.test_engine import START, Site, open_site  # noqa: F401

ROOT = Path(__file__).parents[3]


def test_a_process_that_is_killed_when_the_message_is_durable_neither_loses_nor_doubles_it(
    receiver: Any,
    tmp_path: Path,
    open_site: Callable[..., Site],  # noqa: F811
) -> None:
    child = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.integration.alerting.evaluating_process",
            tmp_path,
            receiver.url,
            str(START),
        ],
        cwd=ROOT,
        timeout=60,
        check=False,
    )
    assert child.returncode == -signal.SIGKILL
    assert receiver.received == []

    site = open_site()
    site.now = START + 135.0
    site.run(300, 0.31)
    receiver.wait_for(1)
    site.run(300, 0.50)
    receiver.wait_for(2)

    assert [one.body["status"] for one in receiver.settle()] == ["firing", "resolved"]


def test_a_group_that_waits_when_the_process_is_killed_speaks_once_in_the_next(
    receiver: Any,
    tmp_path: Path,
    open_site: Callable[..., Site],  # noqa: F811
) -> None:
    """Killed between *firing* and the end of the group's wait: nothing is in the outbox yet."""
    arguments = [tmp_path, receiver.url, str(START), "--after", "10", "--group-wait", "60"]
    child = subprocess.run(
        [sys.executable, "-m", "tests.integration.alerting.evaluating_process", *arguments],
        cwd=ROOT,
        timeout=60,
        check=False,
    )
    assert child.returncode == -signal.SIGKILL
    assert receiver.received == []

    site = open_site(group_wait_seconds=60.0)
    assert [row.state for row in site.engine.active()] == ["firing"]
    site.now = START + 150.0
    site.run(300, 0.31)
    site.restart()
    site.run(300, 0.31)

    (message,) = receiver.settle()
    assert message.body["status"] == "firing"
