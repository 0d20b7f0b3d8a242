"""Two runs of the same work set beside each other, one on own GPUs and one in a cloud: cost, speed, losses.

Only like is compared: shape, batch, sequence length, number format and convention must be the same and known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flopwatch.efficiency import goodput_of

HOUR_MILLISECONDS = 3_600_000.0
MUST_MATCH = ("shape", "global_batch_size", "sequence_length", "dtype", "convention")


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One run; ``None`` is not known."""

    job_id: str
    name: str
    gpu_model: str | None
    gpus: int | None
    alike: Mapping[str, Any]
    """``MUST_MATCH`` by name."""
    tokens: float | None
    """Trained tokens of kept steps."""
    gpu_hours: float
    """GPU time that the run held."""
    flops_per_token: float | None
    peak_flops: float | None
    mfu: float | None
    wall_mfu: float | None
    goodput: float | None
    """Kept step time over billable time."""
    step_seconds: Mapping[str, float | None]
    """``p50``, ``p90``, ``p99``."""
    data_wait_ratio: float | None
    """Of the time it held its GPUs."""
    checkpoint_ratio: float | None
    losses: Sequence[tuple[float, float]]
    """(tokens, loss), in order of tokens."""
    price_per_gpu_hour: float | None = None

    @property
    def spread(self) -> float | None:
        """How much slower the slow steps are: (p90 - p50) / p50."""
        usual, slow = self.step_seconds.get("p50"), self.step_seconds.get("p90")
        return None if not usual or slow is None else (slow - usual) / usual

    @property
    def money(self) -> float | None:
        """What the run cost."""
        return None if self.price_per_gpu_hour is None else self.price_per_gpu_hour * self.gpu_hours

    @property
    def per_trillion_tokens(self) -> float | None:
        """Money per 10^12 trained tokens."""
        return None if self.money is None or not self.tokens else self.money / self.tokens * 1e12

    @property
    def per_useful_eflop(self) -> float | None:
        """Money per 10^18 model FLOPs of kept steps."""
        if self.money is None or not self.tokens or not self.flops_per_token:
            return None
        return self.money / (self.tokens * self.flops_per_token) * 1e18

    @property
    def kept_flops(self) -> float | None:
        """Kept FLOP/s of one GPU: MFU x goodput x peak."""
        if self.mfu is None or self.goodput is None or self.peak_flops is None:
            return None
        return self.mfu * self.goodput * self.peak_flops


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """Why two runs cannot be compared: something differs, or is not known of ``unknown_of``."""

    name: str
    """One of ``MUST_MATCH``."""
    unknown_of: tuple[str, ...]
    """Job ids; empty where both are known and differ."""
    one: str
    other: str
    """Both values, short."""


def differences(one: Side, other: Side) -> tuple[Difference, ...]:
    """In what the runs differ, and what is not known of one of them; nothing when they are alike."""
    found = []
    for name in MUST_MATCH:
        mine, theirs = one.alike.get(name), other.alike.get(name)
        unknown_of = tuple(side.job_id for side, value in ((one, mine), (other, theirs)) if value is None)
        if unknown_of or mine != theirs:
            found.append(Difference(name=name, unknown_of=unknown_of, one=_short(mine), other=_short(theirs)))
    return tuple(found)


def unlike(one: Side, other: Side) -> tuple[str, ...]:
    """The differences in words."""
    return tuple(
        f"{each.name} of {' and '.join(each.unknown_of)} is not known"
        if each.unknown_of
        else f"{each.name} differs: {each.one} against {each.other}"
        for each in differences(one, other)
    )


def _short(value: object) -> str:
    if not isinstance(value, Mapping):
        return str(value)
    text = ", ".join(f"{key}={part}" for key, part in sorted(value.items()))
    return text if len(text) <= 80 else text[:79] + "…"


def loss_at_equal_tokens(one: Side, other: Side) -> tuple[float, float, float] | None:
    """(tokens, loss of the one, loss of the other) at the most tokens that both have seen; None without losses."""
    if not one.losses or not other.losses:
        return None
    tokens = min(one.losses[-1][0], other.losses[-1][0])
    if tokens < max(one.losses[0][0], other.losses[0][0]):
        return None
    return tokens, _at(one.losses, tokens), _at(other.losses, tokens)


def _at(points: Sequence[tuple[float, float]], tokens: float) -> float:
    """The loss between its two neighbours."""
    before = max((point for point in points if point[0] <= tokens), default=points[0])
    after = min((point for point in points if point[0] >= tokens), default=points[-1])
    if after[0] == before[0]:
        return before[1]
    share = (tokens - before[0]) / (after[0] - before[0])
    return before[1] + share * (after[1] - before[1])


