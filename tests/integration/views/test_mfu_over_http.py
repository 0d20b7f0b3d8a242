"""From a batch that an agent pushes to what the API and the export say of its MFU, worked out by hand."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.collector.serving import Client, serving
from tests.integration.views.site import GPUS_A_NODE, H100, MIDNIGHT, gpu_name, job_ref

from flopwatch.model_names import DESCRIPTIONS
from flopwatch.wire import (
    SENT_AT_HEADER,
    Batch,
    GpuDevice,
    GpuSample,
    JobSighting,
    NodeFacts,
    RunFacts,
    StepRecord,
)
from flopwatch_collector import app
from flopwatch_collector.config import CollectorSettings, CostSettings, PeakOverride, Settings

NOW = MIDNIGHT + 1_200.0
PER_TOKEN = 51_470_401_536.0
"""Llama-3-8B at 8,192: 6 x (32 x (2 x 4096 x 4096 + 2 x 4096 x 1024 + 3 x 4096 x 14336) + 4096 x 128256)
+ 6 x 32 x 4096 x 8192."""
TOKENS = 64 * 8_192
"""A step of 64 sequences takes 6.25 s: 83,886 tokens a second."""
SECONDS = 6.25
OWN_PEAK = 800e12


def samples(ref: str, **values: float) -> tuple[GpuSample, ...]:
    busy = {
        "kernel_active_ratio": 0.99,
        "tensor_active_ratio": 0.5,
        "sm_clock_hertz": 1755e6,
        "process_count": 1,
    }
    return tuple(
        GpuSample(
            time_seconds=MIDNIGHT + 30.0 * number,
            gpu=gpu_name("n1", index),
            interval_seconds=30.0,
            job=ref,
            **{**busy, **values},  # type: ignore[arg-type]
        )
        for number in range(1, 41)
        for index in range(GPUS_A_NODE)
    )


def batch(job: JobSighting, steps: tuple[StepRecord, ...] = (), **values: float) -> Batch:
    return Batch(
        version=1, node="n1", cluster="a", spool="s", sequence=1, boot_id="b", sampled_at_seconds=NOW,
        monotonic_seconds=1_200.0, interval_seconds=30.0, agent_version="0", node_facts=NodeFacts(nvml="ok"),
        gpus=tuple(
            GpuDevice(uuid=gpu_name("n1", index), slot=f"0000:{index:02x}:00.0", name=H100)
            for index in range(GPUS_A_NODE)
        ),
        gpu_samples=samples(job.ref, **values), jobs=(job,), steps=steps,
    )  # fmt: skip


def training(**reported: float) -> Batch:
    """A Llama-3-8B run on eight H100s, whose log says its shape and prints what is given."""
    facts = RunFacts(
        source="log", origin="Megatron argument block", shape=DESCRIPTIONS["llama-3-8b"], sequence_length=8_192,
        global_batch_size=64, dtype="bf16", dtype_basis="log",
    )  # fmt: skip
    steps = tuple(
        StepRecord(
            job="slurm:17", source="log", source_id="log-17", step=number, rank=0, tokens=TOKENS, seconds=SECONDS,
            end_time_seconds=MIDNIGHT + number * SECONDS, **reported,  # type: ignore[arg-type]
        )
        for number in range(1, 193)
    )  # fmt: skip
    return batch(job_ref(run=(facts,)), steps)


@pytest.fixture
def asked(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Client]:
    """The API of a collector that has accounted for the batch it was sent over HTTP."""
    sent, overrides = request.param
    settings = Settings(
        collector=CollectorSettings(data_dir=tmp_path),
        costs=CostSettings(price_per_gpu_hour=2.0),
        peak_overrides=overrides,
    )
    running = app.build(settings, environ={}, clock=lambda: NOW)
    with serving(running.app) as client:
        assert client.push(sent, {SENT_AT_HEADER: repr(NOW)}).status == 200
        running.accounting.tick(NOW)
        yield client


def page(client: Client) -> dict[str, Any]:
    (row,) = client.ask("GET", "/api/v1/query/jobs?seconds=3600").json()["rows"]
    found: dict[str, Any] = client.ask("GET", f"/api/v1/query/jobs/{row['job_id']}?seconds=3600").json()
    return found


RATE = TOKENS / SECONDS
MFU = PER_TOKEN * RATE / (8 * 989.4e12)
SPARSE = training(reported_mfu_ratio=MFU / 2)
SITE = (PeakOverride(name=H100, dense_tflops={"bf16": 800.0}, source="our best matmul"),)


@pytest.mark.parametrize("asked", [(SPARSE, ())], indirect=True)
def test_a_run_s_figure_comes_with_everything_needed_to_check_it(asked: Client) -> None:
    job = page(asked)
    figure, standing = job["row"]["mfu"], job["standing"]

    assert figure["value_ratio"] == pytest.approx(MFU, rel=1e-9)
    assert figure["flops_per_token"] == PER_TOKEN
    assert figure["palm_ratio"] == pytest.approx(figure["palm_flops_per_token"] * RATE / (8 * 989.4e12))
    assert figure["palm_ratio"] / figure["value_ratio"] == pytest.approx(1.186, abs=0.001)
    assert (figure["basis"], figure["convention"], figure["dtype"], figure["dtype_basis"]) == (
        "steps+shape", "causal", "bf16", "log",
    )  # fmt: skip
    assert (figure["peak_flops"], figure["gpus"], figure["tokens"]) == (989.4e12, 8, 50 * TOKENS)
    # 54.5 % of the peak: in the upper half of the 18.1 % to 60.5 % that 42 published runs reached.
    assert (standing["place"], standing["published_rows"], standing["model_class"]) == (
        "upper",
        42,
        "dense_3b_to_20b",
    )
    assert {term["symbol"] for term in job["arithmetic"]} == {"F", "T", "G", "P", "MFU", "F_palm", "MFU_palm"}


@pytest.mark.parametrize("asked", [(SPARSE, ())], indirect=True)
def test_a_trainer_that_divides_by_the_sparse_peak_is_named_beside_the_number(asked: Client) -> None:
    job = page(asked)

    # Tensor cores were active for 50 % of the time at 1755 of 1830 MHz, and the MFU is 54.5 %.
    assert [(found["code"], round(found["values"]["factor"], 3)) for found in job["findings"]] == [
        ("above_tensor_activity", 1.091), ("mfu_differs", 0.5),
    ]  # fmt: skip
    assert job["findings"][1]["values"]["explained_by"][0][0]["code"] == "sparse_peak"
    assert job["row"]["findings"] == 2


@pytest.mark.parametrize("asked", [(SPARSE, SITE)], indirect=True)
def test_a_peak_of_the_site_is_used_and_its_source_stands_in_the_export(asked: Client) -> None:
    text = asked.ask("GET", "/api/v1/export/jobs.csv?seconds=3600").body.decode()
    (row,) = csv.DictReader(io.StringIO(text))

    assert float(row["mfu_ratio"]) == pytest.approx(PER_TOKEN * RATE / (8 * OWN_PEAK))
    assert (float(row["mfu_gpu_peak_flops"]), row["mfu_peak_source"]) == (
        OWN_PEAK,
        "site setting: our best matmul",
    )
    assert (row["mfu_basis"], row["mfu_convention"], row["mfu_dtype"], row["mfu_dtype_basis"]) == (
        "steps+shape", "causal", "bf16", "log",
    )  # fmt: skip
    assert float(row["mfu_tokens_per_second"]) == pytest.approx(RATE)
    assert float(row["mfu_palm_ratio"]) == pytest.approx(float(row["mfu_ratio"]) * 1.186, rel=1e-3)
    assert row["hardware_estimate_ratio"] == ""


@pytest.mark.parametrize("asked", [(batch(job_ref(run=())), ())], indirect=True)
def test_a_job_without_steps_has_an_estimate_that_is_in_no_average(asked: Client) -> None:
    figure = page(asked)["row"]["mfu"]
    fleet = asked.ask("GET", "/api/v1/query/fleet?seconds=3600").json()
    text = asked.ask("GET", "/api/v1/export/jobs.csv?seconds=3600").body.decode()
    (row,) = csv.DictReader(io.StringIO(text))

    # 0.5 x 1755 MHz / 1830 MHz, the clock at which the H100's 989.4 TFLOP/s hold.
    assert figure["value_ratio"] == pytest.approx(0.5 * 1755 / 1830, rel=1e-6)
    assert (figure["basis"], figure["convention"], figure["reason"]) == ("hardware", "hardware", "no_steps")
    assert (fleet["mfu"]["value"], fleet["mfu_by_money_ratio"], fleet["mfu_coverage_ratio"]) == (
        None,
        None,
        0.0,
    )
    assert (row["mfu_ratio"], float(row["hardware_estimate_ratio"])) == ("", pytest.approx(0.4795, abs=1e-4))
    assert json.dumps(figure)
