"""StepReporter in real processes, against a real socket and against a real agent."""

import json
import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.integration.agent.agent_process import FakeCollector, eventually


def run(code: str, path: Path | str, **environment: str) -> "subprocess.CompletedProcess[str]":
    inherited = {key: value for key, value in os.environ.items() if key not in ("RANK", "FLOPWATCH_STDERR")}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**inherited, "FLOPWATCH_SOCKET": str(path), **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )


@pytest.fixture
def listener(tmp_path: Path):
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.bind(str(tmp_path / "s.sock"))
    made.settimeout(5)
    yield made
    made.close()


def received(listener: socket.socket) -> list[dict]:
    listener.setblocking(False)
    found = []
    while True:
        try:
            found.append(json.loads(listener.recv(65536)))
        except BlockingIOError:
            return found


def drained(listener: socket.socket) -> list[dict]:
    """Everything that comes up to an empty message, taken as it comes."""
    found: list[bytes] = []
    while body := listener.recv(65536):
        found.append(body)
    return [json.loads(body) for body in found]


def listener_is_done(path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"", str(path))


def test_a_step_is_one_message_with_its_duration_and_what_is_known(listener, tmp_path: Path) -> None:
    code = """
import time
from flopwatch import StepReporter
reporter = StepReporter(first_step=7)
with reporter.step(tokens=4096) as step:
    time.sleep(0.05)
    step.note(loss=2.5)
"""
    run(code, tmp_path / "s.sock")

    (message,) = received(listener)
    assert (message["event"], message["step"], message["steps_covered"], message["tokens"]) == (
        "step",
        7,
        1,
        4096,
    )
    assert 0.05 <= message["seconds"] < 0.5
    assert message["loss"] == 2.5
    assert message["rank"] == 0
    assert abs(message["end_time_seconds"] - time.time()) < 30


def test_run_facts_and_phases_are_told(listener, tmp_path: Path) -> None:
    code = """
from flopwatch import StepReporter
reporter = StepReporter()
reporter.run(shape={"layers": 2}, world_size=8, dtype="bf16", secret="no")
with reporter.phase("checkpoint", step=3): pass
try:
    with reporter.phase("checkpoint"): raise ValueError
except ValueError: pass
with reporter.phase("lunch"): pass
"""
    run(code, tmp_path / "s.sock")

    facts, saved, failed = received(listener)
    assert facts == {"event": "run", "shape": {"layers": 2}, "world_size": 8, "dtype": "bf16", "rank": 0}
    assert (saved["event"], saved["kind"], saved["step"], saved["committed"]) == (
        "phase",
        "checkpoint",
        3,
        True,
    )
    assert saved["begin_seconds"] <= saved["end_seconds"]
    assert failed["committed"] is False


def test_without_a_with_block_a_step_lasts_from_the_one_before_less_the_phases_between(
    listener, tmp_path: Path
) -> None:
    code = """
import time
from flopwatch import StepReporter
reporter = StepReporter()
reporter.step_done(tokens=1)
time.sleep(0.1)
with reporter.phase("eval"): time.sleep(0.5)
reporter.step_done(tokens=1)
"""
    run(code, tmp_path / "s.sock")

    first, phase, second = received(listener)
    assert first["seconds"] is None
    assert phase["kind"] == "eval"
    assert 0.1 <= second["seconds"] < 0.4


def test_steps_that_cannot_be_sent_are_summed_into_the_next_message(tmp_path: Path) -> None:
    code = """
import os, socket, sys, time
from flopwatch import StepReporter
path = os.environ["FLOPWATCH_SOCKET"]
first = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); first.bind(path)
reporter = StepReporter()
reporter.step_done(1, seconds=1.0, tokens=10)
first.close(); os.unlink(path)
for n in (2, 3, 4): reporter.step_done(n, seconds=2.0, tokens=10)
assert reporter.unsent_steps == 3, reporter.unsent_steps
second = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); second.bind(path)
reporter._channel.hurry()
reporter.step_done(5, seconds=1.5, tokens=10)
print(second.recv(65536).decode())
assert reporter.unsent_steps == 0
"""
    answer = run(code, tmp_path / "s.sock")

    message = json.loads(answer.stdout)
    assert (message["step"], message["steps_covered"], message["seconds"], message["tokens"]) == (
        5,
        4,
        7.5,
        40,
    )
    assert message["unsent_steps"] == 3
    assert answer.stderr == ""


