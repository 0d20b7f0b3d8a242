"""``flopwatch agent``: arguments, logging, signals."""

import argparse
import gc
import logging
import os
import signal
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import FrameType

from flopwatch import settings
from flopwatch.settings import SettingError
from flopwatch_agent import release_command
from flopwatch_agent.config import settings_from
from flopwatch_agent.daemon import Daemon

logger = logging.getLogger("flopwatch_agent")
GARBAGE_THRESHOLDS = (5000, 10, 10)


def main(argv: list[str]) -> int:
    """Run the agent until SIGTERM or SIGINT; 2 when a setting is wrong.

    ``release`` and ``resume`` ask a running one.
    """
    if argv[:1] in (["release"], ["resume"]):
        return release_command.main(argv)
    arguments = parser().parse_args(argv)
    logging.basicConfig(
        level=logging.DEBUG if arguments.verbose else logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    os.environ.pop("NVML_MPS_DEVICE_ENUMERATION", None)  # it changes the device view and forbids most calls
    tables = settings.load(arguments.config or settings.default_file(os.environ))
    try:
        daemon = Daemon(settings_from(tables, os.environ), os.environ, own_version())
    except SettingError as error:
        sys.stderr.write(f"flopwatch: {error}\n")
        return 2
    listen(daemon)
    gc.freeze()  # what was imported lives as long as the process: collections need not walk through it
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    outcome = daemon.run()
    if outcome == "restart":
        logger.warning("starting a new process")
        sys.stderr.flush()
        os.execv(sys.executable, [sys.executable, "-m", "flopwatch_agent", *argv])  # noqa: S606 - this program again
    if outcome == "stuck":
        logging.shutdown()
        os._exit(0)  # a call stuck in the driver can keep the interpreter from ending, or crash it
    return 0


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    made = argparse.ArgumentParser(
        prog="flopwatch agent",
        description="The agent of a training node.",
        epilog="flopwatch agent release closes the device files of a running agent's GPUs, resume opens them again.",
    )
    made.add_argument("--config", type=Path, help="settings file; default: /etc/flopwatch/flopwatch.toml")
    made.add_argument("--verbose", action="store_true", help="log more")
    return made


def listen(daemon: Daemon) -> None:
    """SIGTERM and SIGINT end; SIGUSR1 closes the GPUs' device files, SIGUSR2 opens them again."""

    def end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the form of a handler
        daemon.stop()

    def release(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the form of a handler
        daemon.release(released=number == signal.SIGUSR1)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, release)


def own_version() -> str:
    """The installed version of flopwatch."""
    try:
        return version("flopwatch")
    except PackageNotFoundError:
        return "unknown"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
