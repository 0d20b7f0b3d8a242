"""Nodes and GPUs as pages: from batches that were pushed to columns of GPUs, health, jobs, ports and courses."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.views.site import INTERVAL, MIDNIGHT, Site, gpu_name, job_ref

from flopwatch.query import Range
from flopwatch.viewer import Viewer, entered
from flopwatch.wire import Event, PortSample
from flopwatch_collector.compute.buckets import BUCKETS
from flopwatch_collector.config import CollectorSettings
from flopwatch_collector.views.of_teams import OfTeams

START = MIDNIGHT + 3_600.0
BUSY = {
    "kernel_active_ratio": 0.9, "tensor_active_ratio": 0.45, "power_watts": 600.0, "temperature_celsius": 61.0,
    "sm_clock_hertz": 1.755e9, "process_count": 1,
}  # fmt: skip


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    settings = CollectorSettings(data_dir=tmp_path / "collector", rack_pattern=r"^(r\d+)-")
    made = Site(tmp_path, collector=settings)
    yield made
    made.close()


def ports(start: float, seconds: float) -> tuple[PortSample, ...]:
    """A port that sends 2 GB/s and receives 1 GB/s, whose errors grow by three, and one that is down."""
    count = int(seconds // INTERVAL) + 1
    times = [start + at * INTERVAL for at in range(count)]
    up = [
        PortSample(
            time_seconds=time, port="mlx5_0/1", role="rdma", transmit_bytes=int(2e9 * INTERVAL * at),
            receive_bytes=int(1e9 * INTERVAL * at), errors=7 if at < count - 1 else 10, link_up=True,
            link_rate_bits_per_second=4e11,
        )
        for at, time in enumerate(times)
    ]  # fmt: skip
    down = PortSample(time_seconds=times[-1], port="mlx5_1/1", role="rdma", link_up=False)
    return (*up, down)


def busy_and_idle(site: Site) -> None:
    """``n1`` runs the job, ``r3-n10`` and ``r3-n9`` are free; ``r3-n9`` has been silent for ten minutes."""
    site.push("r3-n9", START - 900, 300)
    site.push("r3-n10", START, 300)
    site.push("n1", START, 300, job=job_ref(), samples=BUSY, port_samples=ports(START, 300))
    site.running.periodic.accounting.tick(site.now)


def test_nodes_are_in_the_order_people_count_with_their_racks(site: Site) -> None:
    busy_and_idle(site)

    page = site.query.nodes(Range())

    assert [(row.node, row.rack) for row in page.nodes] == [("n1", None), ("r3-n9", "r3"), ("r3-n10", "r3")]
    assert [row.gpus for row in page.nodes] == [8, 8, 8]
    assert [row.gpus_reporting for row in page.nodes] == [8, 0, 8]
    assert [row.health for row in page.nodes] == ["ok", "unknown", "ok"]
    assert page.nodes[1].problems == ("silent",)


def test_every_gpu_has_its_values_its_job_and_what_its_time_counts_as(site: Site) -> None:
    busy_and_idle(site)

    page = site.query.nodes(Range())
    gpus = page.gpus

    assert gpus.node == (0,) * 8 + (1,) * 8 + (2,) * 8
    assert gpus.index[:8] == tuple(range(8))
    assert gpus.values["kernel_active_ratio"][0] == 0.9
    assert gpus.values["temperature_celsius"][7] == 61.0
    assert gpus.values["sm_active_ratio"][0] is None
    assert gpus.values["kernel_active_ratio"][16] == 0.0
    assert page.jobs[gpus.job[3]].name == "llama-8b"
    assert gpus.job[8] == -1
    assert [BUCKETS[gpus.bucket[at]] for at in (8, 16)] == ["UNKNOWN", "FREE"]
    assert gpus.reporting[8:17] == (False,) * 8 + (True,)
    # 2 GB/s out and 1 GB/s in
    assert gpus.values["nic_bytes_per_second"][0] == pytest.approx(3e9)
    assert gpus.values["nic_bytes_per_second"][16] is None


def test_a_cluster_is_asked_for_alone(site: Site) -> None:
    busy_and_idle(site)

    assert site.query.nodes(Range(cluster="a")).nodes
    assert site.query.nodes(Range(cluster="elsewhere")).nodes == ()


def test_a_node_page_has_gpus_ports_jobs_and_courses(site: Site) -> None:
    busy_and_idle(site)

    page = site.query.node("n1", Range(seconds=3_600.0))

    assert page is not None
    assert [row.uuid for row in page.gpus] == [gpu_name("n1", at) for at in range(8)]
    assert page.gpus[0].values["power_watts"] == 600.0
    assert [(port.port, port.link_up) for port in page.ports] == [("mlx5_0/1", True), ("mlx5_1/1", False)]
    assert page.ports[0].transmit_bytes_per_second == pytest.approx(2e9)
    assert page.ports[0].receive_bytes_per_second == pytest.approx(1e9)
    assert (page.ports[0].errors, page.ports[0].new_errors) == (10, 3)
    assert page.ports[1].transmit_bytes_per_second is None
    assert [(ran.job.name, ran.gpus, ran.end_seconds) for ran in page.jobs] == [("llama-8b", 8, None)]
    known = [value for value in page.series.columns["node_power_watts"] if value is not None]
    assert known[-1] == 8 * 600.0
    assert page.series.columns["node_power_watts"][0] is None
    assert page.ledger is not None
    assert page.ledger.capacity_gpu_milliseconds > 0


def test_there_is_no_page_of_what_is_not_known(site: Site) -> None:
    busy_and_idle(site)

    assert site.query.node("n77", Range()) is None
    assert site.query.node("n1", Range(cluster="elsewhere")) is None
    assert site.query.gpu("GPU-nobody", Range()) is None


def test_a_gpu_page_has_its_course_and_what_befell_it(site: Site) -> None:
    uuid = gpu_name("n1", 2)
    xid = Event(time_seconds=START + 60, kind="xid", gpu=uuid, code=79, text="GPU has fallen off the bus")
    other = Event(
        time_seconds=START + 90, kind="xid", gpu=gpu_name("n1", 3), code=13, text="graphics exception"
    )
    site.push(
        "n1", START, 300, job=job_ref(), samples={**BUSY, "clock_event_reasons": 0x40}, events=(xid, other)
    )
    site.running.periodic.accounting.tick(site.now)

    page = site.query.gpu(uuid, Range(seconds=3_600.0))

    assert page is not None
    assert page.row.problems == ("xid", "throttled")
    assert page.row.health == "warning"
    assert page.row.throttles == ("hw_thermal",)
    assert [(event.kind, event.code) for event in page.events] == [("xid", 79)]
    assert [ran.gpus for ran in page.jobs] == [1]
    assert [value for value in page.series.columns["tensor_active"] if value is not None][-1] == 0.45
    assert page.slot_history[0][0] == uuid
    # 13 is what a faulty kernel raises too
    node = site.query.node("n1", Range())
    assert node is not None
    assert node.gpus[3].problems == ("throttled",)


def test_a_range_that_has_ended_shows_the_past(site: Site) -> None:
    busy_and_idle(site)

    page = site.query.node("n1", Range(seconds=600.0, end_seconds=START - 600.0))

    assert page is not None
    assert all(value is None for value in page.series.columns["node_power_watts"])
    assert page.row.gpus_reporting == 8


def test_a_reader_of_a_team_does_not_see_the_jobs_of_others(site: Site) -> None:
    busy_and_idle(site)
    pages = OfTeams(site.query)

    with entered(Viewer(role="viewer", teams=("vision",))):
        nodes, node, gpu = (
            pages.nodes(Range()),
            pages.node("n1", Range()),
            pages.gpu(gpu_name("n1", 0), Range()),
        )

    assert {job.name for job in nodes.jobs} == {""}
    assert node is not None
    assert gpu is not None
    assert node.jobs == gpu.jobs == ()
    assert node.gpus[0].job is not None
    assert node.gpus[0].job.job_id == ""


def test_a_run_whose_next_report_is_due_counts_as_what_it_did_before(site: Site) -> None:
    site.now = START
    site.train(1_500, step_seconds=60.0)
    # thirty seconds into a window, before the step's end is reported
    site.push("n1", site.now, 30, job=job_ref(), samples=BUSY)
    site.running.periodic.accounting.tick(site.now)

    page = site.query.nodes(Range())

    place = [row.node for row in page.nodes].index("n1")
    own = [page.gpus.bucket[at] for at, node in enumerate(page.gpus.node) if node == place]
    assert {BUCKETS[code] for code in own} == {"STEP"}
