"""Pages over a real Prometheus and a real VictoriaMetrics that scrape recorded-style exporters; worked out by hand.

node-a and node-b: H100s in Kubernetes, pods train-0 and train-1 of PyTorchJob "llama" hold two GPUs on each; a third
GPU idles. node-c: one A100 of Slurm job 4711 and a GPU with MIG. An old exporter: one GPU.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.exporter import Exporter
from tests.integration.prometheus import exporters, servers
from tests.integration.prometheus.exporters import line
from tests.integration.prometheus.servers import Server, eventually

from flopwatch.query import LEDGER_CLASSES, Range
from flopwatch_collector.prometheus.endpoint import Endpoint
from flopwatch_collector.prometheus.promql import PromClient, PrometheusUnavailable
from flopwatch_collector.prometheus.reader import PrometheusQuery
from flopwatch_dashboard.app import PAGES
from flopwatch_dashboard.view import View

FIRED = 1_700_000_000.0
LLAMA = "nlp.llama"
NAMED = {page.name: page for page in PAGES}
TENSOR_CLOCK = (0.4 + 0.6) / 2 * 1647e6
H100_ESTIMATE = TENSOR_CLOCK / 1830e6
"""1830 MHz is the clock at which an H100's dense peak holds."""
A100_ESTIMATE = 0.5 * 705 / 1410
H100_PEAK, A100_PEAK = 989.4, 312.0
SCRAPE_SECONDS = 0.6
"""A scrape that began earlier has ended: it has 500 ms."""


