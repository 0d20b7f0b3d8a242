"""Rules, dashboards and examples as code, checked by promtool, amtool and a live scrape."""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures_nvml import FakeNvml
from tests.integration.agent.agent_process import Agent
from tests.integration.agent.kernel_files import build
from tests.integration.collector.static_query import StaticQuery
from tests.integration.prometheus.servers import eventually, program
from tests.integration.views.site import Site, gpu_name, job_ref
from tests.unit.collector.alerting.facts_of_runs import NOW, job

from flopwatch import fleet_metrics
from flopwatch.wire import JobSample, JobSighting, NodeSample
from flopwatch_agent.sinks.exposition import series
from flopwatch_agent.source import Snapshot
from flopwatch_collector.config_alerts import ALERT_RULES
from flopwatch_collector.facts import Facts
from flopwatch_collector.prometheus.exposition import FleetReadout
from flopwatch_collector.watched import BudgetHealth, Spending, StepHistory, WatchedRun
from flopwatch_deploy import grafana

DEPLOY = Path(__file__).parents[3] / "deploy"
RULES = sorted((DEPLOY / "prometheus" / "rules").glob("*.yml"))
TESTS = sorted((DEPLOY / "prometheus" / "tests").glob("*.yml"))
METRIC = re.compile(r"(?<![\w:\"])(?:flopwatch|hw)_[a-z0-9_]+(?![\w:])")
SEVERITIES = {"critical", "warning", "info"}
TRAIN = """
import time
for number in range(2400):
    print(f"iter {number}: loss 3.1234, time 250.00ms, mfu 40.00%", flush=True)
    time.sleep(0.25)
"""
EXPECTED_ALERTS = {
    "MfuLow", "MfuDrop", "HighUtilLowMfu", "IdleHeld", "JobHang", "HangSuspect", "Straggler", "ThermalThrottle",
    "GpuLost", "GpuUncorrectedErrors", "GpuRecoveryNeeded", "LinkDown", "NodeDown", "NoData", "AgentUnhealthy",
    "CollectorUnhealthy", "DeadMan", "BelowBreakeven", "MfuBelowNorm", "StepSpikes", "RestartStorm", "NoProgress",
    "CkptSlow", "BudgetBurn", "LemonNode", "LinkDegraded", "HwThrottle", "GpuXid",
    "NoCollectorOnDuty",
}  # fmt: skip


def run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [program(command[0]), *command[1:]], check=False, cwd=cwd, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rules() -> Iterator[dict[str, Any]]:
    """Every rule, as promtool understands it: the files are read by a real Prometheus in another test."""
    for path in RULES:
        text = path.read_text()
        for block in re.split(r"\n(?=      - (?:alert|record): )", text)[1:]:
            head = re.match(r"\s*- (alert|record): (\S+)", block)
            assert head is not None
            yield {"kind": head[1], "name": head[2], "text": block}


def metrics_of(text: str) -> set[str]:
    return set(METRIC.findall(text))


def test_the_rules_are_valid_and_pass_their_own_tests() -> None:
    run("promtool", "check", "rules", *map(str, RULES))
    run("promtool", "check", "config", str(DEPLOY / "prometheus" / "prometheus.yml"))

    for path in TESTS:
        assert "SUCCESS" in run("promtool", "test", "rules", path.name, cwd=path.parent)


def test_every_alert_has_a_severity_words_and_a_unit_test() -> None:
    found = [rule for rule in rules() if rule["kind"] == "alert"]
    tested = {name for path in TESTS for name in re.findall(r"alertname: (\w+)\n", path.read_text())}

    assert {rule["name"] for rule in found} == EXPECTED_ALERTS
    assert tested == EXPECTED_ALERTS
    for rule in found:
        severity = re.search(r"severity: (\w+)", rule["text"])
        assert severity is not None
        assert severity[1] in SEVERITIES
        assert "summary: " in rule["text"]
        assert "description: " in rule["text"]


