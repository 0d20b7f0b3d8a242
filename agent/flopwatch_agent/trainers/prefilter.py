"""The cheap part: where in a block of bytes a trainer may have spoken.

Bytes in which none of a few literals stands are never split into lines. A literal that prose also uses carries
a guard: what must stand around it. A file that has not yet shown a trainer is searched for the first signs
only; then for headers, rows and marks, first of all in the part kept from before.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

_NUMBER = rb"[-+]?\d|[-+]?nan|[-+]?inf|[-+]?NAN|[-+]?INF"


@dataclass(frozen=True, slots=True)
class Anchor:
    """A literal that makes a line worth reading."""

    literal: bytes
    guard: re.Pattern[bytes] | None = None
    """Must match where the literal begins."""


def _guarded(literal: bytes, guard: bytes) -> Anchor:
    return Anchor(literal, re.compile(re.escape(literal) + guard))


SIGNS = (
    _guarded(
        b"loss",
        rb"[\w/]*(?: scale)?['\"]?(?:\)?\s*[:=]\s*['\"]?(?:np\.\w+\()?(?:"
        + _NUMBER
        + rb")|:? train: |\s+(?:"
        + _NUMBER
        + rb"))",
    ),
    _guarded(b"Loss", rb":?\s+(?:" + _NUMBER + rb")"),
    _guarded(b"it/s", rb"(?:[\],\s]|$)"),
    _guarded(b"s/it", rb"[\],\s]"),
    _guarded(b"train_time:", rb"\d"),
    _guarded(b", skipped=", rb"\d"),
    Anchor(b"flopwatch: {"),
    Anchor(b"throughput/"),
    Anchor(b"'param_norm': "),
    Anchor(b"- arguments -"),
    _guarded(b"otal step time: ", rb"\d"),
    _guarded(b"; acc", rb"\S{0,16}:\s*\d"),
    _guarded(b" words/s", rb"\s"),
)
"""The first signs of a trainer: every family shows one of them with its first rows, or in its header."""

ROW_ANCHORS = (
    _guarded(b"time per iteration (", rb"m?s\):?\s*\d"),
    Anchor(b"{'"),
    Anchor(b"SamplesPerSec="),
    Anchor(b"Step Time :"),
    _guarded(b"[step=", rb"\d"),
    _guarded(b"[batch=", rb"\d"),
    _guarded(b"[token=", rb"\d"),
    _guarded(b"[sample=", rb"\d"),
    Anchor(b"'perf/"),
    _guarded(b"= Step ", rb"\d+/\d+ ="),
    _guarded(b"= Epoch ", rb"\d+/\d+ ="),
    _guarded(b"Epoch ", rb"\d+/\d+\s*(?:[\r\n\"]|\\[nr])"),
    Anchor(b"-End => Latency:"),
)
"""Beginnings of rows that have their sign further on."""

HEADER_ANCHORS = (
    _guarded(b" ..", rb"\.* \S"),
    _guarded(b"config", rb"s?:?\s*(?:\{\s*)?(?:[\r\n\"]|\\n)"),
    _guarded(b"Config", rb"(?:Container|uration)?(?: [\w{]+[^\n]{0,80})?(?:\(|:\s|\s\{|:?[\r\n\"]|:?\\n)"),
    Anchor(b"Args("),
    Anchor(b"unning with args"),
    Anchor(b"xperiment configuration"),
    Anchor(b"onfiguration Arguments"),
    _guarded(b"model:", rb"\s*[\r\n]"),
    _guarded(b"trainer:", rb"\s*[\r\n]"),
    _guarded(b"tarting with ", rb"\d"),
    _guarded(b"MEMBER: ", rb"\d"),
    _guarded(b"contains ", rb"[\d.]+[BM] parameters"),
    _guarded(b"Building ", rb"\w+ \S+ with \w+\("),
    Anchor(b"otal training steps"),
    Anchor(b"Arguments("),
    Anchor(b"onfig param"),
    Anchor(b"param_info"),
    Anchor(b"***** Running"),
    _guarded(b"parameters", rb"[^\n]{0,60}\d"),
    Anchor(b"total parameters"),
    _guarded(b"Params", rb"[^\n]{0,30}\d"),
    _guarded(b"params", rb"[^\n]{0,30}\d"),
    Anchor(b"PARAMS="),
    _guarded(b"orld", rb"[ _]?\(?[sS]ize"),
    _guarded(b"atch size", rb"[^\n]{0,60}\d"),
    _guarded(b"batch_size", rb"[^\n]{0,20}\d"),
    Anchor(b"tokens per iteration"),
    Anchor(b"okens / micro-batch"),
    _guarded(b"FLOP", rb"[Ss]"),
    Anchor(b"Flops/s:"),
    Anchor(b"Num_devices"),
    Anchor(b"padded vocab"),
    Anchor(b"Vocab size"),
    Anchor(b"vocab_size"),
    Anchor(b"equence length"),
    Anchor(b"num_processes"),
    Anchor(b"num_layers"),
    _guarded(b"channels C", rb"\s*\|"),
    Anchor(b"GPU: "),
    Anchor(b"| device "),
    Anchor(b"mesh with"),
    Anchor(b"ptimization steps"),
    Anchor(b"Num Epochs"),
    Anchor(b"Accumulation steps"),
    _guarded(b"training on ", rb"\d+ (?:GPUs|devices)"),
    Anchor(b"raining starts at step"),
    _guarded(b"tart", rb"(?:ing)? (?:training|job:)"),
    Anchor(b") Training started"),
    Anchor(b"rguments:"),
    Anchor(b"trainer in World"),
    Anchor(b"torch distributed with"),
    Anchor(b"istributed environment is initialized"),
    Anchor(b"Resuming training from"),
    Anchor(b"training ..."),
    Anchor(b"rom global step"),
    Anchor(b"checkpoint from"),
    _guarded(b"esum", rb"(?:ed|ing|e)[^\n]{0,80}\d"),
)
"""Where shape, batch, launch and resume are printed."""

MARK_ANCHORS = (
    _guarded(b"heckpoint", rb""),
    _guarded(b"valid", rb"(?:at|\s|_)"),
    _guarded(b"Valid", rb"at"),
    _guarded(b"val", rb"[_ ]?loss|\]"),
    _guarded(b"eval", rb""),
    _guarded(b"Eval", rb""),
    Anchor(b"verflow"),
    Anchor(b"OVERFLOW"),
)
"""What explains gaps; looked for only once a log has shown a step."""


PROOFS = (
    "- arguments -", "***** Running training", "model-parallel size: ", "Peak FLOPS", "'param_norm': ",
    "'loss/policy_avg'", "| PPO Epoch: ",
    "throughput/device/", "loss/train/total: ", "train/CE loss=", "timing_s/step:", "flopwatch: {", "Step Time :",
)  # fmt: skip
"""Literals that no other text has: a line with one of them is a trainer's."""

EVERYTHING = SIGNS + ROW_ANCHORS + HEADER_ANCHORS + MARK_ANCHORS


def wants(line: bytes, anchors: tuple[Anchor, ...]) -> bool:
    """Whether a single line holds one of the anchors."""
    ended = line + b"\n"
    for anchor in anchors:
        if anchor.literal in ended and (anchor.guard is None or anchor.guard.search(ended) is not None):
            return True
    return False


def positions(block: bytes, anchors: tuple[Anchor, ...]) -> list[int]:
    """Where the anchors stand in the block, ascending."""
    places: list[int] = []
    for anchor in anchors:
        if anchor.literal in block:
            places.extend(_hits(block, anchor))
    places.sort()
    return places


def _hits(block: bytes, anchor: Anchor) -> Iterator[int]:
    if anchor.guard is not None:
        for found in anchor.guard.finditer(block):
            yield found.start()
        return
    place = block.find(anchor.literal)
    while place >= 0:
        yield place
        place = block.find(anchor.literal, place + 1)


def next_position(places: list[int], start: int) -> int | None:
    """The first of the ascending ``places`` at or after ``start``."""
    index = bisect_left(places, start)
    return places[index] if index < len(places) else None
