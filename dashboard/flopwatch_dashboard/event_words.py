"""Events of a job and ends of its launches, in the reader's language."""

import re
import signal

from flopwatch.query import Mark
from flopwatch_dashboard import wording
from flopwatch_dashboard.view import View

STEP = re.compile(r"(from )?step (\d+)")
EXIT = re.compile(r"(signal|exit) (\d+)")


def mark_words(mark: Mark, view: View) -> str:
    """What a mark says beside its kind: the step, the rule, what the event was; and how long it took."""
    step = STEP.fullmatch(mark.text)
    if step is not None:
        key = "mark_text.from_step" if step[1] else "mark_text.step"
        words = view.t(key, step=wording.number(int(step[2])))
    elif mark.kind == "alert":
        words = view.code("rule", mark.text)
    else:
        words = mark.text
    if mark.end_seconds is None or mark.end_seconds <= mark.time_seconds:
        return words
    length = view.duration(mark.end_seconds - mark.time_seconds)
    return view.t("mark_text.length", words=words, length=length) if words else length


def exit_words(reason: str | None, view: View) -> str:
    """How a launch ended: ``signal 9`` and what schedulers say, in words; what has no words as it came."""
    if reason is None:
        return view.t("exit.unknown")
    told = EXIT.fullmatch(reason.strip().lower())
    if told is None:
        return view.code("exit", reason.strip().lower().replace(" ", "_")) if _has(reason, view) else reason
    number = int(told[2])
    if told[1] == "exit":
        return view.t("exit.completed") if number == 0 else view.t("exit.code", code=number)
    return view.t("exit.signal", signal=_signal(number))


def _has(reason: str, view: View) -> bool:
    return view.knows(f"exit.{reason.strip().lower().replace(' ', '_')}")


def _signal(number: int) -> str:
    try:
        return f"{signal.Signals(number).name} ({number})"
    except ValueError:
        return str(number)
