"""MFU of a job, worked out by hand from shape, batch and step time."""

import numpy as np
import pytest
from tests.unit.collector.compute.ledger_scene import launch, lease, step_run, steps
from tests.unit.collector.compute.mfu_scene import (
    H100,
    PEAK,
    PER_TOKEN,
    SHAPE,
    facts,
    figure_of,
    general,
    scene,
)

from flopwatch.accelerators import overridden
from flopwatch.wire import RunFacts
from flopwatch_collector.compute.devices import devices_of
from flopwatch_collector.compute.figure import arithmetic, step_figure
from flopwatch_collector.compute.mfu import basis_of, mfu_series
from flopwatch_collector.compute.rollup import (
    ROLLUP_COLUMNS,
    TENSOR_CLOCK,
    completed,
    fleet_ratio,
    hourly,
    job_rollup,
    money_ratio,
)
from flopwatch_collector.compute.runs import join


def test_the_figure_is_flops_times_tokens_over_gpus_times_peak():
    figure, _ = figure_of(
        scene([facts(global_batch_size=512, sequence_length=128, dtype="bf16", world_size=8)])
    )
    tokens_per_second = 512 * 128 / 10.0

    assert figure.value_ratio == pytest.approx(PER_TOKEN * tokens_per_second / (8 * PEAK))
    assert figure.flops_per_token == PER_TOKEN
    assert figure.peak_flops == PEAK
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


A100 = "NVIDIA A100-SXM4-80GB"
A100_PEAK = 312e12


def elastic(runs, leases, rows, names=(H100,) * 16):
    given = scene(runs, names=names)
    return given.without(leases=tuple(leases), steps=steps(rows))


def test_a_job_that_shrinks_is_held_against_the_gpus_it_held_at_each_step():
    # 16 GPUs until 300 s, then 8 of them; ten steps of 10 s before, ten after, the same tokens a step.
    leases = [lease(1, tuple(range(1, 9)), 0.0, None), lease(1, tuple(range(9, 17)), 0.0, 300.0)]
    rows = [*step_run(1, 10, 200.0), *step_run(11, 20, 300.0)]
    figure, basis = figure_of(elastic([facts(tokens_per_step=65_536, sequence_length=128)], leases, rows))

    possible = 100.0 * 16 * PEAK + 100.0 * 8 * PEAK
    assert figure.value_ratio == pytest.approx(20 * 65_536 * PER_TOKEN / possible)
    assert (figure.gpus, figure.gpus_mean, figure.gpus_basis) == (8, pytest.approx(12.0), "lease")
    series = mfu_series(elastic([facts()], leases, rows).timeline(), basis, np.array([200.0, 300.0, 400.0]))
    assert series[1] == pytest.approx(2 * series[0])


def test_a_job_that_changes_its_gpu_model_is_weighted_by_the_peak_of_each_gpu_second():
    leases = [lease(1, tuple(range(1, 9)), 0.0, 300.0), lease(1, tuple(range(9, 17)), 300.0, None)]
    rows = [*step_run(1, 10, 200.0), *step_run(11, 20, 300.0)]
    told = [facts(tokens_per_step=65_536, sequence_length=128, world_size=8)]
    figure, _ = figure_of(elastic(told, leases, rows, names=(A100,) * 8 + (H100,) * 8))

    possible = 100.0 * 8 * A100_PEAK + 100.0 * 8 * PEAK
    assert figure.value_ratio == pytest.approx(20 * 65_536 * PER_TOKEN / possible)
    assert figure.peak_flops == pytest.approx((A100_PEAK + PEAK) / 2)
    values = {term.symbol: term.value for term in arithmetic(figure)}
    assert values["MFU"] == pytest.approx(values["F"] * values["T"] / (values["G"] * values["P"]))


def test_a_launch_with_another_world_size_is_held_against_its_own():
    told = [
        facts(tokens_per_step=65_536, sequence_length=128, world_size=1024),
        facts(world_size=512, session=1, tokens_per_step=65_536, sequence_length=128),
    ]
    given = scene(told).without(
        launches=(launch(1, begin_seconds=0.0, session=0), launch(2, begin_seconds=300.0, session=1)),
        steps=steps([*step_run(1, 10, 100.0), *step_run(11, 20, 300.0, launch=2)]),
    )
    figure, basis = figure_of(given)
    series = mfu_series(given.timeline(), basis, np.array([100.0, 200.0, 300.0, 400.0]))

    rate = 65_536 * PER_TOKEN / 10.0
    assert series[0] == pytest.approx(rate / (1024 * PEAK))
    assert series[2] == pytest.approx(rate / (512 * PEAK))
    assert figure.value_ratio == pytest.approx(series[2])


def test_wall_mfu_of_a_fleet_weighs_every_gpu_second_by_its_peak():
    leases = [lease(1, tuple(range(1, 9)), 0.0, 300.0), lease(1, tuple(range(9, 17)), 300.0, None)]
    rows = [*step_run(1, 10, 200.0), *step_run(11, 20, 300.0)]
    given = elastic(
        [facts(tokens_per_step=65_536, sequence_length=128)], leases, rows, names=(A100,) * 8 + (H100,) * 8
    )
    _, basis = figure_of(given)
    inputs = given.inputs()
    samples = {**inputs.samples, **{f"{n}_active_ratio": np.empty(0) for n in ("kernel", "sm", "tensor")}}

    made = job_rollup(given.rows(), samples, inputs.timelines, {1: basis}, given.now)

    could = 300.0 * 8 * A100_PEAK + 300.0 * 8 * PEAK
    assert np.nansum(made["leased_peak_flop_seconds"]) == pytest.approx(could)
    assert fleet_ratio(made) == pytest.approx(20 * 65_536 * PER_TOKEN / could)
    assert np.nansum(made["kept_palm_flops"]) == pytest.approx(20 * 65_536 * basis.work.palm)


