"""Slurm asked by its commands: fixed arguments, no shell, a limit of time and size. Only at the collector."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flopwatch_collector.schedulers.reading import SchedulerUnreachable

MOST_BYTES = 1 << 30
SHOWN_CHARACTERS = 200
NO_JSON = (
    "unrecognized option",
    "invalid option",
    "Unknown option",
    "unknown option",
    "is disabled",
    "unrecognized arguments",
)
"""What commands say that have no such answer: an older Slurm, or one without accounting."""
MORE = {
    "reservations": ("scontrol", "show", "reservation", "--json"),
    "qos": ("sacctmgr", "show", "qos", "--json"),
}


@dataclass(kw_only=True)
class SlurmCommands:
    """Runs ``squeue``, ``scontrol``, ``sinfo``, ``sacct`` and ``sacctmgr``."""

    folder: Path | None = None
    """Where the commands are; None: on ``PATH``."""
    timeout_seconds: float = 20.0
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    _absent: set[str] = field(default_factory=set, repr=False)
    """Answers that this Slurm does not have: not asked for again."""

    def jobs(self) -> Mapping[str, Any]:
        """``squeue --json``, of all users and partitions."""
        found = self._run(("squeue", "--all", "--json"))
        if found is None:
            raise SchedulerUnreachable("squeue knows no --json: Slurm 21.08 or newer is needed")
        return found

    def nodes(self) -> Mapping[str, Any] | None:
        """``scontrol show nodes --json``; before 23.02 ``sinfo --json`` lists the nodes."""
        found = self._once("nodes", ("scontrol", "show", "nodes", "--json"))
        if found is None:
            found = self._run(("sinfo", "--all", "--json"))
        return found if found is not None and "nodes" in found else None

    def more(self, what: str, since_seconds: float) -> Mapping[str, Any] | None:
        """Reservations, QOS, or the jobs of accounting since a time."""
        if what in MORE:
            return self._once(what, MORE[what])
        since = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(since_seconds))
        return self._once(what, ("sacct", "--allusers", "--json", f"--starttime={since}"))

    def _once(self, what: str, command: tuple[str, ...]) -> Mapping[str, Any] | None:
        """The answer, unless it turned out that there is none."""
        if what in self._absent:
            return None
        found = self._run(command)
        if found is None:
            self._absent.add(what)
        return found

    def _run(self, command: tuple[str, ...]) -> Mapping[str, Any] | None:
        """The JSON that a command prints; None when it has no such option.

        Raises:
            SchedulerUnreachable: it is not there, fails, takes too long, or prints no JSON.
        """
        shown = " ".join(command)
        try:
            done = subprocess.run(  # noqa: S603 - a fixed program with fixed arguments
                (self._program(command[0]), *command[1:]),
                capture_output=True,
                timeout=self.timeout_seconds,
                check=False,
                stdin=subprocess.DEVNULL,
                env={**self.environ, "LC_ALL": "C"},
            )
        except subprocess.TimeoutExpired as error:
            raise SchedulerUnreachable(f"{shown} takes longer than {self.timeout_seconds:g} s") from error
        except OSError as error:
            raise SchedulerUnreachable(f"{shown} cannot be run: {error.strerror}") from error
        said = done.stderr.decode(errors="replace").strip()
        if done.returncode != 0 or not done.stdout.strip():
            if any(words in said for words in NO_JSON):
                return None
            raise SchedulerUnreachable(f"{shown} ends with {done.returncode}: {said[:SHOWN_CHARACTERS]}")
        return document(done.stdout, shown)

    def _program(self, name: str) -> str:
        folder = None if self.folder is None else str(self.folder)
        found = shutil.which(name, path=folder or self.environ.get("PATH"))
        if found is None:
            where = f"in {folder}" if folder else "on PATH"
            raise SchedulerUnreachable(f"there is no {name} {where}")
        return found


def document(body: bytes, origin: str) -> Mapping[str, Any]:
    """The JSON object in an answer.

    Raises:
        SchedulerUnreachable: there is none, or it is larger than anything that is read.
    """
    if len(body) > MOST_BYTES:
        raise SchedulerUnreachable(f"{origin} answers more than {MOST_BYTES} bytes")
    try:
        found = json.loads(body)
    except ValueError as error:
        raise SchedulerUnreachable(f"{origin} answers no JSON: {error}") from error
    if not isinstance(found, dict):
        raise SchedulerUnreachable(f"{origin} answers no JSON object")
    return found