def side_of(job: Mapping[str, Any], facts: Mapping[str, Any], price: float | None) -> Side:
    """A run from the Job page's answer and its facts (name → the value that counts)."""
    row, ledger = job["row"], job["ledger"]
    held = ledger["capacity_gpu_milliseconds"]
    buckets = _buckets(ledger)
    billable = (ledger["billable_ratio"] or 0.0) * held
    a_step = _tokens_per_step(facts)
    mfu = None if row["mfu"]["basis"] == "hardware" else row["mfu"]["value_ratio"]
    kept = sum(session["steps"] - session["lost_steps"] for session in job["sessions"])
    return Side(
        job_id=row["job_id"],
        name=row["name"],
        gpu_model=row["gpu_model"],
        gpus=row["gpus"],
        alike={
            "shape": _shape(job["shape"], facts),
            "global_batch_size": facts.get("global_batch_size"),
            "sequence_length": facts.get("sequence_length"),
            "dtype": facts.get("dtype"),
            "convention": row["mfu"]["convention"],
        },
        tokens=None if a_step is None or not kept else a_step * kept,
        gpu_hours=held / HOUR_MILLISECONDS,
        flops_per_token=row["mfu"]["flops_per_token"],
        peak_flops=row["mfu"]["peak_flops"],
        mfu=mfu,
        wall_mfu=row["wall_mfu_ratio"],
        goodput=goodput_of(mfu, row["wall_mfu_ratio"], held / billable if billable else None),
        step_seconds=job["step_percentiles"],
        data_wait_ratio=buckets.get("DATA_WAIT", 0) / held if held else None,
        checkpoint_ratio=buckets.get("CKPT", 0) / held if held else None,
        losses=_losses(job["steps"], a_step),
        price_per_gpu_hour=price,
    )


def _shape(shape: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any] | None:
    """The model's shape without its name; of a run that has none its parameter count."""
    own = {key: value for key, value in shape.items() if key != "name"}
    if own or facts.get("parameter_count") is None:
        return own or None
    return {"parameter_count": facts["parameter_count"]}


def _buckets(ledger: Mapping[str, Any]) -> dict[str, int]:
    """GPU milliseconds by bucket, whatever the reason."""
    result: dict[str, int] = {}
    for amount in ledger["classes"]:
        for label, milliseconds in amount["buckets"].items():
            name = label.partition(":")[0]
            result[name] = result.get(name, 0) + milliseconds
    return result


def _tokens_per_step(facts: Mapping[str, Any]) -> float | None:
    told, batch, length = (
        facts.get(name) for name in ("tokens_per_step", "global_batch_size", "sequence_length")
    )
    if told is not None:
        return float(told)
    return None if batch is None or length is None else float(batch) * float(length)


def _losses(steps: Mapping[str, Any], a_step: float | None) -> tuple[tuple[float, float], ...]:
    """Of a step that was done twice the newer loss."""
    columns = steps["columns"]
    if a_step is None or "loss" not in columns or "step" not in columns:
        return ()
    pairs = zip(columns["step"], columns["loss"], strict=True)
    newest = {step: loss for step, loss in pairs if step is not None and loss is not None}
    return tuple((step * a_step, loss) for step, loss in sorted(newest.items()))


def document(one: Side, other: Side, currency: str | None) -> dict[str, Any]:
    """The comparison as JSON: each run, and what follows from both."""
    losses = loss_at_equal_tokens(one, other)
    both = (one.kept_flops, other.kept_flops)
    rates = (one.per_trillion_tokens, other.per_trillion_tokens)
    return {
        "currency": currency,
        "jobs": [_entry(side) for side in (one, other)],
        "efficiency_ratio": both[0] / both[1] if both[0] is not None and both[1] else None,
        "loss_at_equal_tokens": None
        if losses is None
        else {"tokens": losses[0], "losses": list(losses[1:]), "difference": losses[1] - losses[2]},
        "cheaper": None
        if rates[0] is None or rates[1] is None
        else (one if rates[0] <= rates[1] else other).job_id,
    }


def _entry(side: Side) -> dict[str, Any]:
    return {
        "job_id": side.job_id,
        "name": side.name,
        "gpu_model": side.gpu_model,
        "gpus": side.gpus,
        "gpu_hours": side.gpu_hours,
        "tokens": side.tokens,
        "step_mfu": side.mfu,
        "wall_mfu": side.wall_mfu,
        "goodput": side.goodput,
        "peak_tflops": None if side.peak_flops is None else side.peak_flops / 1e12,
        "step_seconds": dict(side.step_seconds),
        "step_time_spread": side.spread,
        "data_wait_ratio": side.data_wait_ratio,
        "checkpoint_ratio": side.checkpoint_ratio,
        "price_per_gpu_hour": side.price_per_gpu_hour,
        "cost": side.money,
        "per_trillion_tokens": side.per_trillion_tokens,
        "per_useful_eflop": side.per_useful_eflop,
    }
