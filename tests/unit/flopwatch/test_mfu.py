"""MFU arithmetic, mixed fleets, the hardware estimate, standing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.flopwatch.published_mfu import GOLDEN, trained_share

from flopwatch.accelerators import by_name, by_product
from flopwatch.flops import ModelShape
from flopwatch.mfu import HardwareEstimate, HeldGpus, Work, fleet_ratio, hardware_estimate, mfu_of, mfu_ratio
from flopwatch.mfu_standing import CLASS_TEXTS, Standing, model_class, standing
from flopwatch.model_names import DESCRIPTIONS
from flopwatch.model_names import by_name as model
from flopwatch.parameters import count
from flopwatch.published_ranges import PUBLISHED, PublishedRange

positive = st.floats(min_value=1e-3, max_value=1e15)
scales = st.floats(min_value=1e-3, max_value=1e3)


def test_the_ratio_is_flops_over_time_gpus_and_peak():
    ratio = mfu_ratio(51.47e9, tokens=10_000 * 64, seconds=1, gpus=64, peak_flops=989.4e12)

    assert ratio == pytest.approx(0.5202, abs=1e-4)


@pytest.mark.parametrize("wrong", ["seconds", "gpus", "peak_flops"])
def test_a_ratio_over_nothing_is_refused(wrong):
    with pytest.raises(ValueError, match=f"{wrong} is 0"):
        mfu_ratio(1e9, **{"tokens": 1, "seconds": 1, "gpus": 1, "peak_flops": 1e12, wrong: 0})


@given(positive, positive, positive, scales)
def test_work_and_time_that_scale_together_leave_the_ratio(flops, tokens, seconds, scale):
    one = mfu_ratio(flops, tokens=tokens, seconds=seconds, gpus=8, peak_flops=1e15)
    scaled = mfu_ratio(flops, tokens=tokens * scale, seconds=seconds * scale, gpus=8, peak_flops=1e15)

    assert scaled == pytest.approx(one)


@given(positive, positive, scales)
def test_gpus_and_work_that_scale_together_leave_the_ratio(flops, tokens, scale):
    one = mfu_of(Work(tokens=tokens, flops_per_token=flops), [HeldGpus(gpu_seconds=10, peak_flops=1e15)])
    more = mfu_of(
        Work(tokens=tokens * scale, flops_per_token=flops),
        [HeldGpus(gpu_seconds=10 * scale, peak_flops=1e15)],
    )

    assert more.ratio == pytest.approx(one.ratio)


def test_both_conventions_stand_over_the_same_peaks():
    work = Work(tokens=1000, flops_per_token=5e9, palm_flops_per_token=6e9)

    found = mfu_of(work, [HeldGpus(gpu_seconds=2, peak_flops=10e12)])

    assert (found.ratio, found.palm_ratio) == (pytest.approx(0.25), pytest.approx(0.3))
    assert found.flops_per_gpu_second == pytest.approx(2.5e12)


def test_a_job_over_two_gpu_models_is_weighted_by_the_peak_of_each_gpu_second():
    held = [HeldGpus(gpu_seconds=80, peak_flops=989.4e12), HeldGpus(gpu_seconds=20, peak_flops=312e12)]

    found = mfu_of(Work(tokens=1, flops_per_token=0.4 * (80 * 989.4e12 + 20 * 312e12)), held)

    assert found.ratio == pytest.approx(0.4)
    assert found.peak_flops == pytest.approx(0.8 * 989.4e12 + 0.2 * 312e12)
    assert found.gpu_seconds == 100


def test_an_elastic_job_counts_the_gpu_seconds_it_held():
    grew = [HeldGpus(gpu_seconds=8 * 60, peak_flops=1e15), HeldGpus(gpu_seconds=16 * 60, peak_flops=1e15)]

    assert mfu_of(Work(tokens=1, flops_per_token=0.5 * 24 * 60e15), grew).ratio == pytest.approx(0.5)


def test_an_unknown_peak_gives_no_figure():
    work = Work(tokens=1, flops_per_token=1e9)

    assert (
        mfu_of(work, [HeldGpus(gpu_seconds=1, peak_flops=1e15), HeldGpus(gpu_seconds=1, peak_flops=None)])
        is None
    )
    assert mfu_of(work, []) is None
    assert mfu_of(work, [HeldGpus(gpu_seconds=0, peak_flops=None)]) is None


def test_a_gpu_that_was_held_for_no_time_does_not_hide_the_others():
    held = [HeldGpus(gpu_seconds=1, peak_flops=1e12), HeldGpus(gpu_seconds=0, peak_flops=None)]

    assert mfu_of(Work(tokens=1, flops_per_token=5e11), held).ratio == pytest.approx(0.5)


@pytest.mark.parametrize(("tokens", "flops"), [(-1, 1e9), (1, 0)])
def test_impossible_work_is_refused(tokens, flops):
    with pytest.raises(ValueError, match="work has tokens"):
        Work(tokens=tokens, flops_per_token=flops)


def test_a_fleet_is_weighted_by_flops_or_by_money():
    assert fleet_ratio([(0.4, 3.0), (0.6, 1.0)]) == pytest.approx(0.45)
    assert fleet_ratio([(0.4, 0.0)]) is None
    assert fleet_ratio([]) is None


def test_the_hardware_estimate_is_activity_times_clock_over_the_clock_of_the_peak():
    found = hardware_estimate(
        by_name("NVIDIA H100 80GB HBM3"), tensor_active_ratio=0.5, sm_clock_hertz=1647e6
    )

    assert found == HardwareEstimate(ratio=pytest.approx(0.45), clock_basis="peak_clock")


def test_without_the_clock_of_the_peak_the_maximum_clock_makes_it_a_lower_bound():
    b200 = by_name("NVIDIA B200")

    found = hardware_estimate(b200, tensor_active_ratio=0.5, sm_clock_hertz=1e9, max_sm_clock_hertz=2e9)

    assert found == HardwareEstimate(ratio=0.25, clock_basis="max_clock")
    assert hardware_estimate(b200, tensor_active_ratio=0.5, sm_clock_hertz=1e9) is None


def test_the_hardware_estimate_states_its_limits():
    text = hardware_estimate.__doc__

    for limit in ("2605.20799", "recompute", "padding", "number formats", "partial tiles", "estimate"):
        assert limit in text


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("gpt-2-124m", "dense_below_3b"),
        ("llama-3-8b", "dense_3b_to_20b"),
        ("llama-3-70b", "dense_20b_to_100b"),
        ("llama-3.1-405b", "dense_above_100b"),
        ("mixtral-8x7b", "mixture"),
    ],
)
def test_a_model_is_compared_in_its_class(name, kind):
    assert model_class(model(name)) == kind
    assert kind in CLASS_TEXTS


def test_a_hybrid_is_a_class_of_its_own():
    text = "hybrid: 3 Mamba-2, 1 attention, 2 MLP layers; state 16, 2 groups, head dim 8"
    shape = ModelShape.from_dict(
        {
            "n_layers": 6,
            "hidden": 64,
            "ffn_hidden": 256,
            "n_heads": 4,
            "vocab": 100,
            "gated_mlp": False,
            "extra": text,
        }
    )

    assert model_class(shape) == "hybrid"


def test_standing_says_the_ceiling_and_the_published_range_in_a_sentence():
    found = standing(model("llama-3-8b"), by_name("NVIDIA H100 80GB HBM3"), "bf16")

    sentence = found.sentence(0.52, "H100 SXM", "bf16")
    assert "reaches only 78% to 87% of a GPU's dense peak" in sentence
    assert f"({found.published.rows} runs); this one is in the upper half of that range" in sentence


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (0.1, "below all of them"),
        (0.25, "in the lower half"),
        (0.35, "in the upper half"),
        (0.5, "above all of them"),
    ],
)
def test_a_figure_stands_somewhere_in_the_published_range(ratio, words):
    known = Standing(model_class="mixture", published=PublishedRange(rows=9, low=0.2, high=0.4))

    assert words in known.sentence(ratio, "B200", "fp8")


def test_where_nothing_was_published_the_sentence_says_so():
    found = standing(model("llama-3-8b"), by_name("NVIDIA L40S"), "bf16")

    assert found.published is None
    assert (
        "No published runs of dense models of 3 to 20 billion parameters on L40S in bf16 are known"
        in found.sentence(0.3, "L40S", "bf16")
    )


def test_a100_forms_and_fp16_share_one_range():
    found = standing(model("llama-3-8b"), by_name("NVIDIA A100 80GB PCIe"), "fp16")

    assert found.published == PUBLISHED["dense_3b_to_20b", "A100 SXM 80GB", "bf16"]


PRODUCTS = {"A100": "A100 SXM 80GB", "H800": "H800 SXM", "B200": "B200 (HGX/DGX)", "B300": "B300 (HGX/DGX)"}


def recounted_ranges():
    found = {}
    for row in GOLDEN:
        product = by_product(PRODUCTS.get(row["gpu"], row["gpu"]))
        if (
            "recomputed_causal_exact" not in row
            or trained_share(row) < 1
            or product is None
            or product.vendor != "NVIDIA"
        ):
            continue
        dtype = "bf16" if row["dtype"] == "fp16" else row["dtype"]
        key = (model_class(ModelShape.from_dict(row["model"])), product.name, dtype)
        ratio = row["recomputed_causal_exact"]["tflops_per_gpu"] * 1e12 / product.peak_flops(dtype)
        found.setdefault(key, []).append(round(ratio, 3))
    return {key: PublishedRange(rows=len(each), low=min(each), high=max(each)) for key, each in found.items()}


def test_the_published_ranges_are_those_of_the_published_rows():
    assert recounted_ranges() == PUBLISHED


def test_every_well_known_model_has_its_known_size():
    sizes = {
        "llama-2-7b": 6_738_415_616, "llama-2-70b": 68_976_648_192, "llama-3-8b": 8_030_261_248,
        "llama-3.1-405b": 405_853_388_800, "mixtral-8x7b": 46_702_792_704, "deepseek-v3": 671_026_279_424,
        "qwen3-235b-a22b": 235_093_610_496, "gpt-oss-120b": 116_789_048_640,
    }  # fmt: skip
    assert {name: count(model(name)).total for name in sizes} == sizes
    assert all(model(name).name == name for name in DESCRIPTIONS)
    assert model("Llama-3-8B").name == "Llama-3-8B"
    assert model("llama-9") is None