def test_an_fp8_run_also_has_its_figure_against_the_fp8_peak():
    figure, _ = figure_of(scene([facts(dtype="fp8", global_batch_size=512, sequence_length=128)]))

    assert (figure.run_dtype, figure.run_dtype_peak_flops) == ("fp8", 1978.9e12)
    assert figure.run_dtype_ratio == pytest.approx(PER_TOKEN * 6553.6 / (8 * 1978.9e12))
    assert figure.value_ratio == pytest.approx(PER_TOKEN * 6553.6 / (8 * PEAK))
    values = {term.symbol: term.value for term in arithmetic(figure)}
    assert values["MFU_fp8"] == figure.run_dtype_ratio
    assert values["MFU_palm"] == pytest.approx(values["F_palm"] * values["T"] / (values["G"] * values["P"]))


def test_a_peak_of_the_site_wins_over_the_table():
    given = scene([facts(tokens_per_step=65_536, sequence_length=128)])
    inputs = given.inputs()
    site = (overridden(H100, {"bf16": 800.0}, "our matmul, 2026-11"),)
    run = join(inputs.jobs[1].runs)
    devices = devices_of(inputs.jobs[1], run, inputs.leases, inputs.gpus, site)

    figure = step_figure(given.timeline(), basis_of(run, devices))

    assert figure.value_ratio == pytest.approx(PER_TOKEN * 6553.6 / (8 * 800e12))
    assert (figure.peak_flops, figure.peak_source) == (800e12, "site setting: our matmul, 2026-11")


VISION = {"name": "vision", "hidden": 32, "blocks": [], "entry_weights": 1000, "stored_weights": 1000}


def test_a_vision_tower_without_token_counts_is_left_out_and_named():
    told = facts(shape=general(stacks=[VISION]), tokens_per_step=65_536, sequence_length=128)
    figure, _ = figure_of(scene([told]))

    assert (figure.flops_per_token, figure.left_out, figure.basis) == (PER_TOKEN, ("vision",), "steps+shape")


def test_an_encoder_without_token_counts_gives_no_figure_but_a_reason():
    told = facts(
        shape=general(stacks=[{**VISION, "name": "encoder"}]), tokens_per_step=65_536, sequence_length=128
    )
    figure, _ = figure_of(scene([told]))

    assert (figure.value_ratio, figure.reason) == (None, "no_encoder_tokens")


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


def rolled(job_number, kept, peak, gpu_seconds):
    row = {
        "ts": 0.0,
        "job": job_number,
        "kept_flops": kept,
        "leased_peak_flop_seconds": peak,
        "gpu_seconds": gpu_seconds,
    }
    return {name: np.array([row.get(name, np.nan)], dtype=np.float64) for name in ROLLUP_COLUMNS}


def test_a_fleet_by_money_weighs_jobs_by_gpu_time_and_a_fleet_by_peak_by_what_their_gpus_could_do():
    # 40 % on an H100 for an hour, 20 % on an A100 for three, at one price a GPU-hour.
    fast = rolled(1, 0.4 * PEAK * 3600, PEAK * 3600, 3600)
    slow = rolled(2, 0.2 * A100_PEAK * 10800, A100_PEAK * 10800, 10800)
    unmeasured = rolled(3, np.nan, np.nan, 7200)
    rows = {name: np.concatenate([one[name] for one in (fast, slow, unmeasured)]) for name in ROLLUP_COLUMNS}

    assert money_ratio(rows, {1: 2.0, 2: 2.0, 3: 2.0}) == pytest.approx((0.4 * 1 + 0.2 * 3) / 4)
    assert fleet_ratio(rows) == pytest.approx((0.4 * PEAK + 0.2 * 3 * A100_PEAK) / (PEAK + 3 * A100_PEAK))
    assert money_ratio(rows, {}) is None


def test_rows_of_an_older_release_lack_nothing_but_are_unknown_where_it_knew_nothing():
    old = {name: values for name, values in rolled(1, 1.0, 2.0, 3.0).items() if name != f"{TENSOR_CLOCK}_sum"}

    found = completed(old)

    assert set(found) == set(ROLLUP_COLUMNS)
    assert np.isnan(found[f"{TENSOR_CLOCK}_sum"]).all()
    assert hourly(old)["kept_flops"].tolist() == [1.0]


def test_a_run_that_trains_a_part_costs_four_flops_a_frozen_parameter():
    told = facts(
        shape=None, parameter_count=1_000_000, trained_parameter_count=10_000, tokens_per_step=65_536
    )

    figure, _ = figure_of(scene([told]))

    assert (figure.flops_per_token, figure.basis) == (4 * 990_000 + 6 * 10_000, "steps+params")
    assert figure.convention == "4N+2T"