def test_a_sum_with_an_unknown_part_is_unknown() -> None:
    from flopwatch.report import merged

    before = {"event": "step", "step": 1, "steps_covered": 1, "seconds": None, "tokens": 5, "loss": 3.0}
    after = {"event": "step", "step": 2, "steps_covered": 1, "seconds": 1.0, "tokens": 6, "loss": 2.0}

    result = merged(before, after)

    assert result["seconds"] is None
    assert (result["tokens"], result["step"], result["steps_covered"], result["loss"]) == (11, 2, 2, 2.0)


def test_a_full_socket_does_not_block_and_nothing_is_lost(listener, tmp_path: Path) -> None:
    code = """
import time
from flopwatch import StepReporter
reporter = StepReporter()
began = time.monotonic()
for n in range(2000): reporter.step_done(n, seconds=0.001, tokens=1)
assert time.monotonic() - began < 2.0
print(reporter.unsent_steps)
"""
    answer = run(code, tmp_path / "s.sock")

    messages = received(listener)
    assert sum(m["steps_covered"] for m in messages) + int(answer.stdout) == 2000


def test_without_a_socket_the_same_message_is_one_line_on_standard_error(tmp_path: Path) -> None:
    code = """
from flopwatch import StepReporter
reporter = StepReporter()
reporter.run(parameter_count=7)
for n in range(1, 6): reporter.step_done(n, seconds=0.5, tokens=10)
reporter.close()
"""
    answer = run(code, tmp_path / "missing.sock")

    lines = [json.loads(line.removeprefix("flopwatch: ")) for line in answer.stderr.splitlines()]
    assert all(line.startswith("flopwatch: {") for line in answer.stderr.splitlines())
    assert lines[0] == {"event": "run", "parameter_count": 7, "rank": 0}
    assert sum(line["steps_covered"] for line in lines[1:]) == 5
    assert sum(line["seconds"] for line in lines[1:]) == 2.5


@pytest.mark.parametrize(
    "value", ["object()", "float('nan')", "10**400", "'x' * 100000", "[1, 2]", "b'bytes'"]
)
def test_nothing_that_is_passed_raises(listener, tmp_path: Path, value: str) -> None:
    code = f"""
from flopwatch import StepReporter
reporter = StepReporter()
reporter.step_done({value}, seconds={value}, tokens={value}, loss={value}, other={value})
reporter.run(shape={value}, world_size={value})
reporter.step_done(1, seconds=1.0)
"""
    run(code, tmp_path / "s.sock")


@pytest.mark.parametrize(
    ("variable", "value"), [("RANK", "1"), ("SLURM_PROCID", "3"), ("FLOPWATCH_SDK", "0")]
)
def test_only_rank_zero_reports(listener, tmp_path: Path, variable: str, value: str) -> None:
    code = "from flopwatch import StepReporter\nStepReporter().step_done(1, seconds=1.0)"

    answer = run(code, tmp_path / "s.sock", **{variable: value})

    assert received(listener) == []
    assert answer.stderr == ""


def test_a_forked_child_opens_its_own_connection(listener, tmp_path: Path) -> None:
    code = """
import os
from flopwatch import StepReporter
reporter = StepReporter()
reporter.step_done(1, seconds=1.0)
if os.fork() == 0:
    reporter.step_done(2, seconds=1.0)
    os._exit(0)
os.wait()
reporter.step_done(3, seconds=1.0)
"""
    run(code, tmp_path / "s.sock")

    assert [message["step"] for message in received(listener)] == [1, 2, 3]


