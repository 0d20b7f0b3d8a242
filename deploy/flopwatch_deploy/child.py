"""A child process that is started again when it ends by itself, and ended with its parent."""

import logging
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
STOP_SECONDS = 10.0

log = logging.getLogger(__name__)


class Child:
    """Keeps one command running while the context lasts."""

    def __init__(self, name: str, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self._name = name
        self._command = list(command)
        self._environ = dict(environ)
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep, name=f"keep-{name}", daemon=True)

    def __enter__(self) -> "Child":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        process = self._process
        if process is not None and process.poll() is None:
            process.terminate()
        self._thread.join(STOP_SECONDS)
        if process is not None and process.poll() is None:
            log.warning("%s did not end within %g s and is killed", self._name, STOP_SECONDS)
            process.kill()
            self._thread.join(STOP_SECONDS)

    def _keep(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while not self._stopping.is_set():
            began = time.monotonic()
            self._process = subprocess.Popen(self._command, env=self._environ, start_new_session=True)  # noqa: S603
            if self._stopping.is_set():
                self._process.terminate()
            status = self._process.wait()
            if self._stopping.is_set():
                return
            if status == 2:
                log.error("%s cannot start (its message is above) and is not tried again", self._name)
                return
            pause = FIRST_PAUSE_SECONDS if time.monotonic() - began > LONGEST_PAUSE_SECONDS else pause
            log.warning("%s ended with status %s; started again in %g s", self._name, status, pause)
            self._stopping.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