def test_every_rule_of_the_collector_is_there_or_it_is_said_why_not() -> None:
    readme = (DEPLOY / "prometheus" / "README.md").read_text()
    reasons = set(re.findall(r"^\| `(\w+)` \| \S", readme, re.MULTILINE))

    assert set(ALERT_RULES) - EXPECTED_ALERTS == reasons


def test_recorded_names_say_level_metric_and_operation() -> None:
    for rule in rules():
        if rule["kind"] == "record":
            level, metric, operation = rule["name"].split(":")
            assert level in {"cluster", "job", "node"}
            assert metric.startswith(("flopwatch_", "hw_"))
            assert operation


def test_alertmanager_s_example_is_valid_and_routes_as_it_says() -> None:
    config = str(DEPLOY / "prometheus" / "alertmanager.yml")
    run("amtool", "check-config", config)

    def route(*labels: str) -> str:
        return run("amtool", "config", "routes", "test", f"--config.file={config}", *labels).strip()

    assert route("alertname=DeadMan", "severity=info") == "dead-man"
    assert route("alertname=JobHang", "severity=critical") == "oncall"
    assert route("alertname=MfuLow", "severity=warning") == "training"
    assert route("alertname=BelowBreakeven", "severity=info") == "digest"


@pytest.mark.parametrize("board", grafana.BOARDS, ids=lambda board: board.uid)
def test_a_dashboard_s_file_is_what_its_source_makes(board: grafana.Board) -> None:
    path = DEPLOY / "grafana" / f"{board.uid.removeprefix('flopwatch-')}.json"
    document = json.loads(path.read_text())

    assert path.read_text() == grafana.text(board), "run: python -m flopwatch_deploy.grafana deploy/grafana"
    places = [panel["gridPos"] for panel in document["panels"]]
    cells = [
        (x, y) for p in places for x in range(p["x"], p["x"] + p["w"]) for y in range(p["y"], p["y"] + p["h"])
    ]
    assert len(cells) == len(set(cells)), "panels lie on each other"
    assert all(p["x"] + p["w"] <= grafana.WIDTH for p in places)
    assert len({panel["id"] for panel in document["panels"]}) == len(places)


def test_expressions_of_dashboards_are_valid(tmp_path: Path) -> None:
    chosen = {"$cluster": ".*", "$job_id": "17", "$scheduler_job": "4711", "$instance": ".*"}
    expressions = [text for board in grafana.BOARDS for panel in board.panels for text, _ in panel.queries]
    lines = ["groups:", "  - name: dashboards", "    rules:"]
    for number, expression in enumerate(expressions):
        shown = re.sub(r"\$[a-z_]+", lambda match: chosen[match[0]], expression)
        lines += [f"      - record: dashboard:query:n{number}", f"        expr: {json.dumps(shown)}"]
    (tmp_path / "rules.yml").write_text("\n".join(lines) + "\n")

    assert f"{len(expressions)} rules found" in run("promtool", "check", "rules", str(tmp_path / "rules.yml"))


def test_what_rules_and_dashboards_use_is_in_a_live_scrape(
    tmp_path: Path,
    fake_nvml: FakeNvml,
    new_agent: Callable[..., Agent],
    processes: Callable[..., Any],
) -> None:
    used = metrics_of("\n".join(path.read_text() for path in RULES))
    used |= metrics_of(json.dumps([grafana.document(board) for board in grafana.BOARDS]).replace('\\"', "'"))
    recorded = {rule["name"] for rule in rules() if rule["kind"] == "record"}

    scraped = _agent(tmp_path, fake_nvml, new_agent, processes) | _collector(tmp_path) | _evaluated()
    scraped |= _whole_host()
    windows = {metric.name for metric in fleet_metrics.WINDOW}

    assert used - scraped - recorded <= windows, "only closed windows are not scraped but written"


