"""Progress bars of tqdm: how far, after how long."""

import re
from dataclasses import dataclass

from flopwatch_agent.trainers.numbers import NUMBER, parse_duration, parse_number

_BAR = re.compile(
    r"(?P<n>\d+)/(?P<total>\d+) \[(?P<elapsed>[\d:]+)<[^\],]*, *[^\],]*?(?:UNIT/s|s/UNIT)(?P<postfix>[^\]]*)\]".replace(
        "UNIT", r"(?:it|iters?|steps?|ba|batch(?:es)?|updates?)"
    )
)
"""Counts of steps: a bar of samples, tokens or bytes tells another story."""
_RICH = re.compile(
    r"\bEpoch (?P<epoch>\d+)/\d+\W+(?P<n>\d+)/(?P<total>\d+) (?P<elapsed>\d+:\d\d:\d\d) \u2022 [\d:-]+"
    r" +[\d.]+it/s(?P<postfix>[^\u2022]*)"
)
"""Lightning's RichProgressBar."""
_TRAINING = re.compile(
    r"^\W*(?:(?:[Ss]teps?|Training(?: [Ee]poch)?|Train(?:ing)? [Ee]poch|Epoch \d+(?:/\d+)?|[Tt]rain(?:ing)?)\b"
    r"[^|\[]*:\s"
    r"|\d+\|\d+\|Loss: |\d+/\d+\s+[\d.]+G\s[^|\[]*:\s)"
)
"""The last form is YOLO's: epoch, GPU memory, losses, instances and image size."""
_PLAIN = re.compile(r"[^A-Za-z]*$")
_MICRO = "Train step of epoch"
"""OpenRLHF's description: one update a micro batch, whatever the accumulation is."""
_EVALUATION = re.compile(r"[Ee]val|[Vv]alid|[Tt]est")
_EPOCH = re.compile(r"[Ee]poch:? (\d+)|^\W*(\d+)/\d+\s+[\d.]+G\s")
_NUMBERED = re.compile(rf"\b(\d+)\|(\d+)\|Loss: ({NUMBER})")
"""torchtune's description: epoch, step over all epochs, loss."""
_GLOBAL_STEP = re.compile(r"\bglobal_step=(\d+)(?:\.0*)?[,\]]")
_LOSS = re.compile(
    rf"\(loss: ({NUMBER})\)|\b(?:train_|step_|avr_)?loss(?:_step|/train/total)?[=:] ?({NUMBER})"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """One drawing of a bar."""

    n: int
    total: int
    elapsed_seconds: float
    training: bool
    """Its description says that it counts training steps; or it has none and shows a loss."""
    plain: bool = False
    """It has no description at all, as those of the HF Trainer."""
    epoch: int | None = None
    loss: float | None = None
    """As the description says it; what stands behind a bar without one may still be that of the step before."""
    step: int | None = None
    """The step over all epochs, where the description tells it."""
    micro: bool = False
    """It counts micro batches, not optimizer steps."""


def read_bars(text: str) -> list[Bar]:
    """The drawings in a line: one, or several that were torn together."""
    bars = []
    start = 0
    for found in _BAR.finditer(text):
        description = text[start : found.start()]
        start = found.end()
        elapsed = parse_duration(found["elapsed"])
        if elapsed is not None:
            bars.append(_bar(found, description, elapsed))
    return bars or _rich_bars(text)


def _rich_bars(text: str) -> list[Bar]:
    found = _RICH.search(text)
    elapsed = parse_duration(found["elapsed"]) if found is not None else None
    if found is None or elapsed is None:
        return []
    loss = _LOSS.search(found["postfix"])
    printed = loss[1] or loss[2] if loss else None
    bar = Bar(
        n=int(found["n"]), total=int(found["total"]), elapsed_seconds=elapsed, training=True,
        epoch=int(found["epoch"]), loss=parse_number(printed) if printed else None,
    )  # fmt: skip
    return [bar]


def counts_training(text: str) -> bool:
    """Whether the text looks like a training bar; cheaper than reading it."""
    return _TRAINING.match(text) is not None or ("loss" in text and "/" in text)


def _bar(found: re.Match[str], description: str, elapsed: float) -> Bar:
    epoch = _EPOCH.search(description)
    numbered = _NUMBERED.search(description)
    loss = _LOSS.search(description) or _LOSS.search(found["postfix"])
    printed = numbered[3] if numbered else loss[1] or loss[2] if loss else None
    plain = _PLAIN.match(description) is not None
    training = _TRAINING.match(description) is not None or (plain and printed is not None)
    return Bar(
        n=int(found["n"]),
        total=int(found["total"]),
        elapsed_seconds=elapsed,
        training=training and not _EVALUATION.search(description),
        plain=plain,
        micro=_MICRO in description,
        epoch=int(epoch[1] or epoch[2]) if epoch else None,
        loss=parse_number(printed) if printed and not plain else None,
        step=_step(numbered, _GLOBAL_STEP.search(found["postfix"] + "]")),
    )


def _step(numbered: re.Match[str] | None, printed: re.Match[str] | None) -> int | None:
    if numbered is not None:
        return int(numbered[2])
    return int(printed[1]) if printed is not None else None


def sampling_interval(total: int) -> int:
    """Every how many updates a row is made of a bar: the largest divisor of its total up to 5."""
    return next((step for step in (5, 4, 3, 2) if total % step == 0), 5)
