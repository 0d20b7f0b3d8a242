"""Names and peaks: each device its own, nothing by part of a name, nothing that was not verified."""

import json
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flopwatch import accelerators
from flopwatch.accelerator import DTYPES, dtype_of, split_mig

FIXTURE = Path(__file__).parents[2] / "fixtures" / "accelerator_peaks.json"
ENTRIES = json.loads(FIXTURE.read_text(encoding="utf-8"))
NAMES = [(name, entry) for entry in ENTRIES for name in entry["nvml_names"]]
NOTHING_VERIFIED = {"all peaks", "everything"}


def verified_tflops(entry):
    unverified = set(entry["unverified_fields"])
    if unverified & NOTHING_VERIFIED:
        return {}
    return {
        dtype: value
        for dtype, value in entry["dense_peak_tflops"].items()
        if value is not None and dtype not in unverified
    }


@pytest.mark.parametrize(("name", "entry"), NAMES, ids=[name for name, _ in NAMES])
def test_a_drivers_name_is_its_own_device_with_its_verified_dense_peaks(name, entry):
    found = accelerators.by_name(name)

    assert found.name == entry["name"]
    peaks = {dtype: found.peak_flops(dtype) for dtype in entry["dense_peak_tflops"]}
    expected = verified_tflops(entry)
    assert peaks == {dtype: expected[dtype] * 1e12 if dtype in expected else None for dtype in peaks}


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry["name"] for entry in ENTRIES])
def test_the_table_holds_the_verified_fields_and_their_sources(entry):
    found = accelerators.by_product(entry["name"])

    assert found.vendor == entry["vendor"]
    assert found.architecture == entry["architecture"]
    assert found.nvml_names == tuple(entry["nvml_names"])
    assert found.tflops == verified_tflops(entry)
    assert found.sources == tuple(entry["sources"])
    assert found.unverified == tuple(entry["unverified_fields"])
    assert found.sm_count == (None if "sm_count" in entry["unverified_fields"] else entry["sm_count"])
    slices = entry["mig_slices"] or {}
    assert found.mig_sm_counts == {
        profile: part["sms"] for profile, part in slices.items() if profile != "note"
    }
    assert found.notes == tuple(entry["trap_notes"])


LATER = {
    # product: (NVML name, format, units x FLOP a clock of each x clock in MHz, TFLOP/s)
    "P100 SXM2": ("Tesla P100-SXM2-16GB", "fp16", 56 * 64 * 4, 1480, 21.2),
    "P100 PCIe": ("Tesla P100-PCIE-16GB", "fp16", 56 * 64 * 4, 1303, 18.7),
    "V100 SXM3": ("Tesla V100-SXM3-32GB", "fp16", 80 * 1024, 1530, 125),
    "RTX PRO 6000 Blackwell Workstation": (
        "NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "bf16", 188 * 1024, 2617, 503.8,
    ),
    "RTX PRO 6000 Blackwell Max-Q and Server": (
        "NVIDIA RTX PRO 6000 Blackwell Server Edition", "bf16", 0, 0, None,
    ),
    "MI250 (per card)": ("AMD Instinct MI250", "bf16", 208 * 1024, 1700, 362.1),
    "MI350X": ("AMD Instinct MI350X", "bf16", 256 * 4096, 2200, 2309.6),
    "Gaudi 2": (None, "bf16", 2 * 256 * 256 * 2, 1650, 432),
    "Gaudi 3": (None, "bf16", 0, 0, None),
    "Trainium": (None, "bf16", 0, 0, 190),
    "Trainium2": (None, "bf16", 0, 0, 667),
    "Trainium3": (None, "bf16", 0, 0, 671),
}  # fmt: skip
"""Devices that are not in the fixture, held against their own arithmetic where units and clocks are public."""


