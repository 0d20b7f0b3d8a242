"""``flopwatch demo``: a simulated cluster through the real collector; no GPU, no network, no account."""

import argparse
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from flopwatch.settings import SettingError
from flopwatch_collector import __main__ as collector
from flopwatch_collector import app
from flopwatch_collector.config import AlertSettings, CollectorSettings, CostSettings, Settings
from flopwatch_collector.config_costs import CloudCosts, OwnCosts
from flopwatch_deploy import demo_folder
from flopwatch_deploy.server import how_to_look, say, serve, state_folder
from flopwatch_deploy.simulation import cluster

EXAMPLE_OWN = OwnCosts(
    capex_per_gpu=40_000.0,
    life_years=4.0,
    residual_ratio=0.10,
    cost_of_capital=0.0,
    colo_kw_per_gpu=1.3,
    colo_per_kw_month=150.0,
    maintenance_ratio=0.04,
    electricity_per_kwh=0.10,
    pue=1.3,
    idle_kw_per_gpu=0.30,
    busy_kw_per_gpu=1.10,
)
"""Made up, like the team of two for 128 GPUs: with this cloud price owning pays from 70 % on."""
EXAMPLE_CLOUD = CloudCosts(price_per_gpu_hour=2.78, price_source="example")
GPUS_PER_ENGINEER = 64.0
ENGINEER_PER_YEAR = 200_000.0
RACKS = r"(n\d+)\d$"
"""Ten nodes of the simulated cluster are a rack: ``gpu-n117`` is in ``n11``."""
ALERT_AFTER_SECONDS = 60.0
"""The rules wait half an hour on a real cluster; nobody looks at a demo for so long."""


def main(argv: list[str]) -> int:
    """Run the demo until told to stop; 2 when it cannot start.

    Raises:
        SettingError: a setting is wrong.
    """
    asked = _parser().parse_args(argv)
    logging.basicConfig(
        level=logging.WARNING, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    now = time.time() // 10.0 * 10.0
    try:
        cluster.build(seed=asked.seed, gpus=asked.gpus, days=asked.days, now_seconds=now)
        with demo_folder.fresh(state_folder(os.environ) / "demo") as folder:
            return _serve(asked, folder, now)
    except ValueError as error:
        if isinstance(error, SettingError):
            raise
        say(f"flopwatch demo: {error}")
    except (collector.CannotStart, demo_folder.NotADemoFolder) as error:
        say(f"flopwatch demo: {error}")
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="flopwatch demo", description="A simulated cluster; its data say SIMULATED."
    )
    parser.add_argument(
        "--gpus", type=int, default=1024, help="a multiple of 8 from 128 to 16384 (default 1024)"
    )
    parser.add_argument("--days", type=int, default=30, help="days of history, 1 to 90 (default 30)")
    parser.add_argument(
        "--seed", type=int, default=7, help="the same seed gives the same cluster (default 7)"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=8095, help="port to listen on; 0 takes a free one")
    parser.add_argument("--insecure", action="store_true", help="serve beyond this machine without a token")
    return parser


def _settings(asked: argparse.Namespace, folder: Path) -> Settings:
    return Settings(
        collector=CollectorSettings(
            host=asked.host,
            port=asked.port,
            data_dir=folder / "collector",
            insecure=asked.insecure,
            rack_pattern=RACKS,
            # The whole cluster pushes from one address here.
            ingest_requests_per_second=100_000.0,
        ),
        costs=_costs(asked.gpus),
        alerts=AlertSettings(
            mfu_low_for_seconds=ALERT_AFTER_SECONDS, idle_held_for_seconds=ALERT_AFTER_SECONDS
        ),
    )


def _costs(gpus: int) -> CostSettings:
    """Example costs of a fleet of that size."""
    own = replace(
        EXAMPLE_OWN,
        gpus=float(gpus),
        staff_fte=gpus / GPUS_PER_ENGINEER,
        staff_cost_per_fte=ENGINEER_PER_YEAR,
    )
    return CostSettings(price_is_example=True, own=own, cloud=EXAMPLE_CLOUD)


def _serve(asked: argparse.Namespace, folder: Path, now: float) -> int:
    began = time.monotonic()

    @contextmanager
    def beside(running: app.Running, address: str) -> Iterator[None]:
        say(f"flopwatch demo: {asked.gpus:,} simulated GPUs, seed {asked.seed}; the first page is being made")
        port = int(address.rstrip("/").rpartition(":")[2])
        with _feed(asked, port, now) as feed:
            threading.Thread(target=_report_progress, args=(feed,), daemon=True).start()
            threading.Thread(target=_announce, args=(running, address, began), daemon=True).start()
            yield

    return serve(_settings(asked, folder), os.environ, beside, simulated=True)


@contextmanager
def _feed(asked: argparse.Namespace, port: int, now: float) -> Iterator["subprocess.Popen[bytes]"]:
    """The process that pushes the simulated cluster, ended with the demo."""
    host = "127.0.0.1" if asked.host in ("0.0.0.0", "::") else asked.host  # noqa: S104 - compared, not bound
    options = {
        "host": host,
        "port": port,
        "gpus": asked.gpus,
        "days": asked.days,
        "seed": asked.seed,
        "now": now,
    }
    command = [sys.executable, "-m", "flopwatch_deploy.simulation.feed"]
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    feed = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)  # noqa: S603 - our own module
    try:
        yield feed
    finally:
        feed.terminate()
        feed.wait(10)


def _announce(running: app.Running, address: str, began: float) -> None:
    """Say where to look once the first page has data."""
    while not running.ready():
        time.sleep(0.2)
    say(f"  first page after {time.monotonic() - began:.1f} s: {how_to_look(address)}")


def _report_progress(feed: "subprocess.Popen[bytes]") -> None:
    """One line a tenth of the history that was sent."""
    shown = 0
    for line in feed.stdout or ():
        tenths = int(json.loads(line)["history_ratio"] * 10)
        if tenths > shown:
            shown = tenths
            say(f"  history: {tenths * 10} % sent")
    status = feed.wait()
    if status not in (0, -15):
        say(f"flopwatch demo: the simulated cluster ended with status {status}; the pages no longer move")
