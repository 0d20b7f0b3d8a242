"""Accelerators by the exact name that NVML gives: dense peaks or nothing, never a guess from part of a name."""

from collections.abc import Iterable, Mapping

from flopwatch.accelerator import DTYPES, Accelerator, dtype_of, split_mig
from flopwatch.peaks.newer import NEWER
from flopwatch.peaks.older import OLDER
from flopwatch.peaks.oldest import OLDEST
from flopwatch.peaks.others import OTHERS

__all__ = [
    "ACCELERATORS", "DTYPES", "Accelerator", "by_name", "by_product", "dtype_of", "overridden", "products_like",
]  # fmt: skip

ACCELERATORS: tuple[Accelerator, ...] = (*OLDEST, *OLDER, *NEWER, *OTHERS)
_BY_NAME = {name: item for item in ACCELERATORS for name in (*item.nvml_names, *item.aliases)}
_ONLY_FORM = " (HGX/DGX)"
"""Said of a product that has no other form, so that people leave it out."""
_BY_PRODUCT = {item.name.removesuffix(_ONLY_FORM).casefold(): item for item in ACCELERATORS}


def by_name(nvml_name: str, overrides: Iterable[Accelerator] = ()) -> Accelerator | None:
    """The accelerator of a device's name; None when the name is in no list.

    The name must be equal to a driver's string or to an explicit alias. A MIG suffix is taken off and the
    peak scaled by the instance's SMs; when those are not known the instance has no peak at all.

    Args:
        nvml_name: as NVML gives it, with or without a MIG profile.
        overrides: the site's own entries (see ``overridden``); they win over the table.
    """
    device, profile = split_mig(nvml_name.strip())
    site = {name: item for item in overrides for name in item.nvml_names}
    found = site.get(device) or _BY_NAME.get(device)
    if found is None or profile is None:
        return found
    return found.sliced(profile) or _without_peaks(found)


def by_product(name: str) -> Accelerator | None:
    """The accelerator of a product name of this table such as ``H100 SXM``: for people, not for NVML strings.

    A name that several forms share (``H100``) is none of them: their peaks differ.
    """
    return _BY_PRODUCT.get(" ".join(name.split()).removesuffix(_ONLY_FORM).casefold())


def products_like(name: str) -> tuple[str, ...]:
    """Products that begin as ``name`` does, for the message about a name that is none."""
    words = name.casefold().removeprefix("nvidia ").replace("-", " ").split()
    return tuple(item.name for item in ACCELERATORS if words and words[0] == item.name.casefold().split()[0])


def overridden(nvml_name: str, tflops: Mapping[str, float], source: str = "") -> Accelerator:
    """The accelerator with a site's own dense peaks (TFLOP/s by number format); an unknown name makes a new one.

    ``source`` says where the site has them from; it is shown beside every figure.

    Raises:
        ValueError: a number format is not known, or a peak is not above 0.
    """
    peaks = {}
    for word, value in tflops.items():
        dtype = dtype_of(word)
        if dtype is None or not 0 < value < 1e9:
            raise ValueError(
                f"peak of {nvml_name!r} in {word!r} is {value!r}; allowed: a known format, above 0"
            )
        peaks[dtype] = value
    known = _BY_NAME.get(nvml_name)
    return Accelerator(
        name=known.name if known else nvml_name,
        vendor=known.vendor if known else "unknown",
        architecture=known.architecture if known else "unknown",
        nvml_names=(nvml_name,),
        tflops={**(known.tflops if known else {}), **peaks},
        sm_count=known.sm_count if known else None,
        mig_sm_counts=known.mig_sm_counts if known else {},
        sources=(f"site setting: {source}" if source else "site setting", *(known.sources if known else ())),
        site_override=True,
    )


def _without_peaks(whole: Accelerator) -> Accelerator:
    """A MIG instance whose size is not known: its product, no peak."""
    return Accelerator(
        name=whole.name,
        vendor=whole.vendor,
        architecture=whole.architecture,
        nvml_names=whole.nvml_names,
        sources=whole.sources,
        notes=("the SM count of this MIG profile is not known, so it has no peak",),
    )
