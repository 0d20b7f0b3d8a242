"""Pods whose processes the agent does not see: their output and what is not known without the processes."""

import os
import time
from pathlib import Path

from tests.fixtures_nvml import FakeNvml
from tests.integration.agent.agent_process import FakeCollector, eventually
from tests.integration.agent.watched_job import ROW, cri

from flopwatch_agent.pod_jobs import LIVE_SECONDS, SETTLED_SECONDS, PodJobs

TRAINING = "0d5c0e1a-77aa-4be7-9d3e-30c6e8b5f0aa"
OTHER = "11111111-77aa-4be7-9d3e-30c6e8b5f0aa"


def pod(root: Path, name: str, uid: str, text: str) -> Path:
    container = root / f"ml_{name}_{uid}/main"
    container.mkdir(parents=True)
    (container / "0.log").write_text(cri(text))
    return container / "0.log"


def refs(jobs) -> list[str]:
    return sorted(job.sighting.ref for job in jobs)


def test_pods_are_looked_at_only_while_processes_are_hidden_for_a_while(tmp_path: Path) -> None:
    pod(tmp_path, "llm-0", TRAINING, ROW.format(0))
    found = PodJobs(tmp_path, lambda ref: False)
    now = time.time()

    assert found.look(now, ("GPU-a",), frozenset()) == ((), ())
    assert found.look(now + SETTLED_SECONDS - 1, (), frozenset()) == ((), ())
    assert found.look(now + SETTLED_SECONDS, ("GPU-a",), frozenset()) == ((), ())
    live, _ = found.look(now + 2 * SETTLED_SECONDS, ("GPU-a",), frozenset())
    assert refs(live) == [f"kubernetes:{TRAINING}"]
    assert found.is_silent(f"kubernetes:{TRAINING}")


def test_the_only_pod_that_trains_is_taken_to_use_the_busy_gpus_and_two_are_not(tmp_path: Path) -> None:
    for name, uid in (("llm-0", TRAINING), ("llm-1", OTHER)):
        pod(tmp_path, name, uid, ROW.format(0))
    training = {f"kubernetes:{TRAINING}"}
    found = PodJobs(tmp_path, lambda ref: ref in training)
    now, gpus = time.time(), ("GPU-a", "GPU-b")
    found.look(now, gpus, frozenset())

    live, _ = found.look(now + SETTLED_SECONDS, gpus, frozenset())
    assert {job.sighting.name: job.sighting.gpus for job in live} == {"llm-0": gpus, "llm-1": ()}
    assert [finding.code for job in live for finding in job.findings] == ["processes_hidden"]

    training.add(f"kubernetes:{OTHER}")
    live, _ = found.look(now + SETTLED_SECONDS + 1, gpus, frozenset())
    assert [job.sighting.gpus for job in live] == [(), ()]
    assert all("hostPID: true" in finding.text for job in live for finding in job.findings)


def test_a_pod_that_is_gone_or_silent_has_ended_and_one_whose_processes_appear_has_not(
    tmp_path: Path,
) -> None:
    logs = {uid: pod(tmp_path, "p", uid, ROW.format(0)) for uid in (TRAINING, OTHER)}
    found = PodJobs(tmp_path, lambda ref: True)
    now, gpus = time.time(), ("GPU-a",)
    found.look(now, gpus, frozenset())
    found.look(now + SETTLED_SECONDS, gpus, frozenset())

    old = now - LIVE_SECONDS
    os.utime(logs[OTHER], (old, old))
    live, ended = found.look(now + 60.0, gpus, frozenset())
    assert (refs(live), refs(ended)) == ([f"kubernetes:{TRAINING}"], [f"kubernetes:{OTHER}"])

    seen = frozenset({f"kubernetes:{TRAINING}"})
    assert found.look(now + 90.0, gpus, seen) == ((), ())


def test_an_agent_without_the_hosts_processes_gives_a_pod_s_steps_and_says_what_is_missing(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, tmp_path: Path, monkeypatch
) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/uptime").symlink_to("/proc/uptime")
    root = tmp_path / "pods"
    log = pod(root, "llm-0", TRAINING, "".join(ROW.format(n) for n in range(5)))
    pod(root, "web-0", OTHER, "GET /healthz 200\n" * 50)
    fake_nvml.write("gpus 2", "proc 0 4000001 100", "proc 1 4000002 100")

    new_agent(collector_url=collector.url, proc_root=tmp_path / "proc", pod_logs=root)
    steps = eventually(lambda: found if len(found := collector.all("steps")) == 5 else None, 45)
    with log.open("a") as sink:
        sink.write(cri(ROW.format(5)))
    eventually(lambda: len(collector.all("steps")) == 6)

    assert {step["job"] for step in steps} == {f"kubernetes:{TRAINING}"}
    assert {job["name"] for job in collector.all("jobs")} == {"llm-0"}
    job = eventually(lambda: [job for job in collector.all("jobs") if job.get("gpus")])[-1]
    assert len(job["gpus"]) == 2
    assert job["log_path"] == str(log)
    assert [finding["code"] for finding in collector.all("findings")] == ["processes_hidden"] * len(
        collector.all("findings")
    )
    facts = [batch["node_facts"] for batch in collector.batches if "node_facts" in batch]
    assert any("hostPID" in gap for fact in facts for gap in fact.get("permission_gaps", ()))
    assert str(OTHER) not in str(collector.received)