def test_a_child_does_not_tell_what_waits_in_its_parent(listener, tmp_path: Path) -> None:
    code = """
import os, sys
from flopwatch import StepReporter
reporter = StepReporter()
while not reporter.unsent_steps: reporter.step_done(seconds=1.0)
count = reporter._next_step - 1
if os.fork() == 0:
    reporter.step_done(100_000, seconds=1.0)
    sys.exit(0)
os.wait()
print(count)
"""
    with ThreadPoolExecutor(1) as pool:
        draining = pool.submit(drained, listener)
        answer = run(code, tmp_path / "s.sock")
        listener_is_done(tmp_path / "s.sock")
        messages = draining.result(30)

    covered = {m["step"] == 100_000: 0 for m in messages}
    for message in messages:
        covered[message["step"] == 100_000] += message["steps_covered"]
    assert covered == {False: int(answer.stdout), True: 1}


def test_what_is_summed_up_is_told_when_the_script_ends(listener, tmp_path: Path) -> None:
    code = """
from flopwatch import StepReporter
reporter = StepReporter()
for n in range(1, 3001): reporter.step_done(n, seconds=0.001, tokens=2)
"""
    with ThreadPoolExecutor(1) as pool:
        draining = pool.submit(drained, listener)
        run(code, tmp_path / "s.sock")
        listener_is_done(tmp_path / "s.sock")
        messages = draining.result(30)

    assert sum(message["steps_covered"] for message in messages) == 3000
    assert sum(message["tokens"] for message in messages) == 6000
    assert messages[-1]["step"] == 3000


def test_importing_the_sdk_loads_only_the_standard_library() -> None:
    package = Path(__file__).parents[3] / "agent"
    code = f"""
import sys
before = set(sys.modules)
sys.path.insert(0, {str(package)!r})
import flopwatch
foreign = [name for name in set(sys.modules) - before
           if name.split('.')[0] not in sys.stdlib_module_names and name.split('.')[0] != 'flopwatch']
assert not foreign, foreign
assert 'dataclasses' not in sys.modules and 'typing' not in set(sys.modules) - before, 'import is not light'
assert sorted(n for n in sys.modules if n.startswith('flopwatch')) == ['flopwatch', 'flopwatch.report']
"""
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)


TRAIN = """
import sys, time
from flopwatch import StepReporter
reporter = StepReporter()
reporter.run(shape={"layers": 4, "hidden": 8}, world_size=2, job_name="told", mfu_target_ratio=0.4, kind="pretrain")
for n in range(1, 9):
    with reporter.step(tokens=512): time.sleep(0.1)
with reporter.phase("checkpoint", step=8): time.sleep(0.1)
time.sleep(600)
"""


def test_an_agent_takes_steps_from_the_socket_and_the_job_from_the_kernel(
    new_agent, collector: FakeCollector, processes, tmp_path: Path
) -> None:
    path = tmp_path / "steps.sock"
    agent = new_agent({"LD_LIBRARY_PATH": str(tmp_path)}, collector_url=collector.url, sdk_socket=path)
    eventually(path.exists)

    process = processes(TRAIN, env={**os.environ, "FLOPWATCH_SOCKET": str(path)}, stdout=subprocess.DEVNULL)
    eventually(lambda: len(collector.steps_of(process.pid)) == 8)
    phases = eventually(
        lambda: [item for item in collector.all("phases") if f":{process.pid}:" in item["job"]]
    )
    job = collector.jobs_of(process.pid)[-1]

    steps = collector.steps_of(process.pid)
    assert [step["step"] for step in steps] == list(range(1, 9))
    assert {(step["source"], step["tokens"], step["rank"]) for step in steps} == {("sdk", 512, 0)}
    assert all(step["job"] == job["ref"] for step in steps)
    assert f":{process.pid}:" in steps[0]["source_id"]
    assert (phases[0]["kind"], phases[0]["step"], phases[0]["committed"]) == ("checkpoint", 8, True)
    assert (job["name"], job["mfu_target_ratio"], job["kind"], job["uid"]) == (
        "told",
        0.4,
        "pretrain",
        os.getuid(),
    )
    assert [facts["shape"] for facts in job["run"] if facts["source"] == "sdk"] == [
        {"layers": 4, "hidden": 8}
    ]
    assert "waiting_for" not in job
    assert agent.metrics()["flopwatch_sdk_malformed_messages_total"] == 0.0


