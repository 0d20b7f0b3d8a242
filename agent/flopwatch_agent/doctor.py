"""``flopwatch doctor``: what can be read on this node, what cannot and why, which jobs and logs were found."""

import argparse
import json
import os
import re
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any, Literal

from flopwatch import settings
from flopwatch.settings import SettingError
from flopwatch_agent.config import AgentSettings, data_folder, settings_from, socket_path
from flopwatch_agent.endpoint_stream import EndpointError, page_of
from flopwatch_agent.log_file import LogFile
from flopwatch_agent.log_finder import READ_PERMISSION, LogFinder, Output
from flopwatch_agent.node_identity import boot_id
from flopwatch_agent.procfs import Procfs
from flopwatch_agent.rounds import Rounds
from flopwatch_agent.sdk_socket import answers
from flopwatch_agent.source import Inventory, ObservedJob
from flopwatch_agent.sources.gpu import GpuSource
from flopwatch_agent.sources.host import HostSource
from flopwatch_agent.sources.jobs import JobsSource
from flopwatch_agent.sources.network import NetworkSource, nvidia_controllers
from flopwatch_agent.sysfs import KernelTree

NVML_SECONDS = 12.0
COLLECTOR_SECONDS = 5.0
CAPABILITIES = {
    "CAP_SYS_PTRACE": (19, "environment and open files of other users' training processes"),
    "CAP_DAC_READ_SEARCH": (2, "logs that only their owner may read"),
    "CAP_SYSLOG": (34, "the kernel's log, in which XIDs stand that no event tells,"),
}
Status = Literal["ok", "warning", "failed"]
MARKS: dict[Status, str] = {"ok": "ok  ", "warning": "note", "failed": "FAIL"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    status: Status
    text: str
    details: dict[str, Any] = field(default_factory=dict)


def main(argv: list[str]) -> int:
    """Look at everything once; 1 when what was asked for, or a job's MFU, cannot be had, 2 when a setting is wrong."""
    arguments = parser().parse_args(argv)
    tables = settings.load(arguments.config or settings.default_file(os.environ))
    chosen = settings_from(tables, os.environ)
    checks = examine(chosen, os.environ, time.time())
    if arguments.json:
        sys.stdout.write(json.dumps({"checks": [asdict(check) for check in checks]}, indent=2) + "\n")
    else:
        for check in checks:
            sys.stdout.write(f"{MARKS[check.status]}  {check.name}: {check.text}\n")
    return 1 if any(check.status == "failed" for check in checks) else 0


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    made = argparse.ArgumentParser(
        prog="flopwatch doctor", description="What can be read on this node, and why not."
    )
    made.add_argument("--config", type=Path, help="settings file; default: /etc/flopwatch/flopwatch.toml")
    made.add_argument("--json", action="store_true", help="print JSON")
    return made


def examine(chosen: AgentSettings, environ: Mapping[str, str], now: float) -> list[Check]:
    """All checks, in the order in which data flows."""
    proc, sys_tree = KernelTree(chosen.proc_root), KernelTree(chosen.sys_root)
    gpus = GpuSource(rounds=Rounds(1.0), gpm=chosen.gpm)
    gpus.start()
    wait_until(lambda: gpus.inventory().reason != "NVML is being opened", NVML_SECONDS)
    wait_until(lambda: gpus.inventory().nvml != "ok" or bool(gpus.latest(time.time())), 3.0)
    time.sleep(1.2 if gpus.inventory().nvml == "ok" else 0.0)  # activity is read from pairs of samples
    inventory = gpus.inventory()
    checks = [
        nvml_check(inventory, nvidia_controllers(sys_tree)),
        *gpu_checks(gpus, inventory),
        ports_check(NetworkSource(sys_tree), now),
        host_check(HostSource(proc, sys_tree), now),
        *capability_checks(proc),
        *job_checks(gpus, inventory, LogFinder(Procfs(proc), chosen.pod_logs), (now, steps_told(chosen))),
        data_check(chosen, environ),
        socket_check(chosen, environ),
        collector_check(chosen),
    ]
    gpus.stop(2.0)
    return checks


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    """Wait for a condition, at most so long."""
    end = time.monotonic() + seconds
    waiting = threading.Event()
    while not condition() and time.monotonic() < end:
        waiting.wait(0.05)


def nvml_check(inventory: Inventory, expected: tuple[str, ...]) -> Check:
    """Whether NVML works and lists every GPU that the PCI bus has."""
    if inventory.nvml != "ok":
        reason = inventory.reason or "it did not answer"
        status: Status = "failed" if expected or inventory.nvml == "failed" else "warning"
        return Check(name="NVML", status=status, text=f"{reason}; NIC and host data are still read")
    seen = {gpu.slot for gpu in inventory.gpus if gpu.state == "ok"}
    missing = [slot for slot in expected if slot not in seen]
    text = f"driver {inventory.driver_version}, {len(seen)} GPUs"
    if missing:
        text += f"; the PCI bus also has {', '.join(missing)}, which NVML does not show"
    return Check(name="NVML", status="failed" if missing else "ok", text=text, details={"missing": missing})


def gpu_checks(gpus: GpuSource, inventory: Inventory) -> list[Check]:
    """Each GPU: what is read of it and what is not."""
    samples = {sample.gpu: sample for sample in gpus.latest(time.time())}
    checks = []
    for gpu in inventory.gpus:
        sample = samples.get(gpu.uuid)
        values = {} if sample is None else {name: getattr(sample, name) for name in type(sample).__slots__}
        absent = sorted(
            name
            for name, value in values.items()
            if value is None and name not in ("job", "interval_seconds")
        )
        text = f"{gpu.name} {gpu.uuid}" + (f": {gpu.reason}" if gpu.reason else "")
        if absent:
            text += f"; not read: {', '.join(absent)}"
        status: Status = "failed" if gpu.state != "ok" else "ok"
        checks.append(Check(name=f"GPU {gpu.slot}", status=status, text=text, details={"not_read": absent}))
    checks += [Check(name="GPU permission", status="warning", text=gap) for gap in inventory.gaps]
    return checks


def ports_check(source: NetworkSource, now: float) -> Check:
    """The NIC ports."""
    ports = source.read(now).port_samples
    names = ", ".join(f"{port.port} ({port.role})" for port in ports) or "none was found"
    return Check(name="NIC ports", status="ok" if ports else "warning", text=names)


def host_check(source: HostSource, now: float) -> Check:
    """The host's own signals."""
    sample = source.read(now).node_samples[0]
    readable = sample.memory_total_bytes is not None
    text = (
        "CPU, memory and disks are read" if readable else "procfs cannot be read: point agent.proc_root at it"
    )
    return Check(name="host", status="ok" if readable else "failed", text=text)


def capability_checks(proc: KernelTree) -> list[Check]:
    """What the agent may look at of other users' jobs."""
    status = proc.text("self/status") or ""
    line = next((row for row in status.splitlines() if row.startswith("CapEff:")), "CapEff: 0")
    held = int(line.split()[1], 16)
    checks = []
    for name, (bit, purpose) in CAPABILITIES.items():
        if held >> bit & 1:
            checks.append(Check(name=name, status="ok", text=f"held: {purpose} can be read"))
        else:
            rest = (
                "the driver's events still tell most XIDs"
                if name == "CAP_SYSLOG"
                else "jobs of this user can"
            )
            text = f"missing: {purpose} cannot be read; {rest}"
            checks.append(Check(name=name, status="warning", text=text))
    return checks


def steps_told(chosen: AgentSettings) -> frozenset[str]:
    """The jobs whose steps the running agent has, by the name that its page gives them; none where none runs."""
    try:
        page = page_of(f"http://127.0.0.1:{chosen.port}/metrics") if chosen.port else b""
    except EndpointError:
        page = b""
    return frozenset(
        re.findall(r'^flopwatch_job_step\{job_id="([^"]*)"\}', page.decode("utf-8", "replace"), re.MULTILINE)
    )


def job_checks(
    gpus: GpuSource, inventory: Inventory, finder: LogFinder, known: tuple[float, frozenset[str]]
) -> list[Check]:
    """The jobs of this moment and where their output goes; failed where no MFU can be had.

    ``known`` is the time, and the jobs whose steps an agent has.
    """
    now, told = known
    jobs = JobsSource(finder.procfs, boot_id(finder.procfs.tree))
    seeds = frozenset() if inventory.nvml == "ok" else jobs.scan(now)
    observed = jobs.observe(now, gpus.processes(), seeds, inventory.gpus)
    checks = [
        Check(name="jobs", status="failed" if gap in jobs.blind else "warning", text=gap) for gap in jobs.gaps
    ]
    checks += [job_check(job, finder, now, told) for job in observed]
    return checks or [Check(name="jobs", status="ok", text="no training process on this node now")]


def job_check(job: ObservedJob, finder: LogFinder, now: float, told: frozenset[str]) -> Check:
    """Whether the steps of one job can be read, and where."""
    found = finder.find(job, now, beside=True)
    outputs = (*found.files, *found.beside)
    problems = {item.path: why for item in outputs if (why := unreadable(item)) is not None}
    paths = [item.path for item in outputs]
    text = f"{job.sighting.name or 'unnamed'}, {len(job.sighting.gpus)} GPUs here; "
    text += f"log {', '.join(paths)}" if paths else found.reason or "no output file was found"
    status: Status = "ok"
    if (job.sighting.scheduler_job_id or job.sighting.ref) in told:
        text += "; the running agent has its steps"
    elif len(problems) == len(paths):
        status = "failed"
        text += "; " + "; ".join(problems.values()) if problems else ""
        text += "; its MFU cannot be had without that, unless it reports steps with flopwatch.StepReporter"
    details = {"logs": paths, "unreadable": sorted(problems)}
    return Check(name=f"job {job.sighting.ref}", status=status, text=text, details=details)


def unreadable(output: Output) -> str | None:
    """Why the agent cannot read a file of a job, with the permission that is missing; None when it can."""
    try:
        LogFile(output.way, output.path).close()
    except PermissionError:
        return f"{output.path} may not be read: {READ_PERMISSION}"
    except OSError as error:
        return f"{output.path} cannot be read: {error.strerror or error}"
    return None


def is_there(path: Path) -> bool:
    """Whether a path is there and can be reached; ``Path.exists`` fails where a folder on the way is closed."""
    return os.path.exists(path)  # noqa: PTH110 - answers False instead


def data_check(chosen: AgentSettings, environ: Mapping[str, str]) -> Check:
    """Whether the spool's folder can be written."""
    folder = data_folder(chosen, environ)
    existing = next((path for path in (folder, *folder.parents) if is_there(path)), Path("/"))
    writable = os.access(existing, os.W_OK | os.X_OK)
    text = f"{folder} can be written" if writable else f"{folder} cannot be written: set agent.data_dir"
    return Check(name="spool", status="ok" if writable else "failed", text=text)


def socket_check(chosen: AgentSettings, environ: Mapping[str, str]) -> Check:
    """Whether an agent listens for the SDK."""
    path = socket_path(chosen, environ)
    if path is None:
        return Check(name="SDK socket", status="ok", text="switched off by agent.sdk_socket")
    live = is_there(path) and answers(path)
    text = f"{path}: an agent listens" if live else f"{path}: no agent listens now"
    return Check(name="SDK socket", status="ok" if live else "warning", text=text)


def collector_check(chosen: AgentSettings) -> Check:
    """Whether the collector answers, and whether there is a token for it."""
    url = chosen.collector_url
    if url is None:
        return Check(
            name="collector", status="warning", text="agent.collector_url is not set: only /metrics is served"
        )
    try:
        token = chosen.bearer()
        with urllib.request.urlopen(url.rstrip("/") + "/healthz", timeout=COLLECTOR_SECONDS) as response:  # noqa: S310
            status = response.status
    except urllib.error.HTTPError as error:
        with error:
            return Check(name="collector", status="failed", text=f"{url} answers {error.code} at /healthz")
    except (OSError, HTTPException, SettingError) as error:
        return Check(name="collector", status="failed", text=f"{url}: {getattr(error, 'reason', error)}")
    text = f"{url} answers {status}" + (
        "" if token else "; no token is set (agent.token or agent.token_file)"
    )
    return Check(name="collector", status="ok", text=text)
