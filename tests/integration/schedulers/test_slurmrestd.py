"""Slurm through slurmrestd: versions, tokens, what is missing."""

from pathlib import Path
from typing import Any

import pytest
from tests.integration.schedulers.answering import answering

from flopwatch_collector.schedulers.asking import Server
from flopwatch_collector.schedulers.reading import GpuLimit, Reading, SchedulerUnreachable
from flopwatch_collector.schedulers.slurm import Slurm
from flopwatch_collector.schedulers.slurm_rest import SlurmRest

NOW = 1_796_100_000.0
JOB = {
    "job_id": 7, "job_state": ["RUNNING"], "user_name": "alice", "nodes": "gpu001", "tres_alloc_str": "gres/gpu=2",
    "gres_detail": ["gpu:h100:2(IDX:4-5)"], "start_time": {"set": True, "infinite": False, "number": 1_796_090_000},
}  # fmt: skip
GPUS = [{"type": "gres", "name": "gpu", "id": 1, "count": 32}]


def answers(version: str) -> dict[str, Any]:
    return {
        f"/slurm/{version}/jobs": {"jobs": [JOB]},
        f"/slurm/{version}/nodes": {"nodes": [{"name": "gpu001", "gres": "gpu:h100:8", "state": ["MIXED"]}]},
        f"/slurm/{version}/reservations": {"reservations": []},
        f"/slurmdb/{version}/qos": {"qos": [{"name": "high", "limits": {"max": {"tres": {"total": GPUS}}}}]},
        f"/slurmdb/{version}/jobs": {"jobs": []},
    }


def read(url: str, **more: Any) -> Reading:
    return Slurm(door=SlurmRest(server=Server(url=url, timeout_seconds=5.0, **more))).read(NOW)


@pytest.mark.parametrize("version", ["v0.0.40", "v0.0.41", "v0.0.42", "v0.0.43"])
def test_every_version_of_the_api_is_found_and_read(version: str) -> None:
    with answering(answers(version)) as api:
        reading = read(api.url)

    (job,) = reading.jobs
    assert (job.user, job.allocations[0].indices) == ("alice", (4, 5))
    assert reading.limits == (GpuLimit(kind="qos", name="high", gpus=32),)
    assert [node.gpu_count for node in reading.nodes or ()] == [8]
    assert reading.problems == ()


def test_the_token_is_read_from_its_file_at_every_question(tmp_path: Path) -> None:
    token = tmp_path / "jwt"
    secrets = {"X-SLURM-USER-TOKEN": ("", token)}
    with answering(answers("v0.0.43")) as api:
        server = Server(url=api.url, headers={"X-SLURM-USER-NAME": "flopwatch"}, secret_files=secrets)
        slurm = Slurm(door=SlurmRest(server=server, version="v0.0.43"))
        for secret in ("first", "second"):
            token.write_text(secret + "\n")
            slurm.read(NOW)
        told = [
            (headers["X-Slurm-User-Token"], headers["X-Slurm-User-Name"])
            for path, _, headers in api.asked
            if path == "/slurm/v0.0.43/jobs"
        ]

    assert told == [("first", "flopwatch"), ("second", "flopwatch")]


def test_a_refused_token_is_said_in_the_server_s_words() -> None:
    with (
        answering({"/slurm/v0.0.43/jobs": (401, {"errors": [{"error": "Authentication failure"}]})}) as api,
        pytest.raises(
            SchedulerUnreachable, match=r"/slurm/v0\.0\.43/jobs answers 401: .*Authentication failure"
        ),
    ):
        read(api.url)


def test_without_accounting_jobs_are_read_and_what_is_missing_is_said_once_a_reading() -> None:
    told = {path: each for path, each in answers("v0.0.42").items() if not path.startswith("/slurmdb")}
    told["/slurmdb/v0.0.42/qos"] = (500, {"errors": [{"error": "Unable to connect to database"}]})
    with answering(told) as api:
        reading = read(api.url)

    assert [job.scheduler_job_id for job in reading.jobs] == ["7"]
    assert reading.limits is None
    assert [problem for problem in reading.problems if "qos answers 500" in problem] == list(reading.problems)


def test_a_server_that_is_no_slurmrestd_is_named() -> None:
    with answering({}) as api, pytest.raises(SchedulerUnreachable, match=r"speaks none of v0\.0\.43"):
        read(api.url)


def test_accounting_is_asked_from_before_the_last_reading_on() -> None:
    with answering(answers("v0.0.43")) as api:
        slurm = Slurm(door=SlurmRest(server=Server(url=api.url)))
        slurm.read(NOW)
        slurm.read(NOW + 30.0)
        since = [query["start_time"] for path, query, _ in api.asked if path == "/slurmdb/v0.0.43/jobs"]

    assert since == [str(int(NOW) - 900), str(int(NOW) - 900)]
