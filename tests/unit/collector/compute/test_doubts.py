"""Doubts about a figure, each from a run whose numbers are worked out by hand."""

import numpy as np
import pytest
from tests.unit.collector.compute.ledger_scene import step_run, steps
from tests.unit.collector.compute.mfu_scene import H100, PEAK, PER_TOKEN, facts, figure_of, scene, tokens_for

from flopwatch.accelerators import by_name
from flopwatch.mfu import PRACTICAL_CEILING
from flopwatch.model_names import by_name as model
from flopwatch_collector.compute.devices import Devices
from flopwatch_collector.compute.doubts import Hardware, doubts
from flopwatch_collector.compute.figure import arithmetic, estimated, step_figure
from flopwatch_collector.compute.standing import standing_of
from flopwatch_collector.compute.timeline import no_timeline

NOTHING = Hardware()


def run_at(ratio, *, told=None, names=(H100,) * 8, **reported):
    """(basis, figure) of a run at that MFU whose trainer prints what is given."""
    given = {
        "tokens_per_step": tokens_for(ratio),
        "sequence_length": 128,
        "dtype": "bf16",
        "dtype_basis": "log",
    }
    made = scene([facts(**{**given, **(told or {})})], names=names)
    figure, basis = figure_of(made.without(steps=steps(step_run(1, 50, 100.0, **reported))))
    return basis, figure


def codes(found):
    return [each.code for each in found]


def first_guess(finding):
    return finding.values["explained_by"][0][0]


def test_a_figure_that_nothing_contradicts_has_no_doubt():
    basis, figure = run_at(0.4, reported_mfu_ratio=0.4005)

    assert doubts(basis, figure, Hardware(wall_ratio=0.38, tensor_active_ratio=0.42)) == ()


def test_an_mfu_above_one_is_impossible():
    basis, figure = run_at(1.3)

    (found,) = doubts(basis, figure, NOTHING)

    assert (found.code, found.values["mfu_ratio"]) == ("above_peak", pytest.approx(1.3, rel=1e-6))


def test_an_fp8_run_is_impossible_only_above_its_fp8_peak():
    # 1.3 of the bf16 peak is 0.65 of the fp8 peak, 2.1 is 1.05 of it.
    assert codes(doubts(*run_at(1.3, told={"dtype": "fp8"}), NOTHING)) == []
    assert codes(doubts(*run_at(2.1, told={"dtype": "fp8"}), NOTHING)) == ["above_peak"]


def test_a_format_that_is_only_assumed_is_impossible_only_above_the_fastest():
    bare = {"dtype": None, "dtype_basis": None}

    assert codes(doubts(*run_at(1.3, told=bare), NOTHING)) == []
    assert codes(doubts(*run_at(5.63, told=bare), NOTHING)) == ["above_peak"]


def test_more_flops_than_the_tensor_pipes_were_active_for_is_a_doubt():
    basis, figure = run_at(0.5)

    (found,) = doubts(basis, figure, Hardware(wall_ratio=0.48, tensor_active_ratio=0.40))

    assert found.code == "above_tensor_activity"
    assert found.values == {"mfu_ratio": 0.48, "tensor_active_ratio": 0.40, "factor": pytest.approx(1.2)}


def test_a_boosted_clock_explains_an_mfu_above_tensor_activity():
    basis, figure = run_at(0.5)
    # 0.46 at 1980 MHz is 0.498 at the 1830 MHz of the peak.
    boosted = Hardware(wall_ratio=0.50, tensor_active_ratio=0.46, tensor_clock_hertz=0.46 * 1980e6)

    assert doubts(basis, figure, boosted) == ()


@pytest.mark.parametrize(
    ("told", "factor", "code"),
    [
        pytest.param({}, 0.5, "sparse_peak", id="sparse-peak-as-dense"),
        pytest.param({}, 989.4 / 312, "a100_fallback", id="a100-fallback"),
        pytest.param({}, 4 / 3, "recompute", id="recompute-as-work"),
        pytest.param({}, 1.5, "lora", id="lora-as-full"),
        pytest.param({}, 989.4 / 835.5, "wrong_device", id="wrong-device"),
    ],
)
def test_a_printed_mfu_that_differs_by_a_known_factor_is_explained(told, factor, code):
    basis, figure = run_at(0.3, told=told, reported_mfu_ratio=0.3 * factor)

    (found,) = doubts(basis, figure, NOTHING)

    assert found.code == "mfu_differs"
    assert found.values["factor"] == pytest.approx(factor, rel=1e-3)
    assert code in {guess["code"] for group in found.values["explained_by"] for guess in group}


def test_causal_attention_counted_in_full_is_named_from_the_shape():
    full = PER_TOKEN + 6 * 2 * 4 * 16 * 128
    basis, figure = run_at(0.3, reported_flops_per_gpu=0.3 * PEAK * full / PER_TOKEN)

    (found,) = doubts(basis, figure, NOTHING)

    assert (found.code, first_guess(found)["code"]) == ("flops_differ", "full")


def test_padding_counted_as_work_is_named_with_its_factor():
    tokens = tokens_for(0.3)
    basis, figure = run_at(
        0.3, tokens=tokens, padded_tokens=tokens * 1.18, reported_flops_per_gpu=0.3 * PEAK * 1.18
    )

    (found,) = doubts(basis, figure, NOTHING)

    assert figure.padded_tokens == pytest.approx(50 * tokens * 1.18)
    assert first_guess(found) == {"code": "padded_tokens", "factor": pytest.approx(1.18), "subject": ""}


