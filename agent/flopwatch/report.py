"""StepReporter: tell the node's agent that a training step is done; never raises, never blocks.

One datagram an optimizer step goes to the agent's Unix socket. A step that cannot be sent, or that comes faster than
an agent takes them, is summed into the next message (``steps_covered`` and ``unsent_steps`` say how many), at the
latest when the script ends. Where no agent ever answered, as in a pod
without host paths, the same JSON goes to standard error as a line ``flopwatch: {...}``, at most one a second
for steps, which the agent's log reader knows. Nothing here waits for a GPU: pass Python numbers, not tensors.
"""

import atexit
import json
import os
import socket
import sys
import time
import weakref
from types import TracebackType

DEFAULT_SOCKET = "/run/flopwatch/steps.sock"
STDERR_PREFIX = "flopwatch: "
RETRY_SECONDS = 5.0
STDERR_INTERVAL_SECONDS = 1.0
RUN_REPEAT_SECONDS = 300.0
MAX_QUEUED = 64
MAX_MESSAGE_BYTES = 16_384
CLOSE_SECONDS, CLOSE_TRIES = 0.1, 5
STEPS_A_SECOND = 150.0
STEP_BURST = 500.0
"""Steps that come faster are summed: an agent refuses what is beyond 200 messages a second after a burst of 1,000."""

RUN_KEYS = frozenset(
    (
        "trainer", "shape", "parameter_count", "parameter_count_includes_embeddings", "flops_per_token", "world_size",
        "global_batch_size", "sequence_length", "tokens_per_step", "dtype", "tensor_parallel", "pipeline_parallel",
        "context_parallel", "expert_parallel", "data_parallel", "activation_recompute", "kind", "job_name",
        "mfu_target_ratio", "resumed_from_step", "micro_batches", "pipeline_chunks",
    )
)  # fmt: skip
STEP_SUMS = ("tokens", "padded_tokens", "sum_squared_document_tokens", "data_wait_seconds", "seconds")
PHASES = frozenset(("startup", "data", "eval", "checkpoint", "generation", "communication"))


def socket_candidates(environ: "os._Environ[str]") -> tuple[str, ...]:
    """Where the agent's socket may be: ``FLOPWATCH_SOCKET`` alone, else the system's, then the user's."""
    named = environ.get("FLOPWATCH_SOCKET")
    if named:
        return (named,)
    runtime = environ.get("XDG_RUNTIME_DIR")
    return (DEFAULT_SOCKET, f"{runtime}/flopwatch/steps.sock") if runtime else (DEFAULT_SOCKET,)


def rank_of(environ: "os._Environ[str]") -> int:
    """This process's global rank as its launcher set it; 0 when none did."""
    for name in ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"):
        text = environ.get(name, "")
        if text.isdigit():
            return int(text)
    return 0


