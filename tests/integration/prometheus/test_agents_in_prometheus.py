"""A real agent over the fake NVML, scraped by a real Prometheus beside an exporter that reports one of its GPUs too."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.exporter import Exporter
from tests.fixtures_nvml import FakeNvml
from tests.integration.agent.agent_process import Agent
from tests.integration.prometheus import exporters, servers
from tests.integration.prometheus.exporters import line
from tests.integration.prometheus.servers import eventually

from flopwatch.query import Range
from flopwatch_collector.prometheus.endpoint import Endpoint
from flopwatch_collector.prometheus.promql import PromClient
from flopwatch_collector.prometheus.reader import PrometheusQuery

UUID = "GPU-fa4e0000-0000-4000-8000-{:012x}"
SLEEP = "import time; time.sleep(600)"


@pytest.fixture(autouse=True)
def short_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flopwatch_collector.prometheus.site.MOMENT_SECONDS", 0.5)
    monkeypatch.setattr("flopwatch_collector.prometheus.site.LEAST_STEP_SECONDS", 1.0)


@pytest.mark.parametrize("kind", servers.KINDS)
def test_agents_are_read_under_their_own_names_and_beat_another_exporter(
    kind: servers.Kind,
    tmp_path: Path,
    fake_nvml: FakeNvml,
    new_agent: Callable[..., Agent],
    processes: Callable[..., Any],
) -> None:
    trainer = processes(SLEEP, env={"SLURM_JOB_ID": "99", "SLURM_JOB_USER": "ann", "RANK": "0"})
    fake_nvml.write(
        "gpus 3", "util * 80 30", "gpm * 80 30 60 40", "clocks * 1464 2619", "power * 500 480",
        f"proc 0 {trainer.pid} 60000", f"proc 1 {trainer.pid} 60000",
    )  # fmt: skip
    agent = new_agent()
    eventually(lambda: agent.has(f'flopwatch_gpu_tensor_active_ratio{{gpu_uuid="{UUID.format(0)}"}}'))
    other = Exporter(
        lambda: (
            "\n".join(
                line("DCGM_FI_DEV_GPU_UTIL", 10, UUID=uuid, Hostname="h", modelName=exporters.H100)
                for uuid in (UUID.format(0), "GPU-elsewhere")
            )
            + "\n"
        )
    )
    with servers.running(kind, tmp_path / "server", [f"127.0.0.1:{agent.port}", other.target]) as server:
        for name in ("flopwatch_job_gpu_info", "DCGM_FI_DEV_GPU_UTIL"):
            eventually(lambda name=name: len(server.query(f"count_over_time({name}[1m]) > 2")) == 2)
        query = PrometheusQuery(PromClient(Endpoint(setting="p", url=server.url)), clock=time.time)
        status, (row,) = query.status(), query.jobs(Range(seconds=30.0)).rows
        fleet, job = query.fleet(Range(seconds=30.0)), query.job("99", Range(seconds=30.0))
    other.stop()

    assert [(each.gpus, each.gpus_reporting) for each in status.clusters] == [(4, 4)]
    assert (row.job_id, row.scheduler, row.gpus) == ("99", "slurm", 2)
    assert row.kernel_active_ratio == pytest.approx(0.8)
    assert row.tensor_active_ratio == pytest.approx(0.6)
    assert row.mfu.value_ratio == pytest.approx(0.6 * 1464 / 1830)
    assert fleet.series.columns["kernel_active"][-1] == pytest.approx((3 * 0.8 + 0.1) / 4)
    assert job is not None
    assert job.series.columns["power_watts"][-1] == pytest.approx(500.0), "of a GPU"
    assert [node.gpus for node in job.nodes] == [2]
