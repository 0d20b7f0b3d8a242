"""``flopwatch run -- CMD``: run a command and record its steps and GPUs, with no daemon and no root."""

import argparse
import dataclasses
import json
import logging
import os
import re
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flopwatch import settings
from flopwatch.settings import SettingError
from flopwatch_agent.__main__ import own_version
from flopwatch_agent.attribution import program_name
from flopwatch_agent.config import AgentSettings, settings_from
from flopwatch_agent.log_formats import log_formats
from flopwatch_agent.run_recorder import MESSAGE_BYTES, RunPlan, record
from flopwatch_agent.run_relay import Relay, Stream, block, exit_like, note, opened, spawn, write_all
from flopwatch_agent.run_summary import text_of

READY_SECONDS = 10.0
SUMMARY_SECONDS = 25.0
DEFAULT_INTERVAL_SECONDS = 5.0
NOT_FOUND, NOT_RUNNABLE = 127, 126
UNSAFE = re.compile(r"[^\w.-]+")
logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Recording:
    """The recorder's process, as the relay sees it."""

    pid: int
    control: socket.socket

    def tell(self, **message: object) -> bool:
        """Whether it took the message; a recorder that is gone is no reason to stop."""
        try:
            self.control.send(json.dumps(message).encode())
        except OSError:
            return False
        return True

    def heard(self, seconds: float) -> dict[str, Any] | None:
        """Its next message; None when none comes in time."""
        self.control.settimeout(seconds)
        try:
            body = self.control.recv(MESSAGE_BYTES)
        except OSError:
            return None
        finally:
            self.control.settimeout(None)
        return json.loads(body) if body else None


def main(argv: list[str]) -> int:
    """Run the command; its own exit status, 2 for wrong use, 126 or 127 where it cannot be started.

    Raises:
        SettingError: a setting or an option cannot be used.
    """
    arguments = parser().parse_args(argv)
    command = tuple(arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command)
    if not command:
        sys.stderr.write("flopwatch run: no command; use: flopwatch run [OPTIONS] -- COMMAND [ARGUMENTS]\n")
        return 2
    plan = plan_of(arguments, command)
    if arguments.job:
        os.environ["FLOPWATCH_JOB_NAME"] = arguments.job
    return run(plan, as_json=arguments.json)


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    made = argparse.ArgumentParser(
        prog="flopwatch run",
        usage="flopwatch run [OPTIONS] -- COMMAND [ARGUMENTS]",
        description="Run a command, pass its output on unchanged, and record its steps, GPUs and NICs: "
        "no daemon, no root. Start one on each node; 'flopwatch replay DIR' joins their recordings.",
    )
    made.add_argument(
        "--job", metavar="NAME", help="the job's name; default: the scheduler's, else the script's"
    )
    made.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="folder of the recording; default: flopwatch-run-NAME-JOB-OR-TIME",
    )
    made.add_argument("--interval", type=float, metavar="SECONDS", help="time between samples; default: 5")
    made.add_argument("--collector", metavar="URL", help="send what is recorded to a collector, too")
    made.add_argument(
        "--config", type=Path, metavar="FILE", help="settings file; only its table [agent] is used"
    )
    made.add_argument(
        "--json", action="store_true", help="print the summary as JSON; on standard error, as always"
    )
    made.add_argument("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return made


def plan_of(arguments: argparse.Namespace, command: tuple[str, ...]) -> RunPlan:
    """What is to be recorded, and where it goes; the folder exists then.

    Raises:
        SettingError: a setting or an option cannot be used.
    """
    tables = settings.load(arguments.config) if arguments.config is not None else {}
    chosen = with_options(settings_from(tables, os.environ), arguments, given=is_interval_given(tables))
    log_formats(chosen.log_format)
    if chosen.collector_url is not None:
        chosen.bearer()
    name = UNSAFE.sub(
        "-", arguments.job or os.environ.get("SLURM_JOB_NAME") or program_name(command) or "command"
    )
    moment = time.strftime("%Y%m%d-%H%M%S")
    folder = arguments.output or Path(f"flopwatch-run-{name}-{os.environ.get('SLURM_JOB_ID') or moment}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingError(
            "--output", str(folder), f"a folder that can be written ({error.strerror})"
        ) from error
    stem = f"{UNSAFE.sub('-', chosen.node_name)}.{moment}.{os.getpid()}"
    return RunPlan(argv=command, folder=folder.absolute(), stem=stem, settings=chosen, version=own_version())


def is_interval_given(tables: dict[str, Any]) -> bool:
    """Whether somebody chose the agent's interval."""
    return "interval_seconds" in tables.get("agent", {}) or "FLOPWATCH_AGENT_INTERVAL_SECONDS" in os.environ


def with_options(chosen: AgentSettings, arguments: argparse.Namespace, *, given: bool) -> AgentSettings:
    """The settings with what the options say."""
    if arguments.interval is not None:
        chosen = dataclasses.replace(chosen, interval_seconds=arguments.interval)
    elif not given:
        chosen = dataclasses.replace(chosen, interval_seconds=DEFAULT_INTERVAL_SECONDS)
    return dataclasses.replace(chosen, collector_url=arguments.collector) if arguments.collector else chosen


def run(plan: RunPlan, *, as_json: bool) -> int:
    """Start the recorder and the command, relay until it ends, and print what came out."""
    try:
        streams = opened(plan.folder, plan.stem)
    except OSError as error:
        raise SettingError(
            "--output", str(plan.folder), f"a folder that can be written ({error.strerror})"
        ) from error
    mask = block()
    recording = start_recorder(plan, streams)
    ready = recording.heard(READY_SECONDS)
    environ = dict(os.environ)
    if ready is not None and ready.get("socket"):
        environ["FLOPWATCH_SOCKET"] = ready["socket"]
    try:
        pid = spawn(plan.argv, environ, streams, mask)
    except OSError as error:
        return not_started(plan, error, recording, streams)
    recording.tell(pid=pid)
    status = Relay(pid, streams, lambda index: recording.tell(broken=index)).run()
    recording.tell(ended=os.waitstatus_to_exitcode(status))
    say(recording, as_json=as_json)
    return exit_like(status)


def start_recorder(plan: RunPlan, streams: tuple[Stream, ...]) -> Recording:
    """Fork the recorder; it never returns here."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        theirs.close()
        return Recording(pid=pid, control=ours)
    status = 1
    try:
        ours.close()
        record(plan, theirs, streams)
        status = 0
    except Exception:
        logger.exception("the recorder failed")
    finally:
        logging.shutdown()
        os._exit(status)


def not_started(plan: RunPlan, error: OSError, recording: Recording, streams: Sequence[Stream]) -> int:
    """Say why the command could not be started, and leave nothing behind."""
    recording.control.close()
    os.waitpid(recording.pid, 0)
    for path in (*(one.path for one in streams), *plan.folder.glob(f"{plan.stem}.*")):
        path.unlink(missing_ok=True)
    note(f"{plan.argv[0]}: {error.strerror}")
    return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_RUNNABLE


def say(recording: Recording, *, as_json: bool) -> None:
    """Print the summary on standard error: standard output is the command's alone."""
    message = recording.heard(SUMMARY_SECONDS)
    if message is None:
        note("the recorder ended early; its log stands beside the recording")
        return
    found = message["summary"]
    text = json.dumps(found, indent=2, allow_nan=False) + "\n" if as_json else text_of(found)
    try:
        write_all(2, text.encode())
    except OSError as error:
        logger.debug("nobody takes the summary: %s", error)
