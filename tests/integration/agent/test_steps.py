"""Real processes that write real-format logs, a real agent, batches at a real endpoint."""

import os
import time
from pathlib import Path

from tests.fixtures_nvml import FakeNvml
from tests.integration.agent.agent_process import FakeCollector, eventually

UUID = "GPU-fa4e0000-0000-4000-8000-{:012x}"

TRAIN = """
import sys, time
print("tokens per iteration will be: 491,520")
print("number of parameters: 123.59M", flush=True)
first, last, pause = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
for step in range(first, last):
    print(f"iter {step}: loss 3.1234, time 250.00ms, mfu 40.00%", flush=True)
    time.sleep(pause)
time.sleep(600)
"""


WAITING = """
import os, sys, time
while not os.path.exists(sys.argv[4]): time.sleep(0.05)
"""
"""A trainer that begins once a file is there, so that the agent may be at work before it."""


def on_gpu(fake_nvml: FakeNvml, *pids: int) -> None:
    fake_nvml.write("gpus 2", *(f"proc {index % 2} {pid} 50000" for index, pid in enumerate(pids)))


def numbers(collector: FakeCollector) -> list[int]:
    return [step["step"] for step in collector.all("steps")]


def test_a_log_is_found_followed_and_sent_without_any_configuration(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, processes, tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    with log.open("wb") as sink:
        process = processes(TRAIN, "0", "12", "0.25", stdout=sink)
    on_gpu(fake_nvml, process.pid)

    new_agent(collector_url=collector.url)
    job = eventually(lambda: collector.jobs_of(process.pid))[0]
    steps = eventually(lambda: found if len(found := collector.all("steps")) == 12 else None)

    assert job["uid"] == os.getuid()
    assert job["gpus"] == [UUID.format(0)]
    assert job["log_path"] == str(log)
    assert [step["step"] for step in steps] == list(range(12))
    assert {step["seconds"] for step in steps} == {0.25}
    assert {step["tokens"] for step in steps} == {491_520}
    assert len({step["source_id"] for step in steps}) == 1
    ends = [step["end_time_seconds"] for step in steps]
    assert ends == sorted(ends)
    assert abs(ends[-1] - ends[-5] - 1.0) < 0.75
    last = collector.jobs_of(process.pid)[-1]
    assert "waiting_for" not in last
    assert any(facts.get("parameter_count") == 123_590_000 for facts in last["run"])
    held = {sample.get("job") for sample in collector.all("gpu_samples") if sample["gpu"] == UUID.format(0)}
    assert job["ref"] in held


def test_a_job_whose_log_has_no_row_yet_is_waiting_for_steps(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, processes, tmp_path: Path
) -> None:
    with (tmp_path / "train.log").open("wb") as sink:
        process = processes("print('compiling', flush=True); import time; time.sleep(600)", stdout=sink)
    on_gpu(fake_nvml, process.pid)

    new_agent(collector_url=collector.url)

    assert eventually(lambda: collector.jobs_of(process.pid))[-1]["waiting_for"] == "steps"


def test_rows_of_an_earlier_run_in_an_appended_file_are_history(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, processes, tmp_path: Path
) -> None:
    log, go = tmp_path / "train.log", tmp_path / "go"
    log.write_text("".join(f"iter {n}: loss 9.9999, time 100.00ms, mfu 10.00%\n" for n in range(50)))
    time.sleep(1.2)  # a file that is younger than its job, to a second, is the job's own
    with log.open("ab") as sink:
        process = processes(WAITING + TRAIN, "100", "106", "0.2", str(go), stdout=sink)
    on_gpu(fake_nvml, process.pid)

    new_agent(collector_url=collector.url)
    eventually(lambda: any(job.get("log_path") == str(log) for job in collector.jobs_of(process.pid)))
    go.touch()
    eventually(lambda: len(numbers(collector)) >= 6)
    seen = len(collector.batches)
    eventually(lambda: len(collector.batches) > seen + 3)

    assert numbers(collector) == [100, 101, 102, 103, 104, 105]


def test_rows_written_before_the_agent_started_are_sent_and_dated_backwards(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, processes, tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    with log.open("wb") as sink:
        process = processes(TRAIN, "0", "9", "0.25", stdout=sink)
    on_gpu(fake_nvml, process.pid)
    eventually(lambda: log.read_text().count("iter ") == 9)

    new_agent(collector_url=collector.url)
    steps = eventually(lambda: found if len(found := collector.all("steps")) == 9 else None)

    ends = [step["end_time_seconds"] for step in steps]
    assert abs(ends[-1] - log.stat().st_mtime) < 0.5
    assert all(abs(b - a - 0.25) < 0.01 for a, b in zip(ends[-5:], ends[-4:], strict=False))


def test_a_restarted_agent_neither_loses_nor_repeats_a_row(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, processes, tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    with log.open("wb") as sink:
        process = processes(TRAIN, "0", "40", "0.1", stdout=sink)
    on_gpu(fake_nvml, process.pid)

    agent = new_agent(collector_url=collector.url)
    eventually(lambda: len(numbers(collector)) >= 8)
    agent.kill()
    eventually(lambda: log.read_text().count("iter ") >= 20)
    agent.start()
    eventually(lambda: numbers(collector)[-1:] == [39], 30)

    assert numbers(collector) == list(range(40))
    assert len({step["source_id"] for step in collector.all("steps")}) == 1


def test_a_truncated_file_is_read_again_from_its_beginning(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, processes, tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    code = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.dup2(fd, 1)
row = b"iter %d: loss 3.1, time 250.00ms, mfu 40.00%%\\n"
for n in range(5): os.write(1, row % n); time.sleep(.1)
while not os.path.exists(sys.argv[2]): time.sleep(.05)
os.truncate(sys.argv[1], 0)
for n in range(5, 8): os.write(1, row % n); time.sleep(.2)
time.sleep(600)
"""
    process = processes(code, str(log), str(tmp_path / "read"))
    on_gpu(fake_nvml, process.pid)

    new_agent(collector_url=collector.url)
    eventually(lambda: numbers(collector) == list(range(5)))
    (tmp_path / "read").touch()
    eventually(lambda: numbers(collector)[-1:] == [7])

    assert numbers(collector) == list(range(8))


def test_a_rotated_file_is_followed_into_the_new_one(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, processes, tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    code = """
import os, sys, time
row = b"iter %d: loss 3.1, time 250.00ms, mfu 40.00%%\\n"
def reopen():
    fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(fd, 1)
    os.close(fd)
def read(mark):
    while not os.path.exists(sys.argv[2] + mark): time.sleep(.05)
reopen()
for n in range(2): os.write(1, row % n)
read("first")
for n in range(2, 6): os.write(1, row % n); time.sleep(.1)
os.rename(sys.argv[1], sys.argv[1] + ".1")
for n in range(6, 8): os.write(1, row % n)
reopen()
read("second")
for n in range(8, 14): os.write(1, row % n); time.sleep(.1)
time.sleep(600)
"""
    process = processes(code, str(log), str(tmp_path / "read-"))
    on_gpu(fake_nvml, process.pid)

    new_agent(collector_url=collector.url)
    eventually(lambda: 1 in numbers(collector))
    (tmp_path / "read-first").touch()
    eventually(lambda: 7 in numbers(collector))
    (tmp_path / "read-second").touch()
    eventually(lambda: 13 in numbers(collector))

    assert sorted(numbers(collector)) == list(range(14))


def test_two_live_jobs_on_one_file_get_no_steps_and_a_finding(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, processes, tmp_path: Path
) -> None:
    with (tmp_path / "both.log").open("ab") as sink:
        pids = [processes(TRAIN, "0", "8", "0.2", stdout=sink).pid for _ in range(2)]
    on_gpu(fake_nvml, *pids)

    new_agent(collector_url=collector.url)
    findings = eventually(lambda: found if len(found := collector.all("findings")) >= 2 else None)
    seen = len(collector.batches)
    eventually(lambda: len(collector.batches) > seen + 3)

    assert {finding["code"] for finding in findings} == {"shared_log"}
    assert {finding["job"] for finding in findings} == {job["ref"] for job in collector.all("jobs")}
    assert numbers(collector) == []


def test_agents_that_follow_one_file_give_its_rows_one_source_id(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, processes, tmp_path: Path
) -> None:
    with (tmp_path / "train.log").open("wb") as sink:
        process = processes(TRAIN, "0", "8", "0.2", stdout=sink)
    on_gpu(fake_nvml, process.pid)

    for index in range(3):
        new_agent(collector_url=collector.url, node=f"node-{index}")
    eventually(lambda: len(numbers(collector)) >= 24)

    rows = {(step["source_id"], step["session"], step["step"]) for step in collector.all("steps")}
    assert len(rows) == 8


def test_workers_of_one_torchrun_are_one_job(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, processes, tmp_path: Path
) -> None:
    environment = {"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500", "WORLD_SIZE": "16"}
    pids = []
    for rank in (8, 9):
        with (tmp_path / "train.log").open("ab") as sink:
            variables = {**os.environ, **environment, "RANK": str(rank), "LOCAL_RANK": str(rank - 8)}
            code = TRAIN if rank == 8 else "import time; time.sleep(600)"
            pids.append(processes(code, "0", "5", "0.2", stdout=sink, env=variables).pid)
    on_gpu(fake_nvml, *pids)

    new_agent(collector_url=collector.url)
    job = eventually(lambda: [j for j in collector.all("jobs") if len(j.get("ranks", ())) == 2])[-1]

    assert {item["ref"] for item in collector.all("jobs")} == {job["ref"]}
    assert job["master"] == "10.0.0.1:29500"
    assert job["world_size"] == 16
    assert job["ranks"] == [8, 9]
    assert job["gpus"] == [UUID.format(0), UUID.format(1)]


def test_the_end_of_a_job_is_told_with_its_last_rows(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, processes, tmp_path: Path
) -> None:
    code = TRAIN.replace(
        "time.sleep(600)", "sys.stdout.write('iter 20: loss 3.1234, time 250.00ms, mfu 40.00%\\n')"
    )
    go = tmp_path / "go"
    with (tmp_path / "train.log").open("wb") as sink:
        process = processes(WAITING + code, "0", "20", "0.1", str(go), stdout=sink)
    on_gpu(fake_nvml, process.pid)

    new_agent(collector_url=collector.url)
    eventually(lambda: collector.jobs_of(process.pid))
    go.touch()
    process.wait(60)
    over = time.time()
    ended = eventually(lambda: [j for j in collector.jobs_of(process.pid) if "end_time_seconds" in j])[0]

    assert over - 1.0 <= ended["end_time_seconds"] <= time.time()
    eventually(lambda: 20 in numbers(collector))
    assert numbers(collector) == list(range(21))


def test_what_the_owner_declares_is_honoured_and_nothing_else_leaves_the_node(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, processes, tmp_path: Path
) -> None:
    secret = "hf_SECRETSECRETSECRETSECRET"
    variables = {
        **os.environ, "FLOPWATCH_JOB_NAME": "llama-trial", "FLOPWATCH_MFU_TARGET": "45%",
        "WANDB_API_KEY": secret, "HF_TOKEN": secret, "FLOPWATCH_PARAMETERS": "7000000000",
    }  # fmt: skip
    with (tmp_path / "train.log").open("wb") as sink:
        sink.write(f"token={secret}\n".encode())
        process = processes(TRAIN, "0", "6", "0.2", f"--hub-token={secret}", stdout=sink, env=variables)
    on_gpu(fake_nvml, process.pid)

    agent = new_agent(collector_url=collector.url)
    eventually(lambda: len(numbers(collector)) >= 6)
    job = collector.jobs_of(process.pid)[-1]

    assert job["name"] == "llama-trial"
    assert job["mfu_target_ratio"] == 0.45
    assert any(facts.get("parameter_count") == 7_000_000_000 for facts in job["run"])
    assert secret not in str(collector.batches)
    assert secret not in agent.output()
    assert secret not in str(agent.metrics())
    assert all(secret.encode() not in path.read_bytes() for path in agent.folder.rglob("*") if path.is_file())


def test_a_model_configuration_on_the_command_line_gives_the_shape(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, processes, tmp_path: Path
) -> None:
    model = tmp_path / "llama"
    model.mkdir()
    (model / "config.json").write_text(
        '{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, '
        '"num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": false}'
    )
    with (tmp_path / "train.log").open("wb") as sink:
        process = processes(TRAIN, "0", "5", "0.2", "--model_name_or_path", str(model), stdout=sink)
    on_gpu(fake_nvml, process.pid)

    new_agent(collector_url=collector.url)
    facts = eventually(
        lambda: [f for j in collector.all("jobs") for f in j.get("run", ()) if f["origin"] == "config.json"]
    )[0]

    assert facts["shape"]
    from flopwatch.flops import ModelShape

    assert ModelShape.from_dict(facts["shape"]).layers == 32


def test_without_nvml_a_distributed_worker_is_found_by_its_environment(
    new_agent, collector: FakeCollector, processes, tmp_path: Path
) -> None:
    variables = {
        **os.environ,
        "WORLD_SIZE": "1",
        "RANK": "0",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29400",
    }
    with (tmp_path / "train.log").open("wb") as sink:
        process = processes(TRAIN, "0", "8", "0.2", stdout=sink, env=variables)

    new_agent({"LD_LIBRARY_PATH": str(tmp_path)}, collector_url=collector.url)
    eventually(lambda: len(collector.steps_of(process.pid)) >= 8)

    assert {job.get("master") for job in collector.jobs_of(process.pid)} == {"127.0.0.1:29400"}


def write_steps(log: Path, steps: range) -> None:
    with log.open("a") as sink:
        for step in steps:
            sink.write(f"iter {step}: loss 3.1234, time 250.00ms, mfu 40.00%\n")
            sink.flush()
            time.sleep(0.25)


WORKER = {"WORLD_SIZE": "1", "RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29400"}


def test_a_configured_log_that_no_process_here_writes_is_a_job_of_its_own(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, processes, tmp_path: Path
) -> None:
    log = tmp_path / "remote-run.log"
    log.write_text("number of parameters: 123.59M\n")

    new_agent(collector_url=collector.url, log_globs=f"{tmp_path}/*.log,/none/*.log")
    eventually(lambda: collector.all("jobs"))
    write_steps(log, range(5))
    eventually(lambda: sorted(numbers(collector)) == [0, 1, 2, 3, 4])
    ref = collector.all("steps")[-1]["job"]
    # What else its owner starts is no reason to give the log away.
    process = processes("import time; time.sleep(600)", env={**os.environ, **WORKER})
    on_gpu(fake_nvml, process.pid)
    eventually(lambda: collector.jobs_of(process.pid))
    write_steps(log, range(5, 9))
    eventually(lambda: sorted(numbers(collector)) == list(range(9)))

    job = next(job for job in collector.all("jobs") if job["ref"] == ref)
    assert (job["name"], job["uid"], job["log_path"]) == ("remote-run", os.getuid(), str(log))
    assert {step["job"] for step in collector.all("steps") if step["step"] >= 5} == {ref}


def test_a_configured_log_without_steps_goes_over_to_its_owners_only_job_whole(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, processes, tmp_path: Path
) -> None:
    log = tmp_path / "run.log"
    log.write_text("number of parameters: 123.59M\n")
    new_agent(collector_url=collector.url, log_globs=f"{tmp_path}/*.log")
    eventually(lambda: collector.all("jobs"))
    process = processes("import time; time.sleep(600)", env={**os.environ, **WORKER})
    on_gpu(fake_nvml, process.pid)
    job = eventually(lambda: collector.jobs_of(process.pid))[0]
    write_steps(log, range(6))

    eventually(lambda: sorted(numbers(collector)) == list(range(6)))
    assert {step["job"] for step in collector.all("steps")} == {job["ref"]}


def test_steps_of_an_in_house_trainer_are_read_by_the_format_that_the_settings_name(
    new_agent, collector: FakeCollector, tmp_path: Path
) -> None:
    log = tmp_path / "in-house.log"
    log.write_text(
        "number of parameters: 1.5B\n" + "".join(f"@@ it={step} dt=250.0 tok=4096\n" for step in range(1, 6))
    )
    settings = tmp_path / "flopwatch.toml"
    settings.write_text(
        "[[agent.log_format]]\nname = 'in-house'\nliteral = '@@ it='\nunits = { seconds = 'ms' }\n"
        "expression = '@@ it=(?P<step>\\d+) dt=(?P<seconds>[\\d.]+) tok=(?P<tokens>\\d+)'\n"
    )

    new_agent(collector_url=collector.url, log_globs=log, config=settings)
    eventually(lambda: len(numbers(collector)) == 5)

    assert {(step["seconds"], step["tokens"]) for step in collector.all("steps")} == {(0.25, 4096)}
    told = [job for job in collector.all("jobs") if job.get("log_path") == str(log)]
    assert told[-1]["run"][-1]["trainer"] == "in-house"