def test_a_peak_that_the_trainer_names_is_set_against_the_right_one():
    basis, figure = run_at(0.3, told={"trainer_peak_flops": 1978.8e12})

    (found,) = doubts(basis, figure, NOTHING)

    assert (found.code, first_guess(found)["code"]) == ("peak_differs", "sparse_peak")


def test_a_small_difference_that_nothing_explains_is_no_doubt_and_a_large_one_is():
    small = doubts(*run_at(0.3, reported_mfu_ratio=0.3 * 1.03), NOTHING)
    large = doubts(*run_at(0.3, reported_mfu_ratio=0.3 * 0.317), NOTHING)

    assert small == ()
    assert [(each.code, each.values["explained_by"]) for each in large] == [("mfu_differs", [])]


def without_steps(names=(H100,) * 8):
    made = scene([], names=names)
    _, basis = figure_of(made)
    return step_figure(no_timeline(made.inputs().jobs[1], 600.0), basis), basis.devices


def test_a_job_without_steps_has_an_estimate_from_its_counters_that_says_so():
    figure, devices = without_steps()

    found = estimated(
        figure, devices, tensor_active_ratio=0.5, tensor_clock_hertz=0.5 * 1755e6, max_sm_clock_hertz=1980e6
    )

    # 0.5 x 1755 MHz / 1830 MHz, the clock at which the H100's 989.4 TFLOP/s hold.
    assert found.value_ratio == pytest.approx(0.5 * 1755 / 1830)
    assert (found.basis, found.convention, found.clock_basis) == ("hardware", "hardware", "peak_clock")
    assert (found.reason, found.measured_ratio, found.palm_ratio) == ("no_steps", None, None)
    assert doubts(figure_of(scene([]))[1], found, NOTHING) == ()
    values = {term.symbol: term.value for term in arithmetic(found)}
    assert values == {
        "A": 0.5, "C": 1755e6, "C_peak": pytest.approx(1830e6), "estimate": found.value_ratio,
    }  # fmt: skip


def test_without_the_clock_of_the_peak_the_estimate_is_a_lower_bound_over_the_highest_clock():
    device = by_name("NVIDIA L4")
    figure, _ = without_steps()
    devices = Devices(kinds=((device, 8),), dtype="bf16")

    found = estimated(
        figure, devices, tensor_active_ratio=0.5, tensor_clock_hertz=0.5e9, max_sm_clock_hertz=2.04e9
    )

    assert device.peak_clock_hertz is None
    assert (found.value_ratio, found.clock_basis) == (pytest.approx(0.5e9 / 2.04e9), "max_clock")


@pytest.mark.parametrize("clock", [None, 0.5e9], ids=["no-clock", "no-activity"])
def test_without_a_counter_there_is_no_estimate(clock):
    figure, devices = without_steps()
    active = None if clock else 0.5

    found = estimated(
        figure, devices, tensor_active_ratio=active, tensor_clock_hertz=clock, max_sm_clock_hertz=2e9
    )

    assert (found.value_ratio, found.basis) == (None, None)


def test_a_measured_mfu_is_never_replaced_by_an_estimate():
    basis, figure = run_at(0.3)

    assert (
        estimated(
            figure, basis.devices, tensor_active_ratio=0.9, tensor_clock_hertz=1e9, max_sm_clock_hertz=2e9
        )
        == figure
    )


def test_a_figure_stands_among_published_runs_of_its_class_on_its_gpu():
    told = {"shape": model("llama-3-8b").to_dict(), "sequence_length": 8192}
    basis, figure = run_at(0.4, told={**told, "tokens_per_step": round(0.55 * 8 * PEAK * 10 / 51.47e9)})

    found = standing_of(basis, figure)

    # Published: 42 runs of 3 to 20 billion parameters on H100 SXM in bf16, 18.1 % to 60.5 %.
    assert (found.product, found.dtype, found.model_class) == ("H100 SXM", "bf16", "dense_3b_to_20b")
    assert (found.published_low_ratio, found.published_high_ratio, found.published_rows) == (0.181, 0.605, 42)
    assert (found.place, found.ratio) == ("upper", figure.value_ratio)
    assert (found.ceiling_low_ratio, found.ceiling_high_ratio) == PRACTICAL_CEILING


def test_an_fp8_run_stands_among_fp8_runs_with_its_figure_against_the_fp8_peak():
    told = {"shape": model("llama-3-8b").to_dict(), "sequence_length": 8192, "dtype": "fp8"}
    basis, figure = run_at(0.4, told={**told, "tokens_per_step": round(0.80 * 8 * PEAK * 10 / 51.47e9)})

    found = standing_of(basis, figure)

    assert (found.dtype, found.published_low_ratio, found.published_high_ratio) == ("fp8", 0.271, 0.420)
    assert found.ratio == pytest.approx(figure.value_ratio * 989.4 / 1978.9)
    assert found.place == "upper"


def test_without_a_shape_only_the_ceiling_is_known_and_without_a_figure_nothing():
    basis, figure = run_at(0.4, told={"shape": None, "parameter_count": 1_000_000})
    missing, _ = without_steps()

    assert (standing_of(basis, figure).model_class, standing_of(basis, figure).place) == (None, None)
    assert standing_of(basis, missing) is None
    assert np.isfinite(figure.value_ratio)
