"""What operators declare of a job: over HTTP, durable, joined into the run that its MFU is made from."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.collector.batches import batch, slurm
from tests.integration.collector.serving import Answer, Client, Front, front, serving

from flopwatch.wire import RunFacts
from flopwatch_collector.compute.runs import join, work_of

LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": False,
}  # fmt: skip
LOGGED = RunFacts(
    source="log", origin="Megatron argument block", world_size=8, global_batch_size=64, sequence_length=2048,
    tokens_per_step=131_072, dtype="bf16", dtype_basis="log",
)  # fmt: skip


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Front]:
    with front(tmp_path) as made:
        yield made


@pytest.fixture
def client(collector: Front) -> Iterator[Client]:
    with serving(collector.app) as asked:
        yield asked


@pytest.fixture
def job_id(client: Client) -> str:
    client.push(batch("n1", time.time(), jobs=(slurm("77", "a", run=(LOGGED,)),)))
    return str(client.get("/api/v1/jobs").json()["jobs"][0]["job_id"])


def put(client: Client, job_id: str, **facts: Any) -> Answer:
    return client.ask(
        "PUT", f"/api/v1/jobs/{job_id}/facts", json.dumps(facts), {"Content-Type": "application/json"}
    )


def entry(answer: Answer, name: str) -> dict[str, Any]:
    return next(fact for fact in answer.json()["facts"] if fact["fact"] == name)


def test_a_fact_says_who_found_it_and_where(client: Client, job_id: str) -> None:
    answer = client.get(f"/api/v1/jobs/{job_id}/facts")

    assert entry(answer, "global_batch_size") == {
        "fact": "global_batch_size",
        "used": "log",
        "declared": None,
        "found": [{"value": 64, "source": "log", "origin": "Megatron argument block"}],
    }
    assert entry(answer, "model") == {"fact": "model", "used": None, "declared": None, "found": []}


def test_what_is_declared_beats_what_was_found_and_keeps_it_visible(
    collector: Front, client: Client, job_id: str
) -> None:
    before = time.time()
    answer = put(
        client, job_id, global_batch_size=128, name="big run", kind="pretrain", mfu_target_ratio=0.45,
        tracker_url="https://wandb.example.com/team/run-7?nw=1",
    )  # fmt: skip

    assert answer.status == 200
    batch_size = entry(answer, "global_batch_size")
    assert (batch_size["used"], batch_size["found"][0]["value"]) == ("declared", 64)
    assert batch_size["declared"]["value"] == 128
    assert before <= batch_size["declared"]["declared_seconds"] <= time.time()
    (job,) = collector.directory.state().jobs.values()
    assert (job.name, job.kind, job.target_ratio) == ("big run", "pretrain", 0.45)
    assert job.tracker_url == "https://wandb.example.com/team/run-7?nw=1"
    run = join(job.runs)
    assert (run.global_batch_size, run.step_tokens) == (128, 128 * 2048)
    assert (run.world_size, run.dtype, run.dtype_basis) == (8, "bf16", "log")


@pytest.mark.parametrize(
    ("model", "origin"),
    [
        pytest.param("llama-3-8b", "declared (llama-3-8b)", id="name"),
        pytest.param(LLAMA, "declared (config.json)", id="config"),
    ],
)
def test_a_declared_model_is_what_the_mfu_is_made_from(
    collector: Front, client: Client, job_id: str, model: Any, origin: str
) -> None:
    assert put(client, job_id, model=model).status == 200
    (job,) = collector.directory.state().jobs.values()
    run = join(job.runs)
    work = work_of(run)

    assert run.shape_origin == origin
    assert work.basis == "steps+shape"
    # 6 x (matrices + vocabulary) + 6 x layers x hidden x length: causal attention counts half of 12
    matrices = 32 * (4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 14336) + 4096 * 128256
    assert work.causal == pytest.approx(6 * matrices + 6 * 32 * 4096 * 2048, rel=1e-3)


def test_a_sighting_after_the_declaration_changes_nothing_of_it(
    collector: Front, client: Client, job_id: str
) -> None:
    put(client, job_id, name="mine", world_size=16)
    client.push(batch("n1", time.time() + 1, jobs=(slurm("77", "a", name="theirs", run=(LOGGED,)),)))

    (job,) = collector.directory.state().jobs.values()

    assert job.name == "mine"
    assert (join(job.runs).world_size, dict(join(job.runs).worlds)) == (16, {})


def test_a_withdrawn_fact_is_as_found_again(collector: Front, client: Client, job_id: str) -> None:
    put(client, job_id, dtype="float8", sequence_length=4096)
    declared = next(iter(collector.directory.state().jobs.values()))
    answer = client.ask("DELETE", f"/api/v1/jobs/{job_id}/facts/dtype")
    again = client.ask("DELETE", f"/api/v1/jobs/{job_id}/facts/dtype")

    assert (join(declared.runs).dtype, join(declared.runs).dtype_basis) == ("fp8", "declared")
    assert (answer.status, entry(answer, "dtype")["used"]) == (200, "log")
    assert entry(answer, "sequence_length")["used"] == "declared"
    assert again.status == 404


def test_declarations_outlive_the_collector(tmp_path: Path) -> None:
    with front(tmp_path) as made, serving(made.app) as client:
        client.push(batch("n1", time.time(), jobs=(slurm("77", "a"),)))
        name = client.get("/api/v1/jobs").json()["jobs"][0]["job_id"]
        put(client, name, model="gpt-2-124m", world_size=4)
    with front(tmp_path) as made:
        (job,) = made.directory.state().jobs.values()

        assert join(job.runs).shape_origin == "declared (gpt-2-124m)"
        assert join(job.runs).world_size == 4


@pytest.mark.parametrize(
    ("facts", "field", "allowed"),
    [
        ({}, "body", "one or more of"),
        ({"gpus": 8}, "gpus", "Extra"),
        ({"world_size": 0}, "world_size", "greater than or equal to 1"),
        ({"world_size": "8"}, "world_size", "valid integer"),
        ({"mfu_target_ratio": 45}, "mfu_target_ratio", "less than or equal to 1"),
        ({"kind": "training"}, "kind", "'pretrain'"),
        ({"name": "a\nb"}, "name", "match pattern"),
        ({"dtype": "int3"}, "dtype", "bf16"),
        ({"tracker_url": "javascript:alert(1)"}, "tracker_url", "match pattern"),
        ({"tracker_url": "https://a b"}, "tracker_url", "match pattern"),
        ({"model": "llama-9"}, "model", "llama-3-8b"),
        ({"model": {"hidden": 0}}, "model.hidden", "at least 1"),
        ({"model": {"hiden": 8}}, "model.hiden", "hidden"),
        ({"model": {**LLAMA, "num_attention_heads": -1}}, "model.num_attention_heads", "at least 1"),
    ],
)
def test_a_wrong_fact_is_named_with_what_is_allowed(
    client: Client, job_id: str, facts: dict[str, Any], field: str, allowed: str
) -> None:
    answer = put(client, job_id, **facts)

    assert answer.status == 422
    assert answer.json()["fields"][0]["field"] == field
    assert allowed in answer.json()["fields"][0]["allowed"]


def test_a_body_that_is_too_large_or_no_json_is_refused(client: Client, job_id: str) -> None:
    assert put(client, job_id, model={"name": "x" * (1 << 20)}).status == 413
    path = f"/api/v1/jobs/{job_id}/facts"
    assert client.ask("PUT", path, "model=1", {"Content-Type": "text/plain"}).status == 415
    assert client.ask("PUT", path, "{", {"Content-Type": "application/json"}).status == 422


def test_an_unknown_job_is_404(client: Client) -> None:
    assert client.get("/api/v1/jobs/none/facts").status == 404
    assert put(client, "none", name="x").status == 404
    assert client.ask("DELETE", "/api/v1/jobs/none/facts/name").status == 404


def test_only_who_may_operate_declares_and_the_token_s_name_is_kept(
    collector: Front, client: Client, job_id: str
) -> None:
    secrets = {
        role: collector.tokens.create(role, f"{role}'s")[1] for role in ("viewer", "operator", "agent")
    }
    answers = {}
    for role, secret in secrets.items():
        client.token = secret
        answers[role] = put(client, job_id, world_size=8)
    client.token = secrets["viewer"]

    assert {role: answer.status for role, answer in answers.items()} == {
        "viewer": 403,
        "operator": 200,
        "agent": 403,
    }
    shown = client.get(f"/api/v1/jobs/{job_id}/facts")
    assert entry(shown, "world_size")["declared"]["declared_by"] == "operator's"
