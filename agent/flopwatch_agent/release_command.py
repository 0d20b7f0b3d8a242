"""``flopwatch agent release`` and ``resume``: let go of the GPUs' device files, for MIG changes, resets and drivers."""

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Literal

from flopwatch import settings
from flopwatch_agent.config import data_folder, settings_from
from flopwatch_agent.gpu_files_state import OPEN, RELEASED, running_agent, state

WAIT_SECONDS = 5.0
LOOK_SECONDS = 0.05
Wish = Literal["release", "resume"]
WORDS = {
    "release": "the agent (pid {pid}) has closed the GPUs' device files; flopwatch agent resume opens them again",
    "resume": "the agent (pid {pid}) opens the GPUs' device files again",
}


def main(argv: list[str]) -> int:
    """Ask the running agent; 1 when there is none, or it did not do it within five seconds."""
    arguments = parser().parse_args(argv)
    wish: Wish = arguments.wish
    tables = settings.load(arguments.config or settings.default_file(os.environ))
    folder = data_folder(settings_from(tables, os.environ), os.environ)
    done, text = ask(folder, wish)
    if arguments.json:
        sys.stdout.write(json.dumps({"wish": wish, "done": done, "text": text}) + "\n")
    else:
        (sys.stdout if done else sys.stderr).write(f"flopwatch: {text}\n")
    return 0 if done else 1


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    made = argparse.ArgumentParser(
        prog="flopwatch agent", description="Close the GPUs' device files, or open them again."
    )
    made.add_argument("wish", choices=("release", "resume"))
    made.add_argument("--config", type=Path, help="the agent's settings file, for its agent.data_dir")
    made.add_argument("--json", action="store_true", help="print JSON")
    return made


def ask(folder: Path, wish: Wish) -> tuple[bool, str]:
    """Whether it was done, and a sentence on it."""
    try:
        pid = running_agent(folder)
        if pid is None:
            return False, f"no agent uses agent.data_dir {folder}; is it another one (--config)?"
        os.kill(pid, signal.SIGUSR1 if wish == "release" else signal.SIGUSR2)
    except OSError as error:
        return (
            False,
            f"the agent of agent.data_dir {folder} cannot be asked ({error.strerror}): run this as its user",
        )
    wanted = RELEASED if wish == "release" else OPEN
    until = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < until:
        if state(folder) == wanted:
            return True, WORDS[wish].format(pid=pid)
        time.sleep(LOOK_SECONDS)
    return (
        False,
        f"the agent (pid {pid}) did not do it within {WAIT_SECONDS:g} s: a call into the driver may be stuck",
    )
