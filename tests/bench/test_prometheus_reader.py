"""Pages over a real Prometheus that holds 10,000 GPUs: what they cost the dashboard and the server."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.prometheus import servers
from tests.integration.prometheus.servers import Server

from flopwatch.query import Range
from flopwatch_collector.prometheus.endpoint import Endpoint
from flopwatch_collector.prometheus.promql import PromClient
from flopwatch_collector.prometheus.reader import PrometheusQuery
from flopwatch_collector.prometheus.remote_write import HEADERS
from flopwatch_collector.prometheus.samples import Sample
from flopwatch_collector.prometheus.write_request import encode

NODES, GPUS_A_NODE, NODES_A_JOB, MINUTES = 1_250, 8, 10, 10
SIGNALS = {
    "DCGM_FI_DEV_GPU_UTIL": 95.0,
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 0.5,
    "DCGM_FI_DEV_SM_CLOCK": 1647.0,
    "DCGM_FI_DEV_POWER_USAGE": 600.0,
}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with servers.running("prometheus", tmp_path_factory.mktemp("fleet")) as server:
        endpoint = Endpoint(setting="bench.", url=server.write_url, timeout_seconds=60.0)
        newest = time.time()
        for minute in range(MINUTES):
            stamp = round((newest - 60 * (MINUTES - 1 - minute)) * 1000)
            for begin in range(0, NODES, 50):
                body = encode(sample for node in range(begin, begin + 50) for sample in of_node(node, stamp))
                assert endpoint.post("", body, HEADERS).status < 300
        yield server


def of_node(node: int, stamp: int) -> Iterator[Sample]:
    for gpu in range(GPUS_A_NODE):
        labels = {
            "Hostname": f"node-{node:04d}", "UUID": f"GPU-{node:04d}-{gpu}", "device": f"nvidia{gpu}", "gpu": str(gpu),
            "hpc_job": str(1000 + node // NODES_A_JOB), "instance": f"node-{node:04d}:9400", "job": "dcgm",
            "modelName": "NVIDIA H100 80GB HBM3",
        }  # fmt: skip
        for name, value in SIGNALS.items():
            named = (("__name__", name), *sorted(labels.items()))
            yield Sample(labels=named, value=value, time_milliseconds=stamp)


def cpu_seconds(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("page", ["status", "fleet", "jobs", "job"])
def test_pages_of_ten_thousand_gpus(fleet: Server, page: str) -> None:
    client = PromClient(Endpoint(setting="bench.", url=fleet.url, timeout_seconds=60.0))
    query = PrometheusQuery(client)
    asked = Range(seconds=3_600.0, points=200)
    before, own, wall = cpu_seconds(fleet.process.pid), time.process_time(), time.monotonic()

    if page == "status":
        assert sum(cluster.gpus_reporting for cluster in query.status().clusters) == NODES * GPUS_A_NODE
    elif page == "fleet":
        assert query.fleet(asked).series.columns["kernel_active"][-1] == pytest.approx(0.95)
    elif page == "jobs":
        rows = query.jobs(asked).rows
        assert (len(rows), rows[0].gpus) == (NODES // NODES_A_JOB, NODES_A_JOB * GPUS_A_NODE)
    else:
        job = query.job("slurm-1000", asked)
        assert job is not None
        assert len(job.nodes) == NODES_A_JOB

    print(
        f"\n{page}: {client.asked} questions, dashboard {time.process_time() - own:.3f} CPU-s, "
        f"Prometheus {cpu_seconds(fleet.process.pid) - before:.2f} CPU-s, {time.monotonic() - wall:.2f} s"
    )
