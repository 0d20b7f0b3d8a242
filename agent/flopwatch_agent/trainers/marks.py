"""Lines that explain gaps and launches: evaluation, checkpoint, overflow, start, resume. A table."""

import re
from dataclasses import dataclass
from typing import Literal

from flopwatch_agent.trainers.literals import literals_of, may_fit

Kind = Literal["eval", "checkpoint", "generation", "launch", "resume", "skip"]


@dataclass(frozen=True, slots=True)
class MarkForm:
    """What such a line looks like. Groups: ``step`` (resume), ``seconds`` (how long it took)."""

    kind: Kind
    pattern: re.Pattern[str]
    literals: tuple[str, ...]
    """One of them stands in every such line."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """A line of one of these kinds."""

    kind: Kind
    step: int | None = None
    seconds: float | None = None
    done: bool = False
    """The line says that it is over, not that it begins."""
    said: str = ""
    """The line without what stands before it: the same on every rank."""


def _form(kind: Kind, pattern: str) -> MarkForm:
    form = re.compile(pattern)
    return MarkForm(kind, form, literals_of(form))


FORMS = (
    _form("eval", r"\bvalidation loss at iteration|\bvalidate step:|\*{3,} Running Evaluation|Running evaluation"),
    _form("eval", r"'eval_(?:loss|runtime)'|\beval_(?:ppl|loss|epoch_loss|metrics)\b|\[val\]|\bvalid on '"),
    _form("eval", r"\bstep \d+: train loss [\d.]+, val loss|\bval loss \d|\bval_loss:[\d.]|Validation bpb"),
    _form("eval",
        r"\[Eval batch=|Completed eval after|\bEvaluation completed in|\bevaluating Epoch|Validation(?:"
        r" DataLoader|:)"
    ),
    _form("eval",
        r"\bValidating: |Epoch\(val\)|Iter\(val\)|Evaluating (?:on|model)|Doing (?:first )?eval|Running"
        r" (?:final )?validation"
    ),
    _form("eval",
        r"\bComputing validation loss|\bEpoch \d+, validation: |\bEval Epoch: \d|\bValidation perplexity: |\depoch"
        r" results: |Evaluating perplexity|\[valid\] Ep\. \d"
    ),
    _form("checkpoint",
        r"[Ss]aving (?:\S+ ){0,3}checkpoint|[Ss]aving the checkpoint|[Cc]heckpoint saved|[Ss]aved"
        r" checkpoint"
    ),
    _form("checkpoint",
        r"successfully saved checkpoint|save[-_]checkpoint|Saving model checkpoint|Finished saving the"
        r" checkpoint.*?in (?P<seconds>[\d.]+) seconds"
    ),
    _form("checkpoint",
        r"[Cc]heckpoint (?:is )?(?:written|saved)|[Ss]aving (?:model|state|weights)? ?(?:checkpoint|to"
        r" .*checkpoint)"
    ),
    _form("launch",
        r"-{3,} arguments -{3,}|^\s*arguments:$|\*{3,} Running training \*{3,}|\bStarting job:"
        r"|\bStarting training loop"
    ),
    _form("launch",
        r"tokens per iteration will be|\bStarting (?:\w+ )?trainer in World|\bStart(?:ing)? training\b"
        r"|\[Start training\]"
    ),
    _form("launch",
        r"^ConfigContainer:|Running with (?:args|configs?): |\busing world size: \d"
        r"|initializing torch distributed with|Distributed environment is initialized"
    ),
    _form("resume", r"Training starts at step (?P<next>\d+)|\bResuming training from "),
    _form("resume",
        r"(?:successfully loaded|loaded|loading) checkpoint from .*? (?:at iteration|\[ t \d.*at"
        r" iteration) (?P<step>\d+)"
    ),
    _form("resume",
        r"Continuing training from global step (?P<step>\d+)|[Rr]esum\w* (?:\w+ ){0,4}(?:from|at)"
        r" (?:global )?(?:step|iteration) (?P<at>\d+)"
    ),
    _form("resume",
        r"start_iteration_step: (?P<start>[1-9]\d*)|[Rr]esum\w* .*?(?:checkpoint-|step[_"
        r" -]?)(?P<path>\d+)\b"
    ),
    _form("skip", r"gradient overflow detected|\bOVERFLOW!|overflow detected|skipping update due to"),
)  # fmt: skip

_SAID_CHARACTERS = 120
_SEARCHED_CHARACTERS = 2_000
_DONE = re.compile(
    r"successfully|[Ff]inished|completed|Completed|[Ss]aved checkpoint|checkpoint saved|runtime|validation loss at"
    r"|validate step|val[ _]loss|Validation bpb|eval_|\[val\]|valid on|\(after save_checkpoint"
)
"""The line comes when it is over: it tells a result or says so."""


def read_mark(text: str) -> list[Mark]:
    """The marks of a line, one of a kind: the one that says most. Most lines have none.

    Only the beginning of a line is read: a longer one is no such line, and expressions stay quick.
    """
    text = text[:_SEARCHED_CHARACTERS]
    marks: dict[Kind, Mark] = {}
    for form in FORMS:
        found = form.pattern.search(text) if may_fit(form.literals, text) else None
        if found is not None:
            mark = _mark(form.kind, found, text)
            before = marks.get(form.kind)
            if before is None or (before.step is None and before.seconds is None):
                marks[form.kind] = mark
    return list(marks.values())


def _mark(kind: Kind, found: re.Match[str], text: str) -> Mark:
    groups = found.groupdict()
    step = next((int(groups[name]) for name in ("step", "at", "start", "path") if groups.get(name)), None)
    if groups.get("next"):
        step = int(groups["next"]) - 1
    seconds = float(groups["seconds"]) if groups.get("seconds") else None
    said = text[found.start() : found.start() + _SAID_CHARACTERS]
    return Mark(kind=kind, step=step, seconds=seconds, done=_DONE.search(text) is not None, said=said)