@pytest.mark.parametrize("product", LATER)
def test_a_device_that_came_later_has_the_peak_of_its_units_and_clock_or_none(product):
    nvml_name, dtype, operations, megahertz, tflops = LATER[product]
    found = accelerators.by_product(product)

    assert found.peak_flops(dtype) == (None if tflops is None else tflops * 1e12)
    assert nvml_name is None or accelerators.by_name(nvml_name) is found
    if operations:
        assert operations * megahertz * 1e6 == pytest.approx(tflops * 1e12, rel=0.005)


def test_the_table_has_no_other_devices_and_no_name_twice():
    assert [item.name for item in accelerators.ACCELERATORS] != []
    assert {item.name for item in accelerators.ACCELERATORS} == {entry["name"] for entry in ENTRIES} | set(
        LATER
    )
    names = [name for item in accelerators.ACCELERATORS for name in (*item.nvml_names, *item.aliases)]
    assert len(names) == len(set(names))


def test_a_peak_without_a_source_does_not_exist():
    assert all(item.sources for item in accelerators.ACCELERATORS if item.tflops)


BF16 = {
    "NVIDIA A100-SXM4-80GB": 312e12,
    "NVIDIA A10": 125e12,
    "NVIDIA A10G": 70e12,
    "NVIDIA A40": 149.7e12,
    "NVIDIA L4": 121e12,
    "NVIDIA L40": 181.05e12,
    "NVIDIA L40S": 362.05e12,
    "NVIDIA H20": 148e12,
    "NVIDIA H200": 989.4e12,
    "NVIDIA H200 NVL": 835.5e12,
    "NVIDIA H100 80GB HBM3": 989.4e12,
    "NVIDIA H100 PCIe": 756.5e12,
    "NVIDIA H100 NVL": 835.5e12,
    "NVIDIA GH200 480GB": 989.4e12,
    "NVIDIA B200": 2250e12,
    "NVIDIA GB200": 2500e12,
    "NVIDIA GeForce RTX 4090": 165.2e12,
}


@pytest.mark.parametrize(("name", "peak"), tuple(BF16.items()))
def test_families_whose_names_contain_each_other_are_not_confused(name, peak):
    assert accelerators.by_name(name).peak_flops("bf16") == peak


@pytest.mark.parametrize(
    ("one", "other"), tuple(permutations(["NVIDIA H20", "NVIDIA L4", "NVIDIA A10", "NVIDIA B200"], 2))
)
def test_a_longer_name_is_never_the_shorter_one(one, other):
    assert accelerators.by_name(one + other.removeprefix("NVIDIA ")) is None


@pytest.mark.parametrize(
    "name",
    [
        "",
        "NVIDIA",
        "H100",
        "NVIDIA A100",
        "NVIDIA H100 80GB",
        "nvidia h100 80gb hbm3",
        "NVIDIA A100-PCIE-80GB",
        "NVIDIA RTX A4000",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA T400",
        "Tesla T4G",
        "NVIDIA RTX 6000",
        "NVIDIA B300",
        "AMD Radeon Graphics",
        "H100 SXM",
        "Graphics Device",
    ],
)
def test_a_name_in_no_list_is_unknown(name):
    assert accelerators.by_name(name) is None


@given(st.sampled_from([name for name, _ in NAMES]), st.text(min_size=1, max_size=8))
def test_a_known_name_with_anything_added_is_unknown_or_another_known_one(name, more):
    known = {each for item in accelerators.ACCELERATORS for each in (*item.nvml_names, *item.aliases)}

    for changed in (name + more, more + name):
        assert accelerators.by_name(changed) is None or changed.strip() in known or " MIG " in changed


def test_v100_and_t4_have_no_bf16_peak():
    assert accelerators.by_name("Tesla V100-SXM2-32GB").peak_flops("bf16") is None
    assert accelerators.by_name("Tesla V100-SXM2-32GB").peak_flops("fp16") == 125e12
    assert accelerators.by_name("Tesla T4").peak_flops("bf16") is None


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA B100",
        "NVIDIA H800 PCIe",
        "NVIDIA H800 NVL",
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA A100-SXM-64GB",
    ],
)
def test_a_device_without_a_verified_peak_is_known_but_has_none(name):
    found = accelerators.by_name(name)

    assert found is not None
    assert [found.peak_flops(dtype) for dtype in DTYPES] == [None] * len(DTYPES)


