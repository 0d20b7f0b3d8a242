"""Every default rule, on its own terms, over the demo's simulated fleet: exactly these alerts fire, and when."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from flopwatch.query import AlertRow, Range
from flopwatch_collector import app
from flopwatch_collector.config import AlertSettings, CollectorSettings, Settings
from flopwatch_deploy.simulation.batches import Simulator, Span
from flopwatch_deploy.simulation.cluster import HOUR, build

NOW = 1_790_000_400.0 // 600.0 * 600.0
BEGIN = NOW - 3.0 * HOUR
MINUTE = 60.0
GPUS, SEED = 384, 7


@dataclass
class Demo:
    """The collector, the simulated agents, and the first sight of every alert, by what it is about."""

    folder: Path
    now: float = BEGIN
    sent: int = 0
    names: dict[str, str] = field(default_factory=dict)
    fired: dict[tuple[str, str], AlertRow] = field(default_factory=dict)
    ever: set[tuple[str, str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.simulator = Simulator(build(seed=SEED, gpus=GPUS, days=1, now_seconds=NOW))
        settings = Settings(
            collector=CollectorSettings(data_dir=self.folder),
            alerts=AlertSettings(observe_days=0.0, evaluate_seconds=MINUTE),
        )
        self.running = app.build(settings, environ={}, simulated=True, clock=lambda: self.now)

    def push(self, seconds: float, interval: float) -> None:
        """All nodes report of the next stretch of time, each in one batch."""
        start, self.now = self.now, self.now + seconds
        waiting = []
        for node in range(self.simulator.cluster.nodes):
            batch = self.simulator.batch(
                Span(
                    node=node, start_seconds=start, end_seconds=self.now, interval_seconds=interval,
                    spool="demo", sequence=self.sent,
                )
            )  # fmt: skip
            if batch is not None:
                waiting.append(self.running.ingest.accept_batch(batch, sent_at_seconds=self.now))
        for future in waiting:
            future.result(60)
        self.sent += 1

    def evaluate(self) -> None:
        """Accounting, and one evaluation of all rules."""
        self.running.accounting.tick(self.now)
        facts = self.running.query.facts(self.now)
        self.names.update({job.row.job_id: job.row.name for job in facts.jobs})
        engine = self.running.periodic.engine
        engine.evaluate(facts)
        for row in engine.active():
            subject = self.names.get(row.labels.get("job_id", "")) or row.labels.get("node", "")
            if row.fired_seconds is not None:
                self.fired.setdefault((row.rule, subject), row)
                self.ever.add((row.rule, subject, row.severity))


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    made = Demo(tmp_path_factory.mktemp("demo"))
    while made.now < NOW:
        made.push(600.0, MINUTE)
    made.running.accounting.tick(made.now)
    while not made.running.accounting.settled():
        made.running.accounting.tick(made.now)
    while made.now < NOW + 35.0 * MINUTE:
        made.push(MINUTE, 30.0)
        made.evaluate()
    yield made
    made.running.stop()


def minutes(demo: Demo, rule: str, subject: str) -> float:
    """After how many minutes of evaluation it fired."""
    return ((demo.fired[rule, subject].fired_seconds or 0.0) - NOW) / MINUTE


def test_exactly_the_demo_s_troubles_fire_each_with_its_severity(demo: Demo) -> None:
    cluster = demo.simulator.cluster
    slow = next(life.run.slow_node for life in cluster.lives if life.run.slow_node is not None)
    lost = cluster.node_name(cluster.nodes - 1)

    assert demo.ever == {
        ("JobHang", "qwen-7b-code", "critical"),
        ("IdleHeld", "notebook-eval", "critical"),
        ("BudgetBurn", "notebook-eval", "warning"),
        ("CkptSlow", "qwen-7b-rewards", "info"),
        ("MfuLow", "vlm-7b-pretrain", "warning"),
        ("MfuLow", "llama-8b-long", "warning"),
        ("Straggler", "llama-8b-long", "warning"),
        ("HwThrottle", cluster.node_name(slow), "warning"),
        ("GpuLost", lost, "critical"),
        ("NoData", cluster.node_name(cluster.failed_node), "warning"),
    }


def test_each_fires_when_its_rule_says(demo: Demo) -> None:
    cluster = demo.simulator.cluster
    slow = cluster.node_name(
        next(life.run.slow_node for life in cluster.lives if life.run.slow_node is not None)
    )
    failed, lost = cluster.node_name(cluster.failed_node), cluster.node_name(cluster.nodes - 1)

    # What began long ago and is told since when fires at the first evaluation; the rest after its own time.
    assert minutes(demo, "JobHang", "qwen-7b-code") <= 1.0
    assert minutes(demo, "IdleHeld", "notebook-eval") <= 1.0
    assert minutes(demo, "GpuLost", lost) == pytest.approx(2.0, abs=1.0)
    assert minutes(demo, "NoData", failed) == pytest.approx(6.0, abs=1.0)
    assert minutes(demo, "HwThrottle", slow) == pytest.approx(6.0, abs=1.0)
    assert minutes(demo, "Straggler", "llama-8b-long") == pytest.approx(11.0, abs=1.5)
    # Its 8 GPUs have been idle for 3 h, 24 GPU-hours, at the begin; the ledger knows within a window of 5 min.
    assert minutes(demo, "BudgetBurn", "notebook-eval") == pytest.approx(18.5, abs=3.5)
    assert minutes(demo, "MfuLow", "vlm-7b-pretrain") == pytest.approx(31.0, abs=2.5)
    assert minutes(demo, "MfuLow", "llama-8b-long") == pytest.approx(31.0, abs=2.5)


def test_a_throttled_node_explains_the_straggler_and_says_so(demo: Demo) -> None:
    engine = demo.running.periodic.engine
    active = {(row.rule, row.labels.get("node")): row for row in engine.active()}
    straggler = active["Straggler", None]
    throttled = next(row for (rule, _), row in active.items() if rule == "HwThrottle")

    assert straggler.inhibited_by == "Throttle"
    assert "llama-8b-long: one of its nodes is slower" in throttled.values["explains"]
    assert straggler.values["cause"].startswith("Throttled clocks: ")


def test_jobs_that_are_well_have_no_alert_and_a_cause_is_the_same_on_every_page(demo: Demo) -> None:
    assert not {subject for _, subject in demo.fired} & {"llama-70b-pretrain", "moe-8x22b", "llama-8b-sft"}
    query = demo.running.query
    asked = Range()
    rows = {row.name: row for row in query.jobs(asked).rows if row.state != "ended"}
    tops = {row.name: row for row in query.fleet(asked).top_jobs if row.state != "ended"}

    assert tops
    for name, row in tops.items():
        page = query.job(row.job_id, asked)
        assert page is not None
        assert row.cause == rows[name].cause == page.row.cause
    assert rows["vlm-7b-pretrain"].cause is not None
    assert rows["vlm-7b-pretrain"].cause.code == "data_stall"


STORIES = {
    "llama-70b-pretrain": ("healthy",),
    "moe-8x22b": ("healthy",),
    "llama-8b-sft": ("healthy",),
    "vlm-7b-pretrain": ("data_stall",),
    "llama-8b-long": ("throttled", "straggler_node"),
    "qwen-7b-code": ("hang",),
    "qwen-7b-rewards": ("checkpoint_stall",),
    "notebook-eval": (),
    "qwen-7b-math": (),
    "llama-8b-preview": (),
    "asr-zh-b2": (),
}
"""What the simulator does to each of its runs, as diagnosis names it; of those without any the ledger says enough."""


def test_each_run_is_told_of_what_the_simulator_did_to_it_and_no_signal_of_an_agent_is_missing(
    demo: Demo,
) -> None:
    query = demo.running.query
    pages = {
        row.name: page
        for row in query.jobs(Range()).rows
        if row.state != "ended" and (page := query.job(row.job_id, Range())) is not None
    }

    told = {name: tuple(one.code for one in page.diagnosis) for name, page in pages.items()}
    missing = {signal for page in pages.values() for one in page.diagnosis for signal in one.missing}
    causes = {name: page.row.cause.code for name, page in pages.items() if page.row.cause and not told[name]}

    assert told == STORIES
    # The time that ranks compute themselves is told by the SDK only, and all of these write logs.
    assert missing <= {"local_compute_seconds"}
    assert causes == {
        "notebook-eval": "held_idle", "llama-8b-preview": "unknown_gpu", "asr-zh-b2": "no_steps",
        "qwen-7b-math": "startup",
    }  # fmt: skip
    evidence = {
        name: {one.code: one.value for one in page.diagnosis[0].evidence}
        for name, page in pages.items()
        if page.diagnosis
    }
    assert evidence["vlm-7b-pretrain"]["loader"] == pytest.approx(0.98, abs=0.02)
    # 168 W of the 587 W at which it stepped.
    assert evidence["qwen-7b-code"]["power_of_usual"] == pytest.approx(168.0 / 587.0, abs=0.03)
    slow = next(life.run.slow_node for life in demo.simulator.cluster.lives if life.run.slow_node is not None)
    assert {one.subject for one in pages["llama-8b-long"].diagnosis} == {
        demo.simulator.cluster.node_name(slow)
    }
