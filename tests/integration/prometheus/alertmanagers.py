"""A real Alertmanager for tests: groups by cluster and alert, and tells one receiver."""

import contextlib
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tests.integration.prometheus.servers import eventually, program
from tests.ports import free_port

CONFIG = """
route:
  receiver: hook
  group_by: [cluster, alertname]
  group_wait: 1s
  group_interval: 1s
  repeat_interval: 1h
receivers:
  - name: hook
    webhook_configs:
      - url: {url}
"""


@contextlib.contextmanager
def alertmanager_for(url: str, folder: Path) -> Iterator[str]:
    """Host and port of a running Alertmanager whose messages go to ``url``."""
    address = f"127.0.0.1:{free_port()}"
    (folder / "alertmanager.yml").write_text(CONFIG.format(url=url))
    command = [
        program("prometheus-alertmanager"), f"--config.file={folder / 'alertmanager.yml'}",
        f"--storage.path={folder / 'data'}", f"--web.listen-address={address}", "--cluster.listen-address=",
    ]  # fmt: skip
    with (folder / "alertmanager.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        eventually(lambda: _ready(f"http://{address}/-/ready"))
        yield address
    finally:
        process.terminate()
        process.wait(20)


def _ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
