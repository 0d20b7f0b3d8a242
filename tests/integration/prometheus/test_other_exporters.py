"""Exporters as other sites run them: scraped twice, in pods of their own, with few metrics; worked out by hand.

node-a: dcgm-exporter in Kubernetes, which calls the node by its own pod, scraped by two jobs. node-b: two exporters, of
which one knows the pods. node-c: nothing but profiling metrics, for a Slurm job. node-d: a GPU in MIG mode. node-e: an
agent of ours, scraped by two jobs, whose ports begin anew every few seconds.
"""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.fixtures.exporter import Exporter
from tests.integration.prometheus import servers
from tests.integration.prometheus.exporters import BLANK, H100, line
from tests.integration.prometheus.servers import Server, eventually

from flopwatch.query import Range
from flopwatch_collector.prometheus.endpoint import Endpoint
from flopwatch_collector.prometheus.promql import PromClient
from flopwatch_collector.prometheus.reader import PrometheusQuery

POD = {"namespace": "vision", "pod": "vit-0", "container": "main"}


def named(host: str, gpu: int, **more: str) -> dict[str, str]:
    """A GPU's labels."""
    labels = {"gpu": str(gpu), "UUID": f"GPU-{host}-{gpu}", "modelName": H100, "Hostname": host}
    return {**labels, **more}


