"""``flopwatch <command>``: finds the room of a command by name, and imports it only when it is asked for."""

import importlib
import importlib.metadata
import sys
from dataclasses import dataclass

from flopwatch.settings import SettingError


@dataclass(frozen=True, slots=True)
class Command:
    """Where a command lives, and the line ``flopwatch --help`` shows."""

    module: str
    summary: str
    needs_server: bool = False


COMMANDS = {
    "up": Command(
        "flopwatch_deploy.up", "collector, dashboard and, where a GPU is, an agent on this machine", True
    ),
    "demo": Command(
        "flopwatch_deploy.demo", "a simulated cluster through the real collector; no GPU needed", True
    ),
    "agent": Command("flopwatch_agent.__main__", "the agent of a training node"),
    "collector": Command("flopwatch_deploy.collector", "the collector, with its dashboard", True),
    "dashboard": Command(
        "flopwatch_deploy.dashboard", "the dashboard as its own process, over a collector or Prometheus", True
    ),
    "run": Command(
        "flopwatch_agent.run_command", "run -- COMMAND: record a command's steps and GPUs, without any daemon"
    ),
    "doctor": Command("flopwatch_agent.doctor", "what can be read on this node, what cannot, and why"),
    "logs": Command("flopwatch_agent.log_check", "logs check FILE: what the log reader makes of a file"),
    "mfu": Command("flopwatch.calculator", "MFU from model, GPU, batch and step time, with its arithmetic"),
    "breakeven": Command(
        "flopwatch_collector.breakeven_command", "the utilisation from which owning pays, from a cost file"
    ),
    "plan": Command("flopwatch_collector.plan_command", "GPUs, hours, energy and money that a run takes"),
    "compare": Command(
        "flopwatch_collector.compare_command", "two runs of the same work, by cost, speed and loss"
    ),
    "job": Command(
        "flopwatch.job_command", "job set|unset|show JOB: declare facts of a job, show what was found"
    ),
    "node": Command(
        "flopwatch.node_command",
        "node drain|undrain|spare|unspare|maint|unmaint|health|list: what holds of nodes and GPUs",
    ),
    "tail": Command("flopwatch_agent.tail", "tail FILE: hand a log to the agent as the job's own user"),
    "token": Command("flopwatch_collector.token_command", "create, list and revoke access tokens", True),
    "store": Command(
        "flopwatch_collector.store_command",
        "check, export, back up and restore what the collector keeps",
        True,
    ),
    "budgets": Command(
        "flopwatch.budgets_command",
        "what was used of budgets and quotas, and where their periods will end",
    ),
    "goodput": Command(
        "flopwatch.goodput_command",
        "goodput job|fleet|model: what interruptions cost, what faster recovery would bring",
    ),
    "report": Command(
        "flopwatch_collector.report_command",
        "a period's ledger, chargeback, jobs and verdict as HTML, CSV, JSON, Parquet or FOCUS",
        True,
    ),
    "replay": Command(
        "flopwatch_collector.replay_command", "replay FILE: recorded batches through ingest and ledger", True
    ),
    "alerts": Command(
        "flopwatch_collector.alerts_command",
        "alerts check|test|silence|ack: rules on the past, channels, silences",
        True,
    ),
}


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit status (2: wrong use or a wrong setting)."""
    argv = sys.argv[1:] if arguments is None else arguments
    if not argv or argv[0] in ("-h", "--help"):
        sys.stdout.write(usage())
        return 0 if argv else 2
    if argv[0] == "--version":
        sys.stdout.write(f"flopwatch {importlib.metadata.version('flopwatch')}\n")
        return 0
    command = COMMANDS.get(argv[0])
    if command is None:
        sys.stderr.write(f"flopwatch: no command {argv[0]!r}; allowed: {', '.join(COMMANDS)}\n")
        return 2
    return run(command, argv[1:])


def usage() -> str:
    """The help text: one line a command."""
    lines = [f"  {name:<10} {command.summary}" for name, command in COMMANDS.items()]
    return (
        "usage: flopwatch COMMAND [OPTIONS]\n\n"
        + "\n".join(lines)
        + "\n\nflopwatch COMMAND --help tells more.\n"
    )


def run(command: Command, argv: list[str]) -> int:
    """Import the command's module and call its ``main(argv)``."""
    try:
        module = importlib.import_module(command.module)
    except ModuleNotFoundError as error:
        if not command.needs_server or (error.name or "").startswith("flopwatch"):
            raise
        sys.stderr.write(
            f"flopwatch: this command needs the server's packages ({error.name} is missing): "
            "pip install 'flopwatch[server]'\n"
        )
        return 2
    try:
        return int(module.main(argv) or 0)
    except SettingError as error:
        sys.stderr.write(f"flopwatch: {error}\n")
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