def _agent(
    folder: Path, fake_nvml: FakeNvml, new_agent: Callable[..., Agent], processes: Callable[..., Any]
) -> set[str]:
    """What an agent exports while a job trains on its GPU and prints its steps."""
    with (folder / "train.log").open("wb") as log:
        trainer = processes(TRAIN, env={"SLURM_JOB_ID": "99", "RANK": "0"}, stdout=log)
    fake_nvml.write(
        "gpus 1", "gpm * 80 30 60 40", "nvlink * 18 1024 2048", "xid 0 79", f"proc 0 {trainer.pid} 60000"
    )
    ports = build(folder / "ports", "mlx5_infiniband")
    agent = new_agent(collector_url="http://127.0.0.1:9", sys_root=ports)
    wanted = {
        "flopwatch_gpu_xid_errors_total", "flopwatch_job_main_thread_ratio",
        "flopwatch_gpu_tensor_active_ratio", "flopwatch_job_gpu_info", "flopwatch_node_cpu_busy_ratio",
        "flopwatch_gpu_throttle_seconds_total", "flopwatch_gpu_nvlink_transmit_bytes_total", "hw_network_up",
        "flopwatch_job_step_age_seconds",
    }  # fmt: skip

    def names() -> set[str]:
        return {name.partition("{")[0] for name in agent.metrics()}

    eventually(lambda: wanted <= names(), 60)
    return names()


def _whole_host() -> set[str]:
    """What an agent exports of disks, a job's cgroup and its data loaders, which a test's machine may not have."""
    numbers = (
        "training_cpu_cores", "loader_cpu_cores", "loader_busiest_ratio", "io_wait_ratio", "cpu_pressure_ratio",
        "memory_used_bytes", "memory_limit_bytes", "disk_read_bytes", "major_faults", "cache_refaults",
    )  # fmt: skip
    sample = JobSample(time_seconds=NOW, job="slurm:7", **dict.fromkeys(numbers, 1))
    node = NodeSample(time_seconds=NOW, disk_read_bytes=1, memory_pressure_ratio=0.0, io_pressure_ratio=0.0)
    job = JobSighting(ref="slurm:7", scheduler_job_id="7")
    snapshot = Snapshot(now=NOW, interval_seconds=10.0, node_sample=node, job_samples=(sample,), jobs=(job,))
    return {metric.name for metric, _, _ in series(snapshot, "1", 0)}


def _collector(folder: Path) -> set[str]:
    """What a collector exports while one job misses its target and another reports no steps."""
    site = Site(folder)
    opaque = job_ref(
        ref="slurm:18", scheduler_job_id="18", name="opaque", waiting_for=None, run=(),
        gpus=tuple(gpu_name("n3", index) for index in range(8)),
        leased_gpus=tuple(gpu_name("n3", index) for index in range(8)),
    )  # fmt: skip
    busy = {
        "kernel_active_ratio": 0.9, "tensor_active_ratio": 0.4, "sm_clock_hertz": 1.8e9, "process_count": 1,
    }  # fmt: skip
    try:
        for _ in range(4):
            site.push("n3", site.now, 900.0, job=opaque, samples=busy)
            site.now -= 900.0
            site.train(900.0, mfu=0.1)
            site.engine.evaluate(site.query.facts(site.now))
        site.running.periodic.start()
        eventually(lambda: site.running.periodic.ages()["accounting"] is not None)
        text = site.running.metrics.text().decode()
    finally:
        site.close()
    return {re.split(r"[{ ]", line)[0] for line in text.splitlines() if not line.startswith("#")}


def _evaluated() -> set[str]:
    """What a collector exports of a run and a budget of which everything is known."""
    run = WatchedRun(
        steps=StepHistory(config="c", seconds=(10.0,) * 250),
        norm_ratio=0.4,
        launches=(NOW - 60.0,),
        launches_without_progress=1,
        saves_seconds=(40.0, 41.0, 42.0, 43.0),
        checkpoint_share=0.02,
        spending=Spending(used_gpu_hours=10.0, declared_gpu_hours=20.0),
    )
    budgets = (BudgetHealth(name="nlp", state="warning", used_ratio=0.8, forecast_ratio=1.1),)
    facts = Facts(now=NOW, jobs=(job(run),), nodes=(), verdict=None, cluster="a", budgets=budgets)
    return {family.name for family in FleetReadout(StaticQuery(), lambda: facts).collect()}