def test_the_older_drivers_names_of_the_a100_are_aliases():
    assert accelerators.by_name("A100-SXM4-40GB") is accelerators.by_name("NVIDIA A100-SXM4-40GB")


@pytest.mark.parametrize(
    ("name", "tflops"),
    [
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 119.93),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb+me", 119.93),
        ("NVIDIA H100 80GB HBM3 MIG 1g.20gb", 194.88),
        ("NVIDIA H100 80GB HBM3 MIG 3g.40gb", 449.73),
        ("NVIDIA H100 80GB HBM3 MIG 7g.80gb", 989.4),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 40.44),
        ("NVIDIA A100-SXM4-80GB MIG 7g.80gb", 283.11),
    ],
)
def test_a_mig_instance_has_its_peak_by_sms(name, tflops):
    found = accelerators.by_name(name)

    assert found.peak_flops("bf16") / 1e12 == pytest.approx(tflops, abs=0.01)
    assert found.name == accelerators.by_name(name.split(" MIG ")[0]).name


@pytest.mark.parametrize("name", ["NVIDIA H200 MIG 1g.18gb", "NVIDIA H100 80GB HBM3 MIG 2g.99gb"])
def test_a_mig_instance_of_unknown_size_has_no_peak(name):
    found = accelerators.by_name(name)

    assert found is not None
    assert found.peak_flops("bf16") is None


def test_the_drivers_own_sm_count_of_an_instance_wins():
    whole = accelerators.by_name("NVIDIA H100 80GB HBM3")

    assert whole.sliced("1g.10gb", 18).peak_flops("bf16") == pytest.approx(989.4e12 * 18 / 132)
    assert whole.sliced("1g.10gb", 133) is None


def test_an_instance_whose_sizes_only_the_driver_knows_has_a_peak_by_them():
    whole = accelerators.by_name("NVIDIA H200")

    assert whole.sliced("1g.18gb", 16) is None
    assert whole.sliced("1g.18gb", 16, 132).peak_flops("bf16") == pytest.approx(989.4e12 * 16 / 132)


MIG_LAYOUTS = {
    "NVIDIA A100-SXM4-40GB": ([1] * 7, [1, 1, 1, 1, 3], [2, 2, 3], [3, 4], [7], [1, 1, 2, 3]),
    "NVIDIA H100 80GB HBM3": ([1] * 7, [1, 1, 1, 4], [2, 2, 3], [3, 4], [7]),
}
PROFILES = {
    "NVIDIA A100-SXM4-40GB": {1: "1g.5gb", 2: "2g.10gb", 3: "3g.20gb", 4: "4g.20gb", 7: "7g.40gb"},
    "NVIDIA H100 80GB HBM3": {1: "1g.10gb", 2: "2g.20gb", 3: "3g.40gb", 4: "4g.40gb", 7: "7g.80gb"},
}


@pytest.mark.parametrize(
    ("name", "layout"), [(name, each) for name, layouts in MIG_LAYOUTS.items() for each in layouts]
)
def test_mig_slices_add_up_to_no_more_than_the_whole(name, layout):
    whole = accelerators.by_name(name)
    parts = [accelerators.by_name(f"{name} MIG {PROFILES[name][size]}").peak_flops("bf16") for size in layout]

    assert sum(parts) <= whole.peak_flops("bf16")


def test_a_mig_suffix_is_taken_off_and_nothing_else():
    assert split_mig("NVIDIA H100 80GB HBM3 MIG 1g.10gb") == ("NVIDIA H100 80GB HBM3", "1g.10gb")
    assert split_mig("NVIDIA A30 MIG 1c.2g.12gb") == ("NVIDIA A30", "1c.2g.12gb")
    assert split_mig("NVIDIA H100 80GB HBM3") == ("NVIDIA H100 80GB HBM3", None)