class StepReporter:
    """Reports training steps to the node's agent: ``with reporter.step(tokens=n): ...`` around each optimizer step.

    Only rank 0 reports unless ``all_ranks`` is true. Use one reporter in one thread; after a fork the child's copy
    opens its own connection. Every method returns without raising whatever the agent does.
    """

    def __init__(self, *, rank: int | None = None, all_ranks: bool = False, first_step: int = 1) -> None:
        self.rank = rank_of(os.environ) if rank is None else rank
        self.enabled = (all_ranks or self.rank == 0) and os.environ.get("FLOPWATCH_SDK", "1") != "0"
        self.unsent_steps = 0
        """Steps that are not yet told to anybody."""
        self.dropped_messages = 0
        """Messages given up: too large, or more waiting than the queue holds."""
        self._channel = _Channel(socket_candidates(os.environ))
        self._next_step = first_step
        self._pending: dict[str, object] | None = None
        self._queue: list[dict[str, object]] = []
        self._run: dict[str, object] = {}
        self._run_sent = 0.0
        self._last_end: float | None = None
        self._excluded = 0.0
        self._allowance = STEP_BURST
        self._allowed_at = time.monotonic()
        self._pid = os.getpid()
        atexit.register(_close, weakref.ref(self))

    def run(self, **facts: object) -> None:
        """Tell once what is trained: any of ``RUN_KEYS``; ``shape`` has the keys of ``ModelShape``."""
        if self.enabled:
            self._after_fork()
            self._run.update(
                {key: value for key, value in facts.items() if key in RUN_KEYS and value is not None}
            )
            self._enqueue({"event": "run", **self._run})

    def step(self, tokens: int | None = None, *, step: int | None = None, **more: object) -> "Step":
        """A context around one optimizer step: told when it ends, not when it raises; ``more`` as in ``step_done``."""
        return Step(self, step, tokens, more)

    def step_done(
        self,
        step: int | None = None,
        *,
        seconds: float | None = None,
        tokens: int | None = None,
        **more: object,
    ) -> None:
        """Tell that an optimizer step is done.

        ``seconds`` is its duration; left out, the time since the step before, less the phases told in between, and
        unknown for the first. ``tokens`` counts all ranks. ``more``: ``loss``, ``padded_tokens``,
        ``sum_squared_document_tokens``, ``data_wait_seconds``, ``skipped_steps``, ``steady``, ``phase``.
        """
        if not self.enabled:
            return
        self._after_fork()
        moment = time.monotonic()
        if seconds is None and self._last_end is not None:
            seconds = max(0.0, moment - self._last_end - self._excluded)
        self._last_end, self._excluded = moment, 0.0
        number = step if type(step) is int else self._next_step
        self._next_step = number + 1
        self._pending = merged(self._pending, step_message(number, seconds, tokens, more))
        self.unsent_steps += 1
        if self._run and moment - self._run_sent > RUN_REPEAT_SECONDS:
            self._run_sent = moment
            self._queue.append({"event": "run", **self._run})
        self._flush(moment)

    def phase(self, kind: str, *, step: int | None = None, blocking: bool = True) -> "PhaseMark":
        """A context around work that is not a step: startup, data, eval, checkpoint or generation.

        ``communication`` is the exception: it lies inside a step, and is what of it a rank only waited for the network.
        """
        return PhaseMark(self, kind, step, blocking=blocking)

    def phase_done(
        self, kind: str, *, seconds: float, step: int | None = None, blocking: bool = True
    ) -> None:
        """Tell that such work has just ended, for loops that say only so; ``seconds`` is how long it took."""
        mark = PhaseMark(self, kind, step, blocking=blocking)
        if _is_duration(seconds):
            mark.started -= seconds
            self._phase_done(mark, time.time())

    def close(self) -> None:
        """Send what is summed up, trying for a tenth of a second at most, and close the socket."""
        if self.enabled:
            self._after_fork()
            self._channel.hurry()
            self._allowance = STEP_BURST
            for _ in range(CLOSE_TRIES):
                self._flush(time.monotonic())
                if self._pending is None and not self._queue:
                    break
                time.sleep(CLOSE_SECONDS / CLOSE_TRIES)
        self._channel.close()

    def _after_fork(self) -> None:
        """In a child, leave what waits to the parent, which tells it too."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._pending, self._queue, self.unsent_steps = None, [], 0
            self._last_end, self._excluded = None, 0.0

    def _enqueue(self, message: dict[str, object]) -> None:
        moment = time.monotonic()
        if message["event"] == "run":
            self._run_sent = moment
        self._queue.append(message)
        if len(self._queue) > MAX_QUEUED:
            del self._queue[0]
            self.dropped_messages += 1
        self._flush(moment)

    def _flush(self, moment: float) -> None:
        while self._queue and self._sent(self._queue[0], moment):
            del self._queue[0]
        if self._queue or self._pending is None or not self._is_allowed(moment):
            return
        self._pending["unsent_steps"] = self.unsent_steps - 1
        if self._sent(self._pending, moment):
            self._pending, self.unsent_steps = None, 0
            self._allowance -= 1.0

    def _is_allowed(self, moment: float) -> bool:
        """Whether an agent would take one more message of this process now."""
        grown = self._allowance + (moment - self._allowed_at) * STEPS_A_SECOND
        self._allowance, self._allowed_at = min(STEP_BURST, grown), moment
        return self._allowance >= 1.0

    def _sent(self, message: dict[str, object], moment: float) -> bool:
        """Whether the message is done with: sent, printed, or given up and counted."""
        message["rank"] = self.rank
        try:
            body = json.dumps(message, separators=(",", ":"), allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            self.dropped_messages += 1
            return True
        if len(body) > MAX_MESSAGE_BYTES:
            self.dropped_messages += 1
            return True
        return self._channel.send(body, moment, hold_back=message["event"] == "step")

    def _phase_done(self, mark: "PhaseMark", now: float) -> None:
        if self.enabled and mark.kind in PHASES:
            self._after_fork()
            seconds = max(0.0, time.monotonic() - mark.started)
            if mark.blocking and mark.kind != "communication":
                self._excluded += seconds
            message: dict[str, object] = {"event": "phase", "kind": mark.kind, "begin_seconds": now - seconds}
            message.update(end_seconds=now, blocking=mark.blocking)
            if mark.step is not None:
                message["step"] = mark.step
            if mark.kind == "checkpoint":
                message["committed"] = not mark.failed
            self._enqueue(message)


def _close(reporter: "weakref.ref[StepReporter]") -> None:
    """Send what is summed up when the script ends."""
    found = reporter()
    if found is not None:
        found.close()


class Step:
    """The context of one step."""

    __slots__ = ("_more", "_number", "_reporter", "_started", "_tokens")

    def __init__(
        self, reporter: StepReporter, number: int | None, tokens: int | None, more: dict[str, object]
    ) -> None:
        self._reporter, self._number, self._tokens, self._more = reporter, number, tokens, more
        self._started = 0.0

    def note(self, **more: object) -> None:
        """Add what is known only inside the step, such as ``loss`` or ``tokens``."""
        tokens = more.pop("tokens", self._tokens)
        self._tokens = tokens if isinstance(tokens, int) else self._tokens
        self._more.update(more)

    def __enter__(self) -> "Step":
        self._started = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            seconds = time.monotonic() - self._started
            self._reporter.step_done(self._number, seconds=seconds, tokens=self._tokens, **self._more)


class PhaseMark:
    """The context of one phase."""

    __slots__ = ("_reporter", "blocking", "failed", "kind", "started", "step")

    def __init__(self, reporter: StepReporter, kind: str, step: int | None, *, blocking: bool) -> None:
        self._reporter, self.kind, self.step, self.blocking = reporter, kind, step, blocking
        self.started, self.failed = time.monotonic(), False

    def __enter__(self) -> "PhaseMark":
        self.started = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.failed = kind is not None
        self._reporter._phase_done(self, time.time())  # noqa: SLF001 - the two are one thing


def step_message(
    number: int, seconds: float | None, tokens: int | None, more: dict[str, object]
) -> dict[str, object]:
    """The datagram of one step; values that are not plain numbers are left out."""
    message: dict[str, object] = {
        "event": "step", "step": number, "steps_covered": 1, "end_time_seconds": time.time(),
        "seconds": seconds if _is_duration(seconds) else None, "tokens": tokens if type(tokens) is int else None,
    }  # fmt: skip
    for key, value in more.items():
        if key == "loss" and isinstance(value, float):
            message[key] = value if value - value == 0.0 else _word(value)
        elif isinstance(value, (int, float, str)) and value == value:  # noqa: PLR0124 - leaves NaN out
            message[key] = value
    return message


def _is_duration(value: object) -> bool:
    return isinstance(value, (int, float)) and value - value == 0 and value >= 0


def _word(value: float) -> str:
    return "nan" if value != value else "inf" if value > 0 else "-inf"  # noqa: PLR0124 - NaN differs from itself


def merged(before: dict[str, object] | None, message: dict[str, object]) -> dict[str, object]:
    """``message`` covering the unsent steps ``before`` it; a sum with an unknown part is unknown."""
    if before is None:
        return message
    result = {**before, **message}
    for key in STEP_SUMS:
        first, second = before.get(key), message.get(key)
        known = isinstance(first, (int, float)) and isinstance(second, (int, float))
        result[key] = first + second if known else None  # type: ignore[operator]  # both are numbers here
    for key in ("steps_covered", "skipped_steps"):
        total = _count(before.get(key)) + _count(message.get(key))
        if total:
            result[key] = total
    return result


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


class _Channel:
    """The way out: the agent's socket, or standard error where no agent ever answered."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        self._paths = paths
        self._socket: socket.socket | None = None
        self._pid = os.getpid()
        self._retry_at = 0.0
        self._print_at = 0.0
        self._answered = False
        self._quiet = os.environ.get("FLOPWATCH_STDERR", "1") == "0"

    def send(self, body: str, moment: float, *, hold_back: bool) -> bool:
        """Whether the body left; False asks to try again with the next message."""
        if self._pid != os.getpid():
            self.close()
            self._pid, self._retry_at = os.getpid(), 0.0
        if self._socket is None and moment >= self._retry_at:
            self._connect(moment)
        if self._socket is None:
            return not self._answered and self._print(body, moment, hold_back=hold_back)
        try:
            self._socket.send(body.encode())
        except BlockingIOError:
            return False
        except OSError:
            self.close()
            self._retry_at = moment + RETRY_SECONDS
            return False
        return True

    def hurry(self) -> None:
        """Let the next message try everything at once."""
        self._retry_at = self._print_at = 0.0

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _connect(self, moment: float) -> None:
        self._retry_at = moment + RETRY_SECONDS
        for path in self._paths:
            candidate = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
            try:
                candidate.connect(path)
            except OSError:
                candidate.close()
                continue
            self._socket, self._answered = candidate, True
            return

    def _print(self, body: str, moment: float, *, hold_back: bool) -> bool:
        if self._quiet:
            return True
        if hold_back and moment < self._print_at:
            return False
        self._print_at = moment + STDERR_INTERVAL_SECONDS if hold_back else self._print_at
        try:
            sys.stderr.write(f"{STDERR_PREFIX}{body}\n")
            sys.stderr.flush()
        except (OSError, ValueError, AttributeError):
            return True
        return True
