"""MFU of a job, worked out by hand from shape, batch and step time."""

import numpy as np
import pytest
from tests.unit.collector.compute.ledger_scene import Scene, gpu, job, launch, lease, step_run, steps

from flopwatch.wire import RunFacts
from flopwatch_collector.compute.devices import devices_of
from flopwatch_collector.compute.mfu import arithmetic, basis_of, mfu_series, step_figure
from flopwatch_collector.compute.rollup import fleet_ratio, hourly, job_rollup
from flopwatch_collector.compute.runs import join

H100 = "NVIDIA H100 80GB HBM3"
PEAK = 989.4e12
SHAPE = {
    "n_layers": 2, "hidden": 64, "ffn_hidden": 256, "n_heads": 4, "head_dim": 16, "vocab": 1000, "gated_mlp": False,
}  # fmt: skip
PER_TOKEN = 6 * (2 * (4 * 64 * 64 + 2 * 64 * 256) + 64 * 1000) + 6 * 2 * 4 * 16 * 128


def facts(**more):
    return RunFacts(**{"source": "log", "origin": "header", "shape": SHAPE, **more})


def scene(runs, *, names=(H100,) * 8, **more):
    numbers = tuple(range(1, len(names) + 1))
    return Scene(
        now=600.0,
        gpus=tuple(gpu(n, name=name) for n, name in zip(numbers, names, strict=True)),
        jobs=(job(1, runs=tuple(runs), **more),),
        launches=(launch(1, begin_seconds=0.0),),
        leases=(lease(1, numbers, 0.0, None),),
        steps=steps(step_run(1, 50, 100.0)),
    )


def figure_of(given, basis=None):
    inputs = given.inputs()
    record = inputs.jobs[1]
    run = join(record.runs)
    found = basis or basis_of(run, devices_of(record, run, inputs.leases, inputs.gpus))
    return step_figure(given.timeline(), found), found


def test_the_figure_is_flops_times_tokens_over_gpus_times_peak():
    figure, _ = figure_of(
        scene([facts(global_batch_size=512, sequence_length=128, dtype="bf16", world_size=8)])
    )
    tokens_per_second = 512 * 128 / 10.0

    assert figure.value_ratio == pytest.approx(PER_TOKEN * tokens_per_second / (8 * PEAK))
    assert figure.flops_per_token == PER_TOKEN
    assert figure.tokens_per_second == tokens_per_second
    assert (figure.gpus, figure.gpus_basis, figure.basis) == (8, "world_size", "steps+shape")
    assert (figure.dtype, figure.dtype_basis, figure.steps) == ("bf16", "log", 50)


def test_the_arithmetic_has_the_numbers_of_the_figure():
    figure, _ = figure_of(scene([facts(global_batch_size=512, sequence_length=128)]))

    values = {term.symbol: term.value for term in arithmetic(figure)}

    assert values["MFU"] == values["F"] * values["T"] / (values["G"] * values["P"])


def test_a_header_on_one_node_and_steps_of_another_make_one_figure():
    header = facts(global_batch_size=512, sequence_length=128)
    config = RunFacts(source="file", origin="config.json", shape={**SHAPE, "hidden": 32}, world_size=1024)

    figure, _ = figure_of(scene([config, header]))

    assert figure.flops_per_token == PER_TOKEN
    assert (figure.gpus, figure.gpus_observed) == (1024, 8)


def test_a_parameter_count_gives_six_flops_a_parameter():
    figure, _ = figure_of(scene([facts(shape=None, parameter_count=1_000_000, tokens_per_step=65_536)]))

    assert (figure.flops_per_token, figure.basis, figure.convention) == (6e6, "steps+params", "6N")
    assert figure.value_ratio == pytest.approx(6e6 * 6553.6 / (8 * PEAK))


def test_an_fp8_run_is_held_against_the_bf16_peak():
    figure, _ = figure_of(scene([facts(dtype="fp8", global_batch_size=8, sequence_length=128)]))

    assert (figure.peak_flops, figure.dtype) == (PEAK, "bf16")


def test_a_run_without_a_number_format_is_assumed_to_be_bf16():
    figure, _ = figure_of(scene([facts(global_batch_size=8, sequence_length=128)]))

    assert (figure.dtype, figure.dtype_basis) == ("bf16", "assumed")


def test_two_models_of_gpu_have_the_mean_peak():
    names = (H100,) * 6 + ("NVIDIA A100-SXM4-80GB",) * 2

    figure, _ = figure_of(scene([facts(global_batch_size=8, sequence_length=128)], names=names))

    assert figure.peak_flops == pytest.approx((6 * 989.4e12 + 2 * 312e12) / 8, rel=1e-3)


@pytest.mark.parametrize(
    ("told", "names", "reason"),
    [
        pytest.param({"sequence_length": 128}, ("NVIDIA H1000",), "unknown_gpu", id="gpu-name-in-no-table"),
        pytest.param({"shape": None}, (H100,), "no_shape", id="nothing-of-the-model"),
        pytest.param({"sequence_length": 128, "tokens_per_step": None}, (H100,), "no_tokens", id="no-batch"),
        pytest.param({"sequence_length": 128, "dtype": "int3"}, (H100,), "no_peak_for_dtype", id="dtype"),
    ],
)
def test_what_is_missing_is_named_and_no_figure_given(told, names, reason):
    figure, _ = figure_of(scene([facts(**{"tokens_per_step": 1, **told})], names=names))

    assert (figure.value_ratio, figure.basis, figure.reason) == (None, None, reason)


def test_packed_documents_shorten_the_attention():
    given = scene([facts(sequence_length=128)])
    rows = step_run(1, 50, 100.0, tokens=65_536, sum_squared_document_tokens=65_536 * 64)
    figure, _ = figure_of(given.without(steps=steps(rows)))
    shorter = PER_TOKEN - 6 * 2 * 4 * 16 * 64

    assert figure.flops_per_token == pytest.approx(shorter)


def test_the_series_weighs_steps_by_the_time_they_overlap():
    given = scene([facts(tokens_per_step=65_536, sequence_length=128)])
    figure, basis = figure_of(given)

    series = mfu_series(given.timeline(), basis, np.array([0.0, 90.0, 105.0, 355.0, 700.0]))

    assert np.isnan(series[0])
    assert series[1:] == pytest.approx([figure.value_ratio] * 3)


def test_wall_mfu_spreads_the_kept_work_over_the_whole_lease():
    given = scene([facts(tokens_per_step=65_536, sequence_length=128, world_size=8)])
    figure, basis = figure_of(given)
    inputs = given.inputs()
    samples = {**inputs.samples, **{f"{n}_active_ratio": np.empty(0) for n in ("kernel", "sm", "tensor")}}

    rows = job_rollup(given.rows(), samples, inputs.timelines, {1: basis}, given.now)

    assert fleet_ratio(rows) == pytest.approx(figure.value_ratio * 500 / 600)
    assert fleet_ratio(hourly(rows)) == pytest.approx(figure.value_ratio * 500 / 600)
    assert rows["steps"].sum() == pytest.approx(50)
    assert rows["gpu_seconds"].sum() == pytest.approx(8 * 600)