@pytest.fixture(scope="module", params=servers.KINDS)
def server(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = [
        Exporter(lambda: exporters.kubernetes_node("node-a", "train-0", range(3))),
        Exporter(lambda: exporters.kubernetes_node("node-b", "train-1", range(2))),
        Exporter(lambda: exporters.slurm_node("node-c", "4711")),
        Exporter(exporters.old_node),
        Exporter(lambda: exporters.cluster_state({"train-0": "llama", "train-1": "llama"}, FIRED)),
    ]
    folder = tmp_path_factory.mktemp(request.param)
    with servers.running(request.param, folder, [exporter.target for exporter in made]) as running:
        eventually(
            lambda: (
                len(
                    running.query(
                        "count_over_time({__name__=~'DCGM_FI_DEV_GPU_TEMP|dcgm_gpu_temp|ALERTS'}[1m]) > 2"
                    )
                )
                >= 8
            )
        )
        yield running
    for exporter in made:
        exporter.stop()


class AtEnd:
    """A clock that stands at the border of a moment, so that the newest scrape is in sight."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def answered_by_all(server: Server, targets: int = 5) -> float | None:
    """A moment up to which all exporters answered in time; where a busy machine made one late, its GPUs are unknown."""
    now = time.time() - SCRAPE_SECONDS
    whole = "min_over_time(up[3s]) == 1 and count_over_time(up[3s]) >= 5"
    return now if len(server.query(whole, at=now)) == targets else None


@pytest.fixture
def client(server: Server) -> PromClient:
    return PromClient(Endpoint(setting="dashboard.prometheus", url=server.url))


@pytest.fixture
def query(client: PromClient, server: Server, monkeypatch: pytest.MonkeyPatch) -> PrometheusQuery:
    monkeypatch.setattr("flopwatch_collector.prometheus.site.MOMENT_SECONDS", 0.5)
    monkeypatch.setattr("flopwatch_collector.prometheus.site.LEAST_STEP_SECONDS", 1.0)
    return PrometheusQuery(client, clock=AtEnd(eventually(lambda: answered_by_all(server))))


def test_the_frame_says_what_is_there_and_what_cannot_be_said(query: PrometheusQuery) -> None:
    status = query.status()

    (cluster,) = status.clusters
    assert (cluster.name, cluster.gpus, cluster.gpus_reporting) == ("default", 8, 8)
    assert cluster.nodes == 4
    assert status.data_time_seconds == pytest.approx(time.time(), abs=15)
    assert status.price_per_gpu_hour is None
    assert status.unavailable == ("steps", "mfu", "ledger", "money", "verdict", "alert_history")


def test_jobs_come_from_pods_owners_and_slurm_with_the_hardware_estimate(query: PrometheusQuery) -> None:
    llama, slurm = query.jobs(Range(seconds=60.0)).rows

    assert (llama.job_id, llama.name, llama.account) == (LLAMA, "llama", "nlp")
    assert (llama.scheduler, llama.gpus, llama.nodes, llama.gpu_model) == ("kubernetes", 4, 2, exporters.H100)
    assert llama.kernel_active_ratio == pytest.approx(0.95)
    assert llama.tensor_active_ratio == pytest.approx(0.5)
    assert llama.mfu.value_ratio == pytest.approx(H100_ESTIMATE)
    assert (llama.mfu.basis, llama.mfu.measured_ratio, llama.mfu.clock_hertz) == ("hardware", None, 1830e6)
    assert llama.mfu.sm_clock_hertz == pytest.approx(1647e6)
    assert (slurm.job_id, slurm.scheduler_job_id, slurm.gpus) == ("slurm-4711", "4711", 1)
    assert slurm.mfu.value_ratio == pytest.approx(A100_ESTIMATE)
    assert (slurm.wall_mfu_ratio, slurm.waste_money, slurm.last_step, slurm.target.ratio) == (None,) * 4


def test_the_fleet_is_aggregated_by_the_server(query: PrometheusQuery) -> None:
    fleet = query.fleet(Range(seconds=60.0))
    newest = {name: values[-1] for name, values in fleet.series.columns.items()}

    # Whole GPUs: 4 at 0.95, one idle, the A100 at 0.5, the old one at 0.2. Tensor: 4 x 0.5, the A100 0.5.
    assert newest["kernel_active"] == pytest.approx((4 * 0.95 + 0 + 0.5 + 0.2) / 7)
    assert newest["tensor_active"] == pytest.approx(0.5)
    weights = (4 * H100_PEAK, 1 * A100_PEAK)
    estimate = (H100_ESTIMATE * weights[0] + A100_ESTIMATE * weights[1]) / sum(weights)
    assert newest["hardware"] == pytest.approx(estimate, rel=1e-3)
    assert newest["mfu"] is None
    assert fleet.utilisation.value is fleet.mfu.value is fleet.waste.value is fleet.waste_money.value is None
    assert fleet.ledger_today.billable_ratio is None
    assert fleet.ledger_today.capacity_gpu_milliseconds == 0
    assert [one.name for one in fleet.ledger_today.classes] == list(LEDGER_CLASSES)
    assert fleet.verdict.code == "insufficient_data"


def test_a_job_has_its_nodes_and_courses(query: PrometheusQuery) -> None:
    job = query.job(LLAMA, Range(seconds=60.0))
    assert job is not None
    newest = {name: values[-1] for name, values in job.series.columns.items()}

    assert newest["kernel_active"] == pytest.approx(0.95)
    assert newest["power_watts"] == pytest.approx(600.0)
    assert newest["memory_used_ratio"] == pytest.approx(0.75)
    assert newest["nvlink_bytes_per_second"] == pytest.approx(4 * 3e6)
    assert newest["nic_bytes_per_second"] is None
    assert newest["mfu"] is None
    assert newest["hardware"] == pytest.approx(H100_ESTIMATE)
    assert [(node.node, node.gpus) for node in job.nodes] == [("node-a", 2), ("node-b", 2)]
    assert job.nodes[0].tensor_active_ratio == pytest.approx(0.5)
    assert job.nodes[0].sm_clock_hertz == pytest.approx(1647e6)
    assert job.steps.time_seconds == ()
    slurm = query.job("slurm-4711", Range(seconds=60.0))
    assert slurm is not None
    assert [(node.node, node.gpus) for node in slurm.nodes] == [("node-c", 1)]
    assert query.job("nlp.no-such", Range()) is None


def test_alerts_are_those_of_the_site_s_own_rules(query: PrometheusQuery) -> None:
    (alert,) = query.alerts(Range()).active

    assert (alert.rule, alert.severity, alert.state) == ("GpuHot", "critical", "firing")
    assert alert.active_since_seconds == FIRED
    assert alert.labels["node"] == "node-a"
    assert query.fleet(Range(seconds=60.0)).alerts_by_severity == {"critical": 1, "warning": 0, "info": 0}


BUSY = {
    "memory_used_ratio": 0.75,
    "power_watts": 600.0,
    "temperature_celsius": 60.0,
    "sm_clock_hertz": 1647e6,
}
GPUS: dict[tuple[str, int], dict[str, float | None]] = {
    **{(f"node-{host}", 0): {"kernel_active_ratio": 0.9, "tensor_active_ratio": 0.4, **BUSY} for host in "ab"},
    **{(f"node-{host}", 1): {"kernel_active_ratio": 1.0, "tensor_active_ratio": 0.6, **BUSY} for host in "ab"},
    ("node-a", 2): {**BUSY, "kernel_active_ratio": 0.0, "tensor_active_ratio": None, "power_watts": 70.0,
                    "sm_clock_hertz": 345e6},
    ("node-c", 0): {"kernel_active_ratio": 0.5, "tensor_active_ratio": 0.5, "memory_used_ratio": None,
                    "power_watts": 200.0, "temperature_celsius": 50.0, "sm_clock_hertz": 705e6},
    ("node-c", 1): {"kernel_active_ratio": None, "power_watts": None, "temperature_celsius": None},
    ("old", 0): {"kernel_active_ratio": 0.2, "tensor_active_ratio": None, "power_watts": None,
                 "temperature_celsius": 40.0},
}  # fmt: skip
"""What the exporters say of each GPU: of a MIG one only its instances' part, of the oldest one no host."""


def test_every_gpu_has_what_its_exporter_gives_and_no_more(query: PrometheusQuery) -> None:
    found = query.nodes(Range())
    gpus, names = found.gpus, [row.node if row.node.startswith("node-") else "old" for row in found.nodes]
    places = [(names[node], index) for node, index in zip(gpus.node, gpus.index, strict=True)]
    jobs = {place: found.jobs[job].job_id for place, job in zip(places, gpus.job, strict=True) if job >= 0}
    missing = (None,) * len(places)
    read = {
        place: {name: gpus.values.get(name, missing)[at] for name in GPUS[place]}
        for at, place in enumerate(places)
    }

    assert sorted(places) == sorted(GPUS)
    assert read == {place: pytest.approx(values) for place, values in GPUS.items()}
    assert jobs == {(f"node-{host}", at): LLAMA for host in "ab" for at in (0, 1)} | {
        ("node-c", 0): "slurm-4711"
    }
    assert gpus.reporting == (True,) * 8
    assert {row.health for row in found.nodes} == {"unknown"}
    assert found.buckets == ()
    assert "mfu_ratio" not in gpus.values


def test_a_node_and_a_gpu_have_their_figures_and_courses(query: PrometheusQuery) -> None:
    node = query.node("node-a", Range(seconds=60.0))
    gpu = query.gpu("GPU-node-a-1", Range(seconds=60.0))
    assert node is not None
    assert gpu is not None
    ends = {name: values[-1] for name, values in node.series.columns.items()}
    own = {name: values[-1] for name, values in gpu.series.columns.items()}

    assert [(row.uuid, row.values["power_watts"]) for row in node.gpus] == [
        ("GPU-node-a-0", 600.0), ("GPU-node-a-1", 600.0), ("GPU-node-a-2", 70.0),
    ]  # fmt: skip
    assert ends["kernel_active"] == pytest.approx((0.9 + 1.0 + 0.0) / 3)
    assert ends["tensor_active"] == pytest.approx((0.4 + 0.6) / 2)
    assert (ends["node_power_watts"], ends["hottest_celsius"]) == (1_270.0, 60.0)
    assert [(alert.rule, alert.labels["node"]) for alert in node.alerts] == [("GpuHot", "node-a")]
    assert (gpu.row.node, gpu.row.model, gpu.row.job and gpu.row.job.job_id) == (
        "node-a",
        exporters.H100,
        LLAMA,
    )
    assert {name: gpu.row.values[name] for name in BUSY} == pytest.approx(BUSY)
    assert (own["kernel_active"], own["tensor_active"]) == pytest.approx((1.0, 0.6))
    assert query.node("nobody", Range()) is None
    assert query.gpu("GPU-nobody", Range()) is None


def test_breakeven_and_alerts_show_what_is_known_and_no_figure_for_the_rest(query: PrometheusQuery) -> None:
    view = View(range_name="1h")
    economy = query.economy(Range(), {})
    breakeven = NAMED["breakeven"].render(query, view, "")
    alerts = NAMED["alerts"].render(query, view, "")

    assert (economy.u_star, economy.utilisation_ratio, economy.groups, economy.days) == (None, None, (), ())
    assert "cannot tell what was billable" in _texts(breakeven["verdict"])[0]
    assert (breakeven["body"], set(breakeven) & {"tiles", "plan", "compare"}) == ("hidden", set())
    (row,) = query.alerts(Range(seconds=3_600.0)).active
    shown = _texts(alerts["active"])
    assert [shown.count(words) for words in ("critical", "firing", row.summary, "14 Nov 2023 22:13")] == [
        1
    ] * 4
    assert query.fleet(Range(seconds=3_600.0)).alerts == (row,)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_page_is_drawn_from_it(query: PrometheusQuery, page: Any, lang: Any) -> None:
    view = replace(View(lang=lang), range_name="1h")

    shown = page.render(query, view, LLAMA if page.item else "")

    assert set(shown) - {"gone", "body"} <= set(page.parts)
    assert page.skeleton()


def test_pages_show_as_unknown_what_cannot_be_said(query: PrometheusQuery) -> None:
    view = View(range_name="1h")
    fleet, jobs, job = (NAMED[name].render(query, view, LLAMA) for name in ("fleet", "jobs", "job"))

    assert [row["waste"] for row in jobs["rows"]] == [None, None]
    assert [row["wall"] for row in jobs["rows"]] == [None, None]
    assert [row["estimate"] for row in jobs["rows"]] == [True, True]
    tiles = _texts(fleet["tiles"])
    assert tiles.count("n/a") >= 4, tiles
    assert "0.0" not in tiles
    assert "0" not in [text for text in _texts(job["tiles"]) if text != "n/a"]
    assert job["waiting"] == []


def test_lists_that_it_cannot_fill_say_so_instead_of_being_empty(query: PrometheusQuery) -> None:
    view = View(range_name="1h")
    nodes = query.nodes(Range(seconds=3_600))
    node = nodes.nodes[0].node
    uuid = next(gpu.uuid for page in [query.node(node, Range(seconds=3_600))] if page for gpu in page.gpus)
    shown = {
        "alerts": NAMED["alerts"].render(query, view, ""),
        "node": NAMED["node"].render(query, view, node),
        "gpu": NAMED["gpu"].render(query, view, uuid),
    }

    for page, part in (
        ("alerts", "history"), ("alerts", "silences"), ("node", "events"), ("node", "jobs"), ("gpu", "events"),
        ("gpu", "jobs"),
    ):  # fmt: skip
        assert _texts(shown[page][part]) == ["This source of data does not tell."]
    assert _texts(shown["alerts"]["active"])


def test_the_page_of_a_job_has_the_declared_figures_and_says_of_the_rest_that_it_is_not_known(
    query: PrometheusQuery, client: PromClient
) -> None:
    shown = NAMED["job"].render(query, _last_minute(query), LLAMA)

    def known() -> bool:
        """Whether the newest samples are in sight already: a server shows them some seconds late."""
        asked = PrometheusQuery(client, clock=AtEnd(time.time()))
        shown.update(NAMED["job"].render(asked, _last_minute(asked), LLAMA))
        return "n/a" not in shown["power-aria"] and "kernel active n/a" not in shown["activity-aria"]

    eventually(known)
    nodes = _texts(shown["nodes"])
    assert nodes[nodes.index("node-a") + 1 :][:5] == ["2", "95.0%", "50.0%", "600 W", "1.65 GHz"]
    power = shown["power-aria"].replace("600.0 W", "600 W")
    assert power == "At the end: power of a GPU 600 W, memory used 75.0%."
    assert "NIC n/a" in shown["network-aria"]
    assert "kernel active 95.0%, tensor active 50.0%, MFU n/a" in shown["activity-aria"]
    for name in ("steps", "spread", "strip"):
        assert [note["text"] for note in shown[name]["layout"]["annotations"]] == ["no data in this range"]
    assert _texts(shown["goodput"]) == ["Not known: no steps were read in this range."]
    assert shown["gap-note"] == ""


def test_a_range_that_ended_before_now_has_only_its_own_points(query: PrometheusQuery) -> None:
    end = query.status().now_seconds - 3_600.0
    course = query.fleet(Range(seconds=600.0, end_seconds=end)).series

    assert end - 700.0 < course.time_seconds[0] <= course.time_seconds[-1] <= end
    assert set(course.columns["kernel_active"]) == {None}


def _last_minute(query: PrometheusQuery) -> View:
    now = query.status().now_seconds
    return View(range_name="custom", between=(now - 60.0, now))


def _texts(component: Any) -> list[str]:
    """Every text below a component."""
    if isinstance(component, str):
        return [component]
    parts = component if isinstance(component, list) else getattr(component, "children", None)
    return [text for part in (parts if isinstance(parts, list) else [parts]) if part for text in _texts(part)]


def test_a_page_asks_a_bounded_number_of_questions(query: PrometheusQuery, client: PromClient) -> None:
    counts = {}
    for page in PAGES:
        before = client.asked
        page.render(query, View(range_name="24h"), LLAMA if page.item else "")
        counts[page.name] = client.asked - before
    query.status()

    assert max(counts.values()) <= 30


def test_the_same_moment_is_asked_once(query: PrometheusQuery, client: PromClient) -> None:
    first = query.jobs(Range())
    asked = client.asked

    assert query.jobs(Range()).rows == first.rows
    assert client.asked == asked


def test_another_cluster_has_nothing(query: PrometheusQuery) -> None:
    assert query.jobs(Range(cluster="elsewhere")).rows == ()
    assert query.fleet(Range(seconds=60.0, cluster="elsewhere")).series.columns["kernel_active"][-1] is None


def test_a_server_that_is_gone_is_said_with_its_address() -> None:
    client = PromClient(
        Endpoint(setting="dashboard.prometheus", url=f"http://127.0.0.1:{servers.free_port()}")
    )

    with pytest.raises(PrometheusUnavailable, match=r"http://127\.0\.0\.1:\d+: Connection refused"):
        PrometheusQuery(client).status()


def test_an_exporter_s_own_pod_is_not_taken_for_the_job_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prometheus puts the target's labels on every series, and renames the exporter's to ``exported_…``."""
    monkeypatch.setattr("flopwatch_collector.prometheus.site.MOMENT_SECONDS", 0.5)
    monkeypatch.setattr("flopwatch_collector.prometheus.site.LEAST_STEP_SECONDS", 1.0)
    exporter = Exporter(lambda: exporters.kubernetes_node("node-a", "train-0", range(3)))
    own = {"pod": "nvidia-dcgm-exporter-x7x2z", "namespace": "gpu-operator", "cluster": "berlin"}
    begin = time.time()
    port = {"device": "mlx5_0", "port": "1"}
    host = Exporter(
        lambda: "".join(
            line(f"node_infiniband_port_data_{way}_bytes_total", round(1e9 * (time.time() - begin)), **port)
            + "\n"
            for way in ("transmitted", "received")
        )
    )
    named = {"instance": "node-a:9100", "cluster": "berlin"}
    scrapes = [
        {"job_name": "dcgm", "static_configs": [{"targets": [exporter.target], "labels": own}]},
        {"job_name": "node", "static_configs": [{"targets": [host.target], "labels": named}]},
    ]
    with servers.running("prometheus", tmp_path, more={"scrape_configs": scrapes}) as server:
        eventually(lambda: len(server.query("count_over_time(DCGM_FI_DEV_GPU_TEMP[1m]) > 2")) == 3)
        received = "node_infiniband_port_data_received_bytes_total"
        eventually(lambda: server.query(f"count_over_time({received}[1m]) > 5"))
        query = PrometheusQuery(PromClient(Endpoint(setting="p", url=server.url)))
        (row,) = query.jobs(Range(seconds=60.0, cluster="berlin")).rows
        job = query.job(row.job_id, Range(seconds=60.0))
    exporter.stop()
    host.stop()

    assert (row.job_id, row.cluster, row.gpus) == ("berlin:nlp.train-0", "berlin", 2)
    assert job is not None
    assert [(node.node, node.gpus) for node in job.nodes] == [("node-a", 2)]
    moved = job.series.columns["nic_bytes_per_second"][-1]
    assert moved is not None
    assert moved > 0
