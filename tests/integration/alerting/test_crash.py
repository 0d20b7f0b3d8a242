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
