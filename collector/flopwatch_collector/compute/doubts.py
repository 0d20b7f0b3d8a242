"""What contradicts a job's MFU: the hardware, or the figure its trainer prints; with the factor that explains it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from flopwatch.blocks import ShapeError
from flopwatch.documents import Documents
from flopwatch.exact import Run as CountedRun
from flopwatch.mfu_findings import ACTIVITY_MARGIN, Evidence, Hypothesis, MfuFinding, findings
from flopwatch.mfu_hypotheses import Counted, hypotheses
from flopwatch.query import FindingInfo, MfuFigure
from flopwatch_collector.compute.devices import Devices
from flopwatch_collector.compute.mfu import JobBasis
from flopwatch_collector.compute.runs import Run, shape_of

UNEXPLAINED = 0.05
"""A figure of the trainer that no known cause explains is doubted from this difference on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hardware:
    """What counters and steps show over one and the same time; None is unknown."""

    wall_ratio: float | None = None
    """Kept FLOPs over what the GPUs could have done."""
    tensor_active_ratio: float | None = None
    tensor_clock_hertz: float | None = None
    """Mean of tensor activity x SM clock."""


def doubts(basis: JobBasis, figure: MfuFigure, hardware: Hardware) -> tuple[FindingInfo, ...]:
    """Every doubt about a measured MFU, most serious first; none about an estimate.

    What the hardware allows is judged in the fastest number format in use; where the format is only assumed, in
    the fastest that the device has.
    """
    value, peak = figure.measured_ratio, figure.peak_flops
    if not value or peak is None:
        return ()
    scale = peak / (_fastest_peak(basis.devices, figure) or peak)
    evidence = Evidence(
        reported_ratio=figure.reported_ratio or None,
        reported_flops_per_gpu=figure.reported_flops_per_gpu or None,
        reported_peak_flops=basis.run.trainer_peak_flops,
        hypotheses=_hypotheses(basis, figure) if _reports(basis.run, figure) else (),
    )
    found = [
        _info(finding, figure)
        for finding in findings(value, value * peak, peak, evidence)
        if _stands(finding, value * scale)
    ]
    above = _above_activity(basis.devices, hardware, scale)
    impossible = [each for each in found if each.code == "above_peak"] + (
        [above] if above is not None else []
    )
    return (*impossible, *(each for each in found if each.code != "above_peak"))


def _reports(run: Run, figure: MfuFigure) -> bool:
    return any((figure.reported_ratio, figure.reported_flops_per_gpu, run.trainer_peak_flops))


def _stands(finding: MfuFinding, fastest_ratio: float) -> bool:
    """Whether a finding of the core is shown: the impossible, and differences that are explained or large."""
    if finding.code == "above_peak":
        return fastest_ratio > 1.0
    return bool(finding.explained_by) or abs(finding.factor - 1.0) > UNEXPLAINED


def _fastest_peak(devices: Devices, figure: MfuFigure) -> float | None:
    """Dense FLOP/s of one GPU in the fastest format that may be in use."""
    if devices.run_dtype_peak_flops is not None:
        return devices.run_dtype_peak_flops
    if figure.dtype_basis != "assumed" or devices.peak_flops is None:
        return figure.peak_flops
    peaks = [devices.mean_peak(dtype) for dtype in {kind.fastest_dtype for kind, _ in devices.kinds} if dtype]
    return max((peak for peak in peaks if peak is not None), default=devices.peak_flops)


def _above_activity(devices: Devices, hardware: Hardware, scale: float) -> FindingInfo | None:
    """More model FLOPs than the tensor pipes can have done in the time they were active, at their clock."""
    wall, active = hardware.wall_ratio, hardware.tensor_active_ratio
    if not wall or not active:
        return None
    possible = max(active, _at_peak_clock(devices, hardware) or 0.0)
    if wall * scale <= possible * (1 + ACTIVITY_MARGIN):
        return None
    text = (
        f"MFU is {wall:.1%} over time in which tensor pipes were active {active:.1%}: the FLOP count or the peak "
        "is wrong"
    )
    values = {"mfu_ratio": wall, "tensor_active_ratio": active, "factor": wall * scale / possible}
    return FindingInfo(code="above_tensor_activity", text=text, values=values)


def _at_peak_clock(devices: Devices, hardware: Hardware) -> float | None:
    product = devices.product
    if product is None or product.peak_clock_hertz is None or hardware.tensor_clock_hertz is None:
        return None
    return hardware.tensor_clock_hertz / product.peak_clock_hertz


def _info(finding: MfuFinding, figure: MfuFigure) -> FindingInfo:
    values: dict[str, Any] = {
        "mfu_ratio": figure.value_ratio,
        "factor": finding.factor,
        "explained_by": [
            [{"code": guess.code, "factor": guess.factor, "subject": guess.subject} for guess in group]
            for group in finding.explained_by
        ],
    }
    return FindingInfo(code=finding.code, text=finding.text, values=values)


def _hypotheses(basis: JobBasis, figure: MfuFigure) -> tuple[Hypothesis, ...]:
    """Known ways to differ: of the peak and of padding first, then of the count."""
    near = hypotheses(
        None,
        accelerator=basis.devices.product,
        dtype=figure.dtype or "bf16",
        tokens=figure.tokens,
        padded_tokens=figure.padded_tokens,
    )
    run = basis.run
    if run.shape is None or figure.basis != "steps+shape":
        return near
    counted = _of_count(json.dumps(run.shape, sort_keys=True), run.sequence_length)
    return (*_only(near, ("peak",)), *counted, *(guess for guess in near if guess.code == "padded_tokens"))


def _only(guesses: Iterable[Hypothesis], kinds: tuple[str, ...]) -> list[Hypothesis]:
    return [guess for guess in guesses if guess.kind in kinds]


@lru_cache(maxsize=1024)
def _of_count(text: str, sequence_length: int | None) -> tuple[Hypothesis, ...]:
    """Other counts of a shape, by value because they cost more to count than to look up."""
    try:
        shape = shape_of(text)
        length = sequence_length or shape.seq_len
        if not length:
            return hypotheses(None)
        run = CountedRun(seq_len=length, documents=Documents.unpacked(length))
        return hypotheses(Counted(shape=replace(shape, stacks=()), run=run))
    except ShapeError:
        return hypotheses(None)