@pytest.mark.parametrize(
    ("word", "dtype"),
    [
        ("bf16", "bf16"),
        ("torch.bfloat16", "bf16"),
        ("BF16-mixed", "bf16"),
        ("float16", "fp16"),
        ("amp_fp8", "fp8"),
        ("MXFP8", "fp8"),
        ("nvfp4", "fp4"),
        ("tf32", "tf32"),
        ("posit8", None),
        ("", None),
    ],
)
def test_a_trainers_word_for_a_number_format_is_known_or_not(word, dtype):
    assert dtype_of(word) == dtype
    assert accelerators.by_name("NVIDIA B200").peak_flops("posit8") is None


def test_a_site_gives_a_peak_to_a_device_that_has_none():
    site = accelerators.overridden("NVIDIA B100", {"bf16": 1750})

    found = accelerators.by_name("NVIDIA B100", [site])
    assert found.peak_flops("bf16") == 1750e12
    assert found.source == "site setting"
    assert accelerators.by_name("NVIDIA B100").peak_flops("bf16") is None


def test_a_site_changes_one_format_and_keeps_the_others_and_mig():
    site = accelerators.overridden("NVIDIA H100 80GB HBM3", {"bf16": 900})

    found = accelerators.by_name("NVIDIA H100 80GB HBM3 MIG 1g.10gb", [site])
    assert found.peak_flops("bf16") == pytest.approx(900e12 * 16 / 132)
    assert found.peak_flops("fp8") == pytest.approx(1978.9e12 * 16 / 132)


def test_a_site_names_a_device_of_its_own():
    found = accelerators.by_name("Ascend 910C", [accelerators.overridden("Ascend 910C", {"bf16": 780})])

    assert found.name == "Ascend 910C"
    assert found.peak_flops("bf16") == 780e12


@pytest.mark.parametrize("peaks", [{"bf17": 100}, {"bf16": 0}, {"bf16": -1}, {"bf16": float("nan")}])
def test_a_wrong_site_peak_is_refused(peaks):
    with pytest.raises(ValueError, match="peak of 'NVIDIA B100' in"):
        accelerators.overridden("NVIDIA B100", peaks)


def test_the_clock_of_the_peak_is_the_one_the_peak_is_made_of():
    assert accelerators.by_name("NVIDIA H100 80GB HBM3").peak_clock_hertz * 132 * 4096 == pytest.approx(
        989.4e12, rel=1e-3
    )
    assert accelerators.by_name("NVIDIA A100-SXM4-80GB").peak_clock_hertz * 108 * 2048 == pytest.approx(
        312e12, rel=1e-3
    )
    assert accelerators.by_name("NVIDIA A30").peak_clock_hertz * 56 * 2048 == pytest.approx(165e12, rel=2e-3)


def test_the_fastest_format_leaves_integers_out():
    assert accelerators.by_name("NVIDIA H100 80GB HBM3").fastest_dtype == "fp8"
    assert accelerators.by_name("NVIDIA B100").fastest_dtype is None


@pytest.mark.parametrize(
    ("typed", "product"),
    [
        ("H100 SXM", "H100 SXM"),
        ("h100  sxm", "H100 SXM"),
        ("B200", "B200 (HGX/DGX)"),
        ("b300", "B300 (HGX/DGX)"),
    ],
)
def test_people_may_write_a_product_in_any_case_and_leave_out_its_only_form(typed, product):
    assert accelerators.by_product(typed).name == product


@pytest.mark.parametrize("typed", ["H100", "H200", "A100", "H100 SX", "B20", ""])
def test_a_part_of_a_products_name_is_no_product(typed):
    assert accelerators.by_product(typed) is None


def test_a_name_that_several_products_share_gives_their_names():
    assert accelerators.products_like("NVIDIA H200") == ("H200 SXM", "H200 NVL")
    assert accelerators.products_like("A800-SXM5") == ("A800 SXM", "A800 PCIe")
    assert accelerators.products_like("H9000") == ()