FAST = """
import sys, time
from flopwatch import StepReporter
reporter = StepReporter()
for n in range(1, 4001):
    reporter.step_done(n, seconds=0.0005, tokens=10)
    if n % 4 == 0: time.sleep(0.001)
"""


def test_steps_faster_than_an_agent_takes_messages_are_summed_and_none_is_lost(
    new_agent, collector: FakeCollector, processes, tmp_path: Path
) -> None:
    path = tmp_path / "steps.sock"
    agent = new_agent({"LD_LIBRARY_PATH": str(tmp_path)}, collector_url=collector.url, sdk_socket=path)
    eventually(path.exists)

    environment = {**os.environ, "FLOPWATCH_SOCKET": str(path)}
    process = processes(FAST, env=environment, stdout=subprocess.DEVNULL)
    eventually(lambda: any(step["step"] == 4000 for step in collector.steps_of(process.pid)))

    steps = collector.steps_of(process.pid)
    assert sum(step.get("steps_covered", 1) for step in steps) == 4000
    assert sum(step["tokens"] for step in steps) == 40_000
    assert agent.metrics()["flopwatch_sdk_rate_limited_messages_total"] == 0.0


HOSTILE = """
import json, os, socket, time
out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
out.connect(os.environ["FLOPWATCH_SOCKET"])
step = {"event": "step", "step": 1, "end_time_seconds": time.time(), "seconds": 1.0}
out.send(json.dumps({**step, "job_id": "slurm:1", "uid": 0}).encode())
out.send(b"not json")
out.send(b"[" * 10000)
out.send(json.dumps({**step, "step": -1}).encode())
out.send(json.dumps({"event": "evil"}).encode())
out.send(b"{" + b" " * 60000)
for _ in range(3000):
    try: out.send(json.dumps({**step, "step": 2}).encode(), socket.MSG_DONTWAIT)
    except BlockingIOError: time.sleep(0.0005)
time.sleep(600)
"""


def test_claims_are_ignored_and_floods_are_bounded(
    new_agent, collector: FakeCollector, processes, tmp_path: Path
) -> None:
    path = tmp_path / "steps.sock"
    agent = new_agent({"LD_LIBRARY_PATH": str(tmp_path)}, collector_url=collector.url, sdk_socket=path)
    eventually(path.exists)

    environment = {**os.environ, "FLOPWATCH_SOCKET": str(path)}
    process = processes(HOSTILE, env=environment, stdout=subprocess.DEVNULL)
    eventually(lambda: agent.has("flopwatch_sdk_rate_limited_messages_total") and
               agent.metrics()["flopwatch_sdk_rate_limited_messages_total"] > 0)  # fmt: skip
    eventually(lambda: collector.steps_of(process.pid))
    # The page is drawn anew after the steps were sent.
    eventually(lambda: agent.has("flopwatch_sdk_ignored_claims_total", 2.0))
    eventually(lambda: agent.has("flopwatch_sdk_malformed_messages_total", 4.0))
    eventually(lambda: agent.has("flopwatch_sdk_oversized_messages_total", 1.0))
    sent = [step for step in collector.all("steps") if f":{process.pid}:" in step["source_id"]]
    assert {step["job"] for step in sent} == {collector.jobs_of(process.pid)[-1]["ref"]}
    assert len(sent) < 3000
