"""``flopwatch up``: collector, dashboard and, where a GPU is, an agent, in one go on one machine."""

import ctypes
import logging
import os
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from flopwatch_collector import __main__ as collector
from flopwatch_collector import app
from flopwatch_collector.config import data_folder
from flopwatch_deploy import demo_folder
from flopwatch_deploy.child import Child
from flopwatch_deploy.server import how_to_look, say, serve

TOKEN_FILE = "local-agent.token"  # noqa: S105 - a file's name


def main(argv: list[str]) -> int:
    """Run until told to stop; 2 when it cannot start.

    Raises:
        SettingError: a setting is wrong.
    """
    parser = collector.parser()
    parser.prog, parser.description = "flopwatch up", "Collector, dashboard and, where a GPU is, an agent."
    parser.add_argument(
        "--agent",
        choices=("auto", "yes", "no"),
        default="auto",
        help="run an agent here (auto: where NVML is)",
    )
    asked = parser.parse_args(argv)
    settings = collector.settings_of(asked, os.environ)
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    folder = data_folder(settings.collector, os.environ)
    if demo_folder.is_demo(folder):
        say(f"flopwatch up: {folder} holds a demo's simulated data; choose another folder with --data-dir")
        return 2
    with_agent = asked.agent == "yes" or (asked.agent == "auto" and has_nvml())

    def beside(running: app.Running, address: str) -> AbstractContextManager[object]:
        say(f"flopwatch up: {how_to_look(address)}")
        if not with_agent:
            say("  no NVIDIA driver library here, so no agent: run 'flopwatch agent' on the training nodes")
            return nullcontext()
        return local_agent(running, address, folder, asked.config)

    try:
        return serve(settings, os.environ, beside)
    except collector.CannotStart as error:
        say(f"flopwatch up: {error}")
        return 2


def has_nvml() -> bool:
    """Whether the NVIDIA driver's library is here."""
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return False
    return True


def local_agent(running: app.Running, address: str, folder: Path, file: Path | None) -> Child:
    """This machine's agent as a child process, pushing to the collector beside it."""
    environ = dict(os.environ)
    environ.setdefault("FLOPWATCH_AGENT_COLLECTOR_URL", address.rstrip("/"))
    environ.setdefault("FLOPWATCH_AGENT_DATA_DIR", str(folder.parent / "agent"))
    if running.tokens.any_valid() and not any(name.startswith("FLOPWATCH_AGENT_TOKEN") for name in environ):
        environ["FLOPWATCH_AGENT_TOKEN_FILE"] = str(_token_file(running, folder))
    command = [sys.executable, "-m", "flopwatch.cli", "agent"]
    return Child("agent", [*command, "--config", str(file)] if file else command, environ)


def _token_file(running: app.Running, folder: Path) -> Path:
    """The file with the local agent's token, made when there is none that is valid."""
    path = folder / TOKEN_FILE
    known = running.tokens.find(path.read_text().strip()) if path.exists() else None
    if known is None:
        _, secret = running.tokens.create("agent", "the agent of 'flopwatch up'")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as target:
            target.write(secret)
    return path
