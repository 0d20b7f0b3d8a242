"""Load of a fleet on a real collector: ``python -m tests.bench.load`` runs the headline figures and prints them.

``--gpus`` runs one load of your own; ``--soak`` one of minutes, for what must stay flat.
"""

import argparse
import json
import shutil
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.bench.load import checking, decoding, report, rivals, scenario
from tests.bench.load.figures import exactness, figures, flatness
from tests.bench.load.scenario import Load

LARGE, SMALL = 10_000, 1_024


def main() -> int:
    """Run what is asked for; 1 when something that was acknowledged is not there once."""
    given = parser().parse_args()
    folder = Path(tempfile.mkdtemp(prefix="flopwatch-load-", dir=given.folder))
    try:
        results = (
            _soak(given, folder) if given.soak else _own(given, folder) if given.gpus else _headline(folder)
        )
    finally:
        if not given.keep:
            shutil.rmtree(folder, ignore_errors=True)
    if given.json:
        given.json.write_text(json.dumps(results, indent=1))
    sys.stdout.write(report.text(results))
    return (
        0 if all(run["exactness"]["exact"] for run in results["runs"].values() if "exactness" in run) else 1
    )


def parser() -> argparse.ArgumentParser:
    """Options."""
    made = argparse.ArgumentParser(prog="python -m tests.bench.load", description=__doc__)
    made.add_argument("--gpus", type=int, help="one run of so many GPUs")
    made.add_argument("--seconds", type=float, default=80.0, help="of the fleet's time (default 80)")
    made.add_argument("--speed", type=float, default=1.0, help="fleet seconds a second (default 1)")
    made.add_argument(
        "--warm", type=float, default=20.0, help="fleet seconds that are not measured (default 20)"
    )
    made.add_argument("--keep-alive", action=argparse.BooleanOptionalAction, default=True)
    made.add_argument(
        "--gzip-level", type=int, default=6, help="0 sends plain JSON (default 6, as agents do)"
    )
    made.add_argument("--late-ratio", type=float, default=0.01)
    made.add_argument("--repeat-ratio", type=float, default=0.01)
    made.add_argument(
        "--job-seconds", type=float, default=1_800.0, help="how long a job lasts (default 1800)"
    )
    made.add_argument(
        "--rival", choices=rivals.PROGRAMS, help="run the same samples against this server instead"
    )
    made.add_argument("--soak", action="store_true", help="minutes at the fleet's own pace")
    made.add_argument("--minutes", type=float, default=20.0, help="of a soak (default 20)")
    made.add_argument("--json", type=Path, help="also write all figures to this file")
    made.add_argument(
        "--folder", type=Path, help="where the data go (default: the system's temporary folder)"
    )
    made.add_argument("--keep", action="store_true", help="leave the data there")
    return made


def _headline(folder: Path) -> dict[str, Any]:
    """The figures of docs/capacity.md, in less than four minutes."""
    large = Load(gpus=LARGE, seconds=75.0)
    runs = {
        f"{LARGE} GPUs, kept connections": _run(large, folder / "kept"),
        f"{LARGE} GPUs, a connection a batch": _run(
            Load(gpus=LARGE, seconds=40.0, keep_alive=False), folder / "new"
        ),
    }
    same = {"gpus": SMALL, "seconds": 900.0, "speed": 40.0, "warm_seconds": 20.0}
    same |= {"late_ratio": 0.0, "repeat_ratio": 0.0, "hour_after_seconds": 850.0}
    compared = Load(**same)  # type: ignore[arg-type]
    runs[f"{SMALL} GPUs, 40 times as fast: flopwatch"] = _run(compared, folder / "small")
    for name in rivals.PROGRAMS:
        if rivals.is_there(name):
            runs[f"{SMALL} GPUs, 40 times as fast: {name}"] = _run_rival(name, compared, folder / name)
    return {"runs": runs, "decoding_microseconds": decoding.table()}


def _own(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    load = Load(
        gpus=given.gpus, seconds=given.seconds, speed=given.speed, warm_seconds=given.warm, keep_alive=given.keep_alive,
        gzip_level=given.gzip_level, late_ratio=given.late_ratio, repeat_ratio=given.repeat_ratio,
        job_seconds=given.job_seconds,
    )  # fmt: skip
    if given.rival:
        return {"runs": {given.rival: _run_rival(given.rival, load, folder / "rival")}}
    return {"runs": {f"{given.gpus} GPUs": _run(load, folder / "run")}}


def _soak(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    seconds = given.minutes * 60.0
    load = Load(
        gpus=given.gpus or 2_000, seconds=seconds, warm_seconds=min(60.0, seconds / 4), hour_after_seconds=seconds / 2,
        job_seconds=300.0, watch_seconds=2.0,
    )  # fmt: skip
    return {
        "runs": {f"soak of {given.minutes:g} min, {load.gpus} GPUs": _run(load, folder / "soak", soak=True)}
    }


def _run(load: Load, folder: Path, *, soak: bool = False) -> dict[str, Any]:
    outcome = scenario.run(load, folder)
    begin = outcome.begin_seconds
    stored = checking.stored(folder / "data", begin, begin + load.seconds)
    found = {"figures": asdict(figures(outcome)), "exactness": exactness(outcome, stored)}
    if stored.closed_bytes_a_sample is not None:
        found["stored_bytes_a_sample"] = stored.closed_bytes_a_sample
    return {**found, "flatness": flatness(outcome)} if soak else found


def _run_rival(name: str, load: Load, folder: Path) -> dict[str, Any]:
    with rivals.running(name, folder) as rival:
        outcome = scenario.run_against(rival, load)
        sent = outcome.generator
        if sent["given_up"]:
            raise RuntimeError(f"{name} refused {sent['given_up']} batches: {sent['refusal']}")
        size = rival.stored_bytes()
    return {"figures": asdict(figures(outcome)), "stored_bytes_a_sample": size / sent["samples"]}


if __name__ == "__main__":
    sys.exit(main())
