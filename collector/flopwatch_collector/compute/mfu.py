"""MFU of a job from its steps: work over what its GPUs could have done, series, and useful time.

MFU = FLOPs per token x tokens per second / (GPUs x dense peak FLOP/s of one GPU). Where the GPUs change, each
GPU-second counts with the peak of the GPU that gave it.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flopwatch_collector.compute.devices import Devices
from flopwatch_collector.compute.runs import Run, Work, work_of
from flopwatch_collector.compute.timeline import JobTimeline
from flopwatch_collector.model import Columns

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class JobBasis:
    """What a job's MFU is made from, apart from its steps."""

    run: Run
    devices: Devices
    work: Work
    shared: bool = False
    """Whether the job shares its GPUs: then it has no MFU against their full peak."""

    @property
    def reason(self) -> str | None:
        """Why there can be no MFU; None when only steps are needed."""
        if self.work.reason is not None:
            return self.work.reason
        if self.devices.reason is not None:
            return self.devices.reason
        return "unknown_gpu" if self.devices.total_flops is None else None

    @property
    def full_peak(self) -> float | None:
        """FLOP/s of all GPUs as they are now, when the job has them to itself."""
        return None if self.shared else self.devices.total_flops

    def gpus(self, begin: Floats, end: Floats, launch: Floats | None = None) -> Floats:
        """GPUs of the run over intervals: its world size then, else what it held then, else as now.

        ``launch``: of every interval, which launch it is to its source; NaN unknown.
        """
        return self._gpus(self.devices.held.over(begin, end)[0], launch)

    def _gpus(self, held: Floats, launch: Floats | None) -> Floats:
        """The same, where it is known how many GPUs were held."""
        now = np.full(held.size, float(self.devices.gpus or 0))
        fixed = self.devices.gpus_basis == "world_size" and self.devices.gpus != self.devices.leased
        moving = now if fixed else np.where(held > 0, held, now)
        if launch is None or len(set(self.run.worlds.values())) < 2:
            return moving
        worlds = self.run.worlds
        told = np.array([worlds.get(int(each), np.nan) if each >= 0 else np.nan for each in launch])
        return np.where(np.isfinite(told), told, moving)

    def possible(self, begin: Floats, end: Floats, launch: Floats | None = None) -> Floats:
        """FLOPs that the run's GPUs could have done at their dense peaks over intervals; NaN where unknown."""
        peak = self.devices.peak_flops
        if peak is None or self.shared or not self.devices.gpus:
            return np.full(begin.size, np.nan)
        gpus, held = self.devices.held.over(begin, end)
        return self._gpus(gpus, launch) * np.where(held > 0, held, peak) * (end - begin)


def basis_of(run: Run, devices: Devices, *, shared: bool = False) -> JobBasis:
    """The basis of a job's MFU from its joined facts and its GPUs."""
    return JobBasis(run=run, devices=devices, work=work_of(run), shared=shared)


def tokens_of(steps: Columns, run: Run) -> Floats:
    """Tokens of every step record, padding left out: declared, as recorded, or tokens a step x steps covered."""
    each = run.step_tokens
    told = np.full(steps["ts"].size, np.nan) if each is None else each * steps["steps_covered"]
    if run.declares_step_tokens and each is not None:
        return told
    return np.where(np.isnan(steps["tokens"]), told, steps["tokens"])


def document_length(steps: Columns, tokens: Floats) -> tuple[float | None, npt.NDArray[np.bool_]]:
    """(mean document length of a token, which steps told it) of packed data; None where no step did."""
    squared = steps["sum_squared_document_tokens"]
    packed = np.isfinite(squared) & (tokens > 0)
    if not packed.any():
        return None, packed
    return max(1.0, float(squared[packed].sum() / tokens[packed].sum())), packed


def flops_of(steps: Columns, basis: JobBasis) -> tuple[Floats, Floats]:
    """Model FLOPs of every step record, causal and PaLM; NaN where unknown."""
    tokens = tokens_of(steps, basis.run)
    causal, palm = basis.work.causal, basis.work.palm
    nothing = np.full(tokens.size, np.nan)
    result = nothing if causal is None else tokens * causal
    length, packed = document_length(steps, tokens)
    if basis.work.basis == "steps+shape" and length is not None:
        inside = work_of(basis.run, length).causal
        result = np.where(packed, tokens * (np.nan if inside is None else inside), result)
    return result, nothing if palm is None else tokens * palm


def possible_of(steps: Columns, basis: JobBasis) -> Floats:
    """FLOPs that the GPUs could have done over the wall time of every step record; NaN where unknown."""
    return basis.possible(steps["begin"], steps["ts"], steps["launch_session"])


def useful_seconds(steps: Columns, basis: JobBasis) -> Floats:
    """Seconds of every step record that full use of the peak would have needed; NaN where unknown."""
    result = np.full(steps["ts"].size, np.nan)
    if basis.full_peak is None or basis.reason is not None or not steps["ts"].size:
        return result
    possible, length = possible_of(steps, basis), steps["ts"] - steps["begin"]
    known = possible > 0
    flops, _ = flops_of(steps, basis)
    result[known] = flops[known] * length[known] / possible[known]
    instant = ~known & np.isfinite(possible)
    result[instant] = flops[instant] / basis.full_peak
    return result


def mfu_series(timeline: JobTimeline, basis: JobBasis, edges: Floats) -> Floats:
    """Step MFU of kept steps between consecutive ``edges`` (seconds); steps count by the time they overlap.

    NaN where no step with known work lies.
    """
    steps = timeline.kept()
    useful = useful_seconds(steps, basis)
    known = np.isfinite(useful) & (steps["ts"] > steps["begin"])
    begin, end = steps["begin"][known], steps["ts"][known]
    share = useful[known] / (end - begin)
    done = np.diff(_cumulative(begin, end, share, edges))
    spent = np.diff(_cumulative(begin, end, np.ones(begin.size), edges))
    result = np.full(edges.size - 1, np.nan)
    np.divide(done, spent, out=result, where=spent > 1e-9)
    return result


def _cumulative(begin: Floats, end: Floats, rate: Floats, at: Floats) -> Floats:
    """The integral up to each time of a function that is ``rate`` within disjoint, ordered intervals, else 0."""
    total = np.concatenate(([0.0], np.cumsum(rate * (end - begin))))
    index = np.searchsorted(begin, at, side="right")
    if not begin.size:
        return np.zeros(at.size)
    last = np.maximum(index - 1, 0)
    inside = np.clip(at - begin[last], 0.0, end[last] - begin[last]) * rate[last]
    return np.where(index > 0, total[last] + inside, 0.0)


def wall_ratio(rollups: Columns, flops: str = "kept_flops") -> float | None:
    """Wall MFU from rollup rows of a job: kept FLOPs over all that its GPUs could have done while leased.

    ``flops``: ``kept_palm_flops`` for the figure by PaLM's convention.
    """
    done, peak = rollups[flops], rollups["leased_peak_flop_seconds"]
    could = known_sum(peak)
    return known_sum(done) / could if could > 0.0 else None


def known_sum(values: Floats) -> float:
    """The sum of what is known; 0 where nothing is."""
    return float(values.sum(where=~np.isnan(values)))
