"""Doubts about an MFU, each with the factor that explains it: above the possible, or unlike what the trainer prints."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from math import isclose, log, prod
from typing import Literal, TypeAlias

ONE_FACTOR_TOLERANCE = 0.012
TWO_FACTOR_TOLERANCE = 0.006
MOST_EXPLANATIONS = 3
ACTIVITY_MARGIN = 0.05
"""How far an MFU may stand above tensor activity before it is a finding: counters and steps are not one window."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hypothesis:
    """One known way to get a figure wrong: the other figure is ``factor`` times the right one."""

    code: str
    factor: float
    text: str
    kind: Literal["count", "tokens", "peak"] = "count"
    """What differs. Two hypotheses of one kind exclude each other; one of the peak says nothing of FLOP/s."""
    subject: str = ""
    """What a surface needs besides code and factor: the wrong device, or ``full`` for attention in full as well."""


Explanation: TypeAlias = tuple[Hypothesis, ...]
"""Hypotheses that fit together: their factors multiply."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MfuFinding:
    """A doubt shown beside an MFU, with the factor between the two figures and what explains it."""

    code: str
    text: str
    factor: float
    explained_by: tuple[Explanation, ...] = ()
    """Best first; more than one where the same factor has several known causes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What else is known of the same run and window; None is unknown."""

    tensor_active_ratio: float | None = None
    reported_ratio: float | None = None
    """MFU as the trainer prints it."""
    reported_flops_per_gpu: float | None = None
    """FLOP/s of one GPU as the trainer prints it."""
    reported_peak_flops: float | None = None
    """Peak that the trainer says it divides by."""
    hypotheses: tuple[Hypothesis, ...] = ()
    """Known ways to count this run differently: see ``mfu_hypotheses.hypotheses``."""


def findings(
    ratio: float, flops_per_gpu: float, peak_flops: float, evidence: Evidence
) -> tuple[MfuFinding, ...]:
    """Every doubt about an MFU of ``ratio`` with ``flops_per_gpu`` over ``peak_flops``, most serious first."""
    found = [_above_peak(ratio), _above_activity(ratio, evidence.tensor_active_ratio)]
    reported_peak = _reported_peak(evidence)
    if reported_peak is not None:
        found.append(_peaks_differ(peak_flops, reported_peak, evidence))
    if evidence.reported_flops_per_gpu is not None:
        factor = evidence.reported_flops_per_gpu / flops_per_gpu
        counts = tuple(guess for guess in evidence.hypotheses if guess.kind != "peak")
        found.append(_differs("flops_differ", "FLOP/s", factor, counts))
    elif evidence.reported_ratio is not None:
        found.append(_differs("mfu_differs", "MFU", evidence.reported_ratio / ratio, evidence.hypotheses))
    return tuple(item for item in found if item is not None)


def _above_peak(ratio: float) -> MfuFinding | None:
    if ratio <= 1.0:
        return None
    text = f"MFU is {ratio:.1%}, above 100 %: the peak, the model's shape or the token count is wrong"
    return MfuFinding(code="above_peak", text=text, factor=ratio)


def _above_activity(ratio: float, active: float | None) -> MfuFinding | None:
    """More model FLOPs than the tensor pipes were busy for."""
    if active is None or active <= 0 or ratio <= active * (1 + ACTIVITY_MARGIN):
        return None
    text = (
        f"MFU is {ratio:.1%} but tensor pipes were active {active:.1%}: the FLOP count or the peak is wrong"
    )
    return MfuFinding(code="above_tensor_activity", text=text, factor=ratio / active)


def _reported_peak(evidence: Evidence) -> float | None:
    """The peak the trainer divides by: as it says, else FLOP/s over MFU."""
    if evidence.reported_peak_flops is not None:
        return evidence.reported_peak_flops
    if evidence.reported_flops_per_gpu and evidence.reported_ratio:
        return evidence.reported_flops_per_gpu / evidence.reported_ratio
    return None


def _peaks_differ(peak_flops: float, reported: float, evidence: Evidence) -> MfuFinding | None:
    factor = peak_flops / reported
    if isclose(factor, 1.0, rel_tol=ONE_FACTOR_TOLERANCE):
        return None
    guesses = explain(factor, [guess for guess in evidence.hypotheses if guess.kind == "peak"])
    reason = in_words(guesses, "a peak of no device in the table")
    text = f"the trainer divides by {reported / 1e12:.1f} TFLOP/s, not by {peak_flops / 1e12:.1f}: {reason}"
    return MfuFinding(code="peak_differs", text=text, factor=factor, explained_by=guesses)


def _differs(code: str, what: str, factor: float, hypotheses: Iterable[Hypothesis]) -> MfuFinding | None:
    """The trainer's figure against ours; nothing when they agree within rounding."""
    if isclose(factor, 1.0, rel_tol=ONE_FACTOR_TOLERANCE):
        return None
    guesses = explain(factor, hypotheses)
    reason = in_words(guesses, "no known cause fits")
    text = f"the trainer prints {factor:.3f} times this {what}: {reason}"
    return MfuFinding(code=code, text=text, factor=factor, explained_by=guesses)


def explain(factor: float, hypotheses: Iterable[Hypothesis]) -> tuple[Explanation, ...]:
    """What fits a factor, the best first: one hypothesis each, else pairs of different kinds; empty when none fits."""
    guesses = [guess for guess in hypotheses if not isclose(guess.factor, 1.0, rel_tol=1e-3)]
    for size, tolerance in ((1, ONE_FACTOR_TOLERANCE), (2, TWO_FACTOR_TOLERANCE)):
        fitting = sorted(
            (round(abs(log(factor / prod(guess.factor for guess in group))), 3), index, group)
            for index, group in enumerate(combinations(guesses, size))
            if len({guess.kind for guess in group}) == size
        )
        near = tuple(group for error, _, group in fitting if error <= tolerance)
        if near:
            return near[: MOST_EXPLANATIONS + 1 - size]
    return ()


def in_words(explanations: tuple[Explanation, ...], otherwise: str) -> str:
    """The explanations as one phrase, ``otherwise`` when there is none."""
    return ", or ".join(" and ".join(guess.text for guess in group) for group in explanations) or otherwise