def gpus(host: str, count: int, *, told: str | None = None, **more: str) -> str:
    """A node's GPUs, each at 80 % with tensor pipes at 40 %."""
    lines = []
    for gpu in range(count):
        who = {
            "gpu": str(gpu),
            "UUID": f"GPU-{host}-{gpu}",
            "modelName": H100,
            "Hostname": told or host,
            **more,
        }
        lines += [
            line("DCGM_FI_DEV_GPU_UTIL", 80, **who),
            line("DCGM_FI_DEV_GPU_TEMP", 50 + gpu, **who),
            line("DCGM_FI_DEV_SM_CLOCK", 1830, **who),
            line("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.4, **who),
            line("DCGM_FI_DEV_POWER_USAGE", 500, **who),
            line("DCGM_FI_PROF_NVLINK_TX_BYTES", 1e6, **who),
            line("DCGM_FI_PROF_NVLINK_RX_BYTES", 1e6, **who),
        ]
    return "\n".join(lines) + "\n"


def profiled(host: str, count: int) -> str:
    """An exporter whose list of metrics holds profiling ones only: of what others call the activity it has blanks."""
    lines = []
    for gpu in range(count):
        who = named(host, gpu, hpc_job="31")
        lines += [
            line("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.6, **who),
            line("DCGM_FI_DEV_GPU_UTIL", BLANK, **who),
            line("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.2, **who),
        ]
    return "\n".join(lines) + "\n"


def sliced(host: str) -> str:
    """A GPU in MIG mode: its instances have activity, the whole has a temperature."""
    who = named(host, 0)
    lines = [line("DCGM_FI_DEV_GPU_TEMP", 45, **who)]
    for instance in ("7", "8"):
        mig = {**who, "GPU_I_ID": instance, "GPU_I_PROFILE": "3g.40gb", **POD}
        lines += [
            line("DCGM_FI_DEV_GPU_TEMP", 45, **mig),
            line("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.99, **mig),
            line("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.99, **mig),
        ]
    return "\n".join(lines) + "\n"


BEGIN = time.time()
RATE = 1e6


def agent() -> str:
    """A GPU of Slurm job 99, an RDMA port, and ports that carry no job's traffic; counters begin anew every 7 s."""
    gpu = {"gpu_uuid": "GPU-node-e-0"}
    run = (time.time() - BEGIN) % 7.0
    lines = [
        line("flopwatch_gpu_up", 1, **gpu),
        line("flopwatch_gpu_info", 1, **gpu, name=H100, slot="0000:01:00.0", index="0", mig_profile=""),
        line("flopwatch_job_gpu_info", 1, **gpu, job_id="99", scheduler="slurm", user="ann", account="nlp"),
        line("hw_gpu_utilization_ratio", 0.7, **gpu),
    ]
    for port, role, rate in (
        ("mlx5_0/1", "rdma", RATE),
        ("eth0", "ethernet", 1e9),
        ("bmc", "management", 1e9),
    ):
        lines.append(line("flopwatch_port_info", 1, port=port, role=role, scope="port"))
        for way, share in (("transmit", 1.0), ("receive", 3.0)):
            moved = round(rate * share * run)
            lines.append(line("hw_network_io_bytes_total", moved, port=port, network_io_direction=way))
    return "\n".join(lines) + "\n"


def scrape(job: str, exporter: Exporter, **labels: str) -> dict[str, Any]:
    return {"job_name": job, "static_configs": [{"targets": [exporter.target], "labels": labels}]}


@pytest.fixture(scope="module", params=servers.KINDS)
def server(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    inside = Exporter(lambda: gpus("node-a", 2, told="nvidia-dcgm-exporter-x7x2z", **POD))
    knowing, bare = Exporter(lambda: gpus("node-b", 2, **POD)), Exporter(lambda: gpus("node-b", 2))
    few, mig = Exporter(lambda: profiled("node-c", 4)), Exporter(lambda: sliced("node-d"))
    own = Exporter(agent)
    scrapes = [
        scrape("dcgm", inside, node="node-a"),
        scrape("again", inside, node="node-a", instance="10.0.0.7:9400"),
        scrape("knowing", knowing),
        scrape("bare", bare),
        scrape("few", few),
        scrape("mig", mig),
        scrape("own", own, instance="node-e:9095"),
        scrape("own again", own, instance="node-e:9095"),
    ]
    with servers.running(
        request.param, tmp_path_factory.mktemp(request.param), more={"scrape_configs": scrapes}
    ) as made:
        tensor = "count_over_time(DCGM_FI_PROF_PIPE_TENSOR_ACTIVE[1m]) > 3"
        eventually(lambda: len(made.query(tensor)) == 2 * 2 + 2 * 2 + 4 + 2, 60)
        eventually(lambda: made.query("min(resets(hw_network_io_bytes_total[1m])) > 1"), 60)
        yield made
    for exporter in (inside, knowing, bare, few, mig, own):
        exporter.stop()


@pytest.fixture
def query(server: Server, monkeypatch: pytest.MonkeyPatch) -> PrometheusQuery:
    monkeypatch.setattr("flopwatch_collector.prometheus.site.MOMENT_SECONDS", 0.5)
    monkeypatch.setattr("flopwatch_collector.prometheus.site.LEAST_STEP_SECONDS", 1.0)
    now = time.time()
    return PrometheusQuery(PromClient(Endpoint(setting="p", url=server.url)), clock=lambda: now)


def test_every_gpu_counts_once_and_nodes_are_called_by_their_names(query: PrometheusQuery) -> None:
    (cluster,) = query.status().clusters
    assert (cluster.nodes, cluster.gpus, cluster.gpus_reporting) == (5, 10, 10)
    assert [(row.node, row.gpus) for row in query.nodes(Range()).nodes] == [
        ("node-a", 2), ("node-b", 2), ("node-c", 4), ("node-d", 1), ("node-e", 1),
    ]  # fmt: skip


def test_a_job_has_the_gpus_that_it_has_however_often_they_are_scraped(query: PrometheusQuery) -> None:
    slurm, pod, own = query.jobs(Range(seconds=60.0)).rows
    assert (pod.job_id, pod.gpus, pod.nodes) == ("vision.vit-0", 4, 2)
    assert pod.mfu.value_ratio == pytest.approx(0.4)
    assert (slurm.job_id, slurm.gpus, slurm.nodes) == ("slurm-31", 4, 1)
    assert slurm.kernel_active_ratio == pytest.approx(0.6)
    assert slurm.tensor_active_ratio == pytest.approx(0.2)
    assert slurm.mfu.value_ratio is None, "its clock is not known"
    assert (own.job_id, own.user, own.gpus, own.nodes) == ("99", "ann", 1, 1)
    assert own.kernel_active_ratio == pytest.approx(0.7)

    job = query.job("vision.vit-0", Range(seconds=60.0))
    assert job is not None
    assert [(node.node, node.gpus) for node in job.nodes] == [("node-a", 2), ("node-b", 2)]
    assert job.series.columns["nvlink_bytes_per_second"][-1] == pytest.approx(4 * 2e6)


def test_the_power_of_a_node_is_that_of_its_gpus_each_once(query: PrometheusQuery) -> None:
    for name in ("node-a", "node-b"):
        node = query.node(name, Range(seconds=60.0))
        assert node is not None
        assert node.series.columns["node_power_watts"][-1] == pytest.approx(2 * 500.0)
        assert node.series.columns["hottest_celsius"][-1] == pytest.approx(51.0)


def test_an_agent_s_rdma_ports_are_a_node_s_network_also_while_they_begin_anew(
    query: PrometheusQuery,
) -> None:
    node = query.node("node-e", Range(seconds=60.0))
    assert node is not None
    sent, received = (node.series.columns[name][-1] for name in ("nic_transmit", "nic_receive"))
    # A server that was just started spreads what it has seen over its window. With Ethernet, or with a port that begins
    # anew taken for one that goes on, it would be a hundred times more, or less than nothing.
    assert 0.0 < sent < 1.2 * RATE
    assert received == pytest.approx(3.0 * sent, rel=1e-3)


def test_instances_of_a_gpu_are_not_taken_for_the_gpu(query: PrometheusQuery) -> None:
    node = query.node("node-d", Range(seconds=60.0))
    assert node is not None
    (gpu,) = node.gpus
    assert gpu.values.get("kernel_active_ratio") is gpu.values.get("tensor_active_ratio") is None
    assert gpu.values["temperature_celsius"] == 45.0
