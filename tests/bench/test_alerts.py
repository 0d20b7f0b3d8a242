"""What one evaluation of all rules costs at 10,000 GPUs and 2,000 jobs: processor time, states kept in a real file."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.alerting.test_engine import job

from flopwatch_collector.alerting.delivery.notifier import Notifier
from flopwatch_collector.alerting.desk import Silence
from flopwatch_collector.alerting.engine import AlertEngine
from flopwatch_collector.alerting.matchers import parsed
from flopwatch_collector.config_alerts import read_alerts
from flopwatch_collector.facts import Facts, JobFacts, NodeFacts
from flopwatch_collector.store.control_sqlite import SqliteControl

pytestmark = pytest.mark.bench
NODES, JOBS, START = 1_250, 2_000, 1_000_000.0
LIMIT_SECONDS = 2.0


def fleet(now: float) -> Facts:
    """A twentieth of the jobs is below its target, one in a hundred nodes is faulty."""
    jobs: list[JobFacts] = []
    for number in range(JOBS):
        one = job(now, 0.31 if number % 20 == 0 else 0.48, nodes=frozenset((f"n{number % NODES}",)))
        jobs.append(
            replace(
                one, row=replace(one.row, job_id=f"j{number}", name=f"run-{number}", account=f"t{number % 7}")
            )
        )
    nodes = tuple(
        NodeFacts(
            cluster="a", node=f"n{number}", last_seen_seconds=now - 5.0, interval_seconds=10.0,
            bucket="FAULT" if number % 100 == 0 else "STEP", gpus=8,
        )
        for number in range(NODES)
    )  # fmt: skip
    return Facts(now=now, jobs=tuple(jobs), nodes=nodes, verdict=None, cluster="a")


def test_all_rules_over_ten_thousand_gpus_and_two_thousand_jobs(tmp_path: Path) -> None:
    settings = read_alerts(
        {
            "alerts": {
                "observe_days": 0,
                "mfu_low_for_seconds": 120,
                "override": [
                    {"team": "t3", "rules": {"MfuLow": {"for": "5m"}}},
                    {"job": "run-1*", "rules": {"MfuLow": {"severity": "critical"}}},
                ],
            }
        },
        {},
    )
    control = SqliteControl(tmp_path / "control.db")
    engine = AlertEngine(control, Notifier([], control), settings)
    engine.desk.silence(
        Silence(
            silence_id="", matchers=(parsed("job=~run-2.*"),), start_seconds=START, end_seconds=START + 1e6,
            created_by="ann", comment="x", created_seconds=START,
        )
    )  # fmt: skip
    costs = []
    for number in range(10):
        facts = fleet(START + number * 15.0)
        begun = time.process_time()
        engine.evaluate(facts)
        costs.append(time.process_time() - begun)
    firing = [row for row in engine.active() if row.state == "firing"]
    control.close()

    print(
        f"\nalerts: {NODES * 8} GPUs, {JOBS} jobs, two overrides: {sorted(costs)[len(costs) // 2]:.3f} s CPU an"
        f" evaluation, at most {max(costs):.3f} s; {len(firing)} fire"
    )
    # A twentieth of the jobs less those that are silenced or of a longer time, and one node in a hundred.
    assert len(firing) > 90
    assert max(costs) < LIMIT_SECONDS
