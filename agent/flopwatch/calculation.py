"""One run counted by every convention: the figure, the PaLM figure beside it, HFU apart, findings, standing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flopwatch.accelerator import Accelerator
from flopwatch.conventions import CONVENTIONS, DEFAULT_CONVENTION, Convention
from flopwatch.documents import Documents, StackTokens
from flopwatch.exact import Run
from flopwatch.flops import Recompute, flops_per_token, hardware_flops_per_token
from flopwatch.mfu import mfu_ratio
from flopwatch.mfu_findings import Evidence, Hypothesis, MfuFinding, findings
from flopwatch.mfu_hypotheses import Counted, hypotheses
from flopwatch.mfu_standing import Standing, standing
from flopwatch.shape import ModelShape


@dataclass(frozen=True, kw_only=True, slots=True)
class Inputs:
    """What a calculation is made from."""

    shape: ModelShape
    accelerator: Accelerator
    gpu_name: str
    gpus: int
    seq_len: int
    tokens_per_second: float
    dtype: str
    convention: str = DEFAULT_CONVENTION
    recompute: Recompute = "none"
    documents: Documents | None = None
    stacks: Mapping[str, StackTokens] = field(default_factory=dict)
    reported_ratio: float | None = None
    reported_flops_per_gpu: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Count:
    """The run in one convention."""

    convention: Convention
    flops_per_token: float
    ratio: float
    """MFU; HFU-like where the convention counts recompute."""
    against_chosen: float
    """This count over the chosen one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Calculation:
    """The figure, and everything needed to check it."""

    inputs: Inputs
    chosen: Count
    palm: Count
    peak_flops: float
    bf16_ratio: float | None
    """MFU against the bf16 peak, for runs in fp8 or fp4."""
    hfu_ratio: float | None
    counts: tuple[Count, ...]
    findings: tuple[MfuFinding, ...]
    standing: Standing

    def to_dict(self) -> dict[str, Any]:
        """The calculation as JSON values; ratios are 0 to 1."""
        inputs, chosen = self.inputs, self.chosen
        return {
            "model": inputs.shape.name,
            "shape": inputs.shape.to_dict(),
            "gpu": inputs.gpu_name,
            "gpu_product": inputs.accelerator.name,
            "gpus": inputs.gpus,
            "seq_len": inputs.seq_len,
            "tokens_per_second": inputs.tokens_per_second,
            "mfu_ratio": chosen.ratio,
            "convention": chosen.convention.name,
            "convention_tag": chosen.convention.tag,
            "flops_per_token": chosen.flops_per_token,
            "flops_per_gpu_second": chosen.ratio * self.peak_flops,
            "peak_flops": self.peak_flops,
            "peak_dtype": inputs.dtype,
            "peak_is_dense": True,
            "peak_source": inputs.accelerator.source,
            "palm_mfu_ratio": self.palm.ratio,
            "mfu_ratio_against_bf16_peak": self.bf16_ratio,
            "hfu_ratio": self.hfu_ratio,
            "recompute": inputs.recompute,
            "conventions": [_count_values(count) for count in self.counts],
            "findings": [_finding_values(finding) for finding in self.findings],
            "standing": self.standing.sentence(chosen.ratio, inputs.accelerator.name, inputs.dtype),
        }


def _count_values(count: Count) -> dict[str, Any]:
    return {
        "convention": count.convention.name,
        "formula": count.convention.formula,
        "source": count.convention.source,
        "flops_per_token": count.flops_per_token,
        "ratio": count.ratio,
        "counts_recompute": count.convention.counts_recompute,
        "against_chosen": count.against_chosen,
    }


def _finding_values(finding: MfuFinding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "factor": finding.factor,
        "text": finding.text,
        "explained_by": [[guess.code for guess in group] for group in finding.explained_by],
    }


def calculate(inputs: Inputs) -> Calculation:
    """The run in the chosen convention and in all others.

    Raises:
        ValueError: the GPU has no peak in the number format, a number is not above 0, or a stack's tokens are missing.
    """
    peak = inputs.accelerator.peak_flops(inputs.dtype)
    if peak is None:
        raise ValueError(f"{inputs.accelerator.name} has no verified dense peak in {inputs.dtype}")
    counts = {name: _count(inputs, name, peak) for name in CONVENTIONS}
    chosen = counts[inputs.convention]
    evidence = Evidence(
        reported_ratio=inputs.reported_ratio,
        reported_flops_per_gpu=inputs.reported_flops_per_gpu,
        hypotheses=_hypotheses(inputs),
    )
    return Calculation(
        inputs=inputs,
        chosen=chosen,
        palm=counts["palm"],
        peak_flops=peak,
        bf16_ratio=_against_bf16(inputs, chosen, peak),
        hfu_ratio=_hfu(inputs, peak),
        counts=tuple(counts.values()),
        findings=findings(chosen.ratio, chosen.ratio * peak, peak, evidence),
        standing=standing(inputs.shape, inputs.accelerator, inputs.dtype),
    )


def _count(inputs: Inputs, name: str, peak: float) -> Count:
    """The run in one convention."""
    own, chosen = (
        flops_per_token(inputs.shape, inputs.seq_len, each, documents=inputs.documents, stacks=inputs.stacks)
        for each in (name, inputs.convention)
    )
    return Count(
        convention=CONVENTIONS[name],
        flops_per_token=own,
        ratio=_ratio(inputs, own, peak),
        against_chosen=own / chosen,
    )


def _ratio(inputs: Inputs, flops: float, peak: float) -> float:
    return mfu_ratio(flops, tokens=inputs.tokens_per_second, seconds=1.0, gpus=inputs.gpus, peak_flops=peak)


def _against_bf16(inputs: Inputs, chosen: Count, peak: float) -> float | None:
    """MFU against the bf16 peak, where the matmuls ran in a narrower format."""
    bf16 = inputs.accelerator.peak_flops("bf16")
    if bf16 is None or inputs.dtype not in ("fp8", "fp4"):
        return None
    return chosen.ratio * peak / bf16


def _hfu(inputs: Inputs, peak: float) -> float | None:
    """HFU, where recompute was run; the shape's second stacks are not recomputed here."""
    if inputs.recompute == "none" or inputs.shape.stacks:
        return None
    flops = hardware_flops_per_token(
        inputs.shape, inputs.seq_len, inputs.recompute, inputs.convention, documents=inputs.documents
    )
    return _ratio(inputs, flops, peak)


def _hypotheses(inputs: Inputs) -> tuple[Hypothesis, ...]:
    run = Run(
        seq_len=inputs.seq_len,
        documents=inputs.documents or Documents.unpacked(inputs.seq_len),
        stacks=inputs.stacks,
    )
    counted = Counted(shape=inputs.shape, run=run, convention=inputs.convention)
    return hypotheses(counted, accelerator=inputs.accelerator, dtype=inputs.dtype)
